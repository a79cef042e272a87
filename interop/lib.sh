# What the scripts of `interop/` share: where things are, how servers are installed and started, and how to say what
# happens. To be sourced from the project's root.

target="${CARGO_TARGET_DIR:-target}"
# Servers are installed here, once. INTEROP_HOME names a place that more than one clone can use.
mkdir -p "${INTEROP_HOME:-$target/interop}"
home="$(cd "${INTEROP_HOME:-$target/interop}" && pwd)"
examples="$target/debug/examples"
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost # all of it is on this machine
pids=()

cleanup() {
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
}
trap cleanup EXIT

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'FAIL: %s\n' "$*" >&2; exit 1; }

# from_pypi NAME ARGUMENTS...: into a virtual environment of that name, unless it is there.
from_pypi() {
  local name="$1"; shift
  [ -e "$home/$name/installed" ] && return 0
  { python3 -m venv "$home/$name" &&
    timeout 600 "$home/$name/bin/pip" install --quiet --no-compile --disable-pip-version-check "$@" &&
    touch "$home/$name/installed"; } >"$home/$name-install.log" 2>&1 </dev/null
}

# from_npm NAME ARGUMENTS...: into a folder of that name, unless it is there.
from_npm() {
  local name="$1"; shift
  [ -e "$home/$name/installed" ] && return 0
  { mkdir -p "$home/$name" && timeout 600 npm install --loglevel error --no-fund --no-audit --prefix "$home/$name" "$@" &&
    touch "$home/$name/installed"; } >"$home/$name-install.log" 2>&1 </dev/null
}

# installed NAME: whether it is. If not, that is said, with the end of what installing it said.
installed() {
  [ -e "$home/$1/installed" ] && return 0
  printf 'SKIPPED: %s cannot be installed here; the end of %s:\n' "$1" "$home/$1-install.log"
  tail -n 3 "$home/$1-install.log"
  return 1
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# launch NAME COMMAND...: starts a server that ends with this script. Its pid is in $started, what it says in NAME.log.
launch() {
  local name="$1"; shift
  "$@" >"$home/$name.log" 2>&1 </dev/null &
  started=$!
  pids+=("$started")
}

# answers NAME PID URL: waits until the server does.
answers() {
  local until=$((SECONDS + 300))
  while [ "$SECONDS" -lt "$until" ]; do
    # 501: one that answers, but to nothing that is not posted.
    case "$(curl --silent --max-time 1 --output /dev/null --write-out '%{http_code}' "$3")" in 200 | 501) return 0 ;; esac
    kill -0 "$2" 2>/dev/null || break
    sleep 0.2
  done
  tail -n 5 "$home/$1.log"
  fail "$1 does not answer"
}

# start NAME URL COMMAND...: both.
start() {
  local name="$1" url="$2"; shift 2
  launch "$name" "$@"
  answers "$name" "$started" "$url"
}

# client SERVER ARGUMENTS...: plays the scenarios of that server.
client() {
  local status=0
  timeout 300 "$examples/interop_client" "$@" || status=$?
  [ "$status" != 124 ] || printf 'FAIL %s: not done after 300 s\n' "$*"
  return "$status"
}

# at_once COMMAND NAME...: runs `COMMAND NAME` for every name at the same time, and then shows what each said.
at_once() {
  local command="$1" name failed=(); shift
  local -A players=()
  for name in "$@"; do
    "$command" "$name" >"$home/$command-$name.out" 2>&1 &
    players[$name]=$!
    pids+=("$!")
  done
  for name in "$@"; do
    wait "${players[$name]}" || failed+=("$name")
    cat "$home/$command-$name.out"
  done
  [ "${#failed[@]}" = 0 ] || fail "$command: ${failed[*]}"
}
