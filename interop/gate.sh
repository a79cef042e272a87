# Bedrock: aimock again, behind a gate that checks every signature (SigV4) with AWS's own Python library.

gate_program=../shared/tools/servers/sigv4_gate.py # an outside referee's, which is not beside every clone
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
  client providers | grep --quiet --line-regexp bedrock || { printf 'SKIPPED: this client does not speak Bedrock\n'; return 0; }
  [ -f "$gate_program" ] || { printf 'SKIPPED: %s is not beside this clone\n' "$gate_program"; return 0; }
  installed gate && installed aimock || return 0
  start_gate
  # The key is the one that the gate knows: id, secret.
  client aimock --provider bedrock --base-url "http://127.0.0.1:$gate_port" \
    --key AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY || fail "gate"
}
