# Bedrock: aimock again, behind a gate that checks every signature (SigV4) with AWS's own Python library.

# An outside referee's, which is not beside every clone.
gate_program="${STEADFAST_SHARED:-../shared}/tools/servers/sigv4_gate.py"
gate_port=

install_gate() { [ ! -f "$gate_program" ] || from_pypi gate botocore==1.44.8; }

# The gate passes no key on, so what is behind it wants none.
start_gate() {
  local behind
  behind="$(free_port)"
  gate_port="$(free_port)"
  serve_aimock aimock-behind-gate "$behind"
  start gate "http://127.0.0.1:$gate_port/" \
    "$home/gate/bin/python" "$gate_program" --port "$gate_port" --upstream "127.0.0.1:$behind"
}

with_gate() {
  say "a gate that checks signatures"
  [ -f "$gate_program" ] || { printf 'SKIPPED: %s is not beside this clone\n' "$gate_program"; return 0; }
  installed gate && installed aimock || return 0
  start_gate
  # The one key that the gate knows.
  client aimock --provider bedrock --base-url "http://127.0.0.1:$gate_port" --model anthropic.claude-v9:0 \
    --key AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY || fail "gate"
  cargo test --quiet --all-features --test interop_bedrock --no-run
  STEADFAST_BEDROCK_GATE="http://127.0.0.1:$gate_port" \
    timeout 300 cargo test --quiet --all-features --test interop_bedrock || fail "gate: tests/interop_bedrock.rs"
}
