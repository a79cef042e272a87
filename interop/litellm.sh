# LiteLLM, a gateway, in front of the real model and of aimock, whose failures it passes on in its own way; asked in three
# protocols.

gateway_key=sk-the-gateway-wants-this
gateway_port=
gateway=

install_litellm() { from_pypi litellm 'litellm[proxy]==1.108.7'; }

declare -A gateway_path=([openai_compatible]=/v1 [anthropic]= [gemini]=/v1beta)

passed_on() {
  client litellm --provider "$1" --base-url "http://127.0.0.1:$gateway_port${gateway_path[$1]}" --key "$gateway_key"
}

# Takes its time to start, during which the others can be asked.
launch_litellm() {
  gateway_port="$(free_port)"
  launch litellm env LITELLM_LOCAL_MODEL_COST_MAP=True "GATEWAY_KEY=$gateway_key" \
    "MODEL_URL=http://127.0.0.1:$model_port/v1" "MODEL_KEY=$model_key" \
    "AIMOCK_URL=http://127.0.0.1:$aimock_port/v1" "AIMOCK_KEY=$aimock_key" \
    "$home/litellm/bin/litellm" --config interop/litellm.yaml --host 127.0.0.1 --port "$gateway_port"
  gateway="$started"
}

with_litellm() {
  say "a gateway"
  installed litellm && installed model && installed aimock || return 0
  start_model
  start_aimock
  answers litellm "$gateway" "http://127.0.0.1:$gateway_port/health/liveliness"
  at_once passed_on openai_compatible anthropic gemini
}
