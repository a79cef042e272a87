# aimock, which speaks the protocols of many providers. Its answers are in aimock.json, chosen by what the user says or by
# the model.

aimock_key=aimock-wants-this
aimock_port="$(free_port)"
aimock=

install_aimock() { from_npm aimock @copilotkit/aimock@1.43.0; }

# serve_aimock NAME PORT [VARIABLE=VALUE...]
serve_aimock() {
  local name="$1" port="$2"; shift 2
  # Its program has the name of another server.
  start "$name" "http://127.0.0.1:$port/health" env "$@" \
    "$home/aimock/node_modules/.bin/llmock" --port "$port" --fixtures interop/aimock.json --strict --log-level warn
}

# Unless it runs.
start_aimock() {
  [ -n "$aimock" ] && kill -0 "$aimock" 2>/dev/null && return 0
  serve_aimock aimock "$aimock_port" "AIMOCK_API_KEYS=$aimock_key"
  aimock="$started"
}

# The base URL under which it speaks a protocol.
declare -A aimock_path=(
  [openai]=/v1 [openai_compatible]=/v1 [responses]=/v1 [anthropic]= [gemini]=/v1beta [vertex]=/v1
  [azure]= [azure_deployment]= [ollama]=
)

spoken() {
  client aimock --provider "$1" --base-url "http://127.0.0.1:$aimock_port${aimock_path[$1]}" --key "$aimock_key"
}

with_aimock() {
  say "a server of many protocols"
  installed aimock || return 0
  start_aimock
  at_once spoken openai openai_compatible responses anthropic gemini vertex azure azure_deployment ollama
}
