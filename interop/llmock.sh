# llmock, which injects faults and grades its client. One server for each protocol, since a verdict is about all that a
# server was asked.

install_llmock() { from_pypi llmock llmock==0.2.2; }

# The base URL under which it speaks a protocol.
declare -A llmock_path=([openai]=/v1 [anthropic]=/anthropic [gemini]=/gemini)
declare -A llmock_port=()

graded() { client llmock --provider "$1" --base-url "http://127.0.0.1:${llmock_port[$1]}${llmock_path[$1]}"; }

with_llmock() {
  say "a server that injects faults, and grades"
  installed llmock || return 0
  local name
  for name in openai anthropic gemini; do
    llmock_port[$name]="$(free_port)"
    # Its limit of tokens in a minute, and its window of context: scenarios of the client count on both.
    start "llmock-$name" "http://127.0.0.1:${llmock_port[$name]}/health" \
      env LLMOCK_TPM=60000 LLMOCK_CONTEXT_WINDOW=8000 "$home/llmock/bin/llmock" serve --port "${llmock_port[$name]}"
  done
  at_once graded openai anthropic gemini
}
