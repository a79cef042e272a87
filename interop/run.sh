#!/usr/bin/env bash
# Against servers that this project did not write, on loopback ports:
#
#   model     a small real model behind llama.cpp's own server
#   aimock    a server of many protocols, with canned answers
#   gate      the same for Bedrock, behind a gate that checks signatures (../shared has it)
#   llmock    a server that injects faults, and grades its client
#   litellm   a gateway in front of the model and aimock
#
#   interop/run.sh [NAME...]     default: all
#
# Each is in a script of its name. Servers come from PyPI and npm, into target/interop or $INTEROP_HOME. One that cannot be
# installed here is skipped, which is said. The scenarios are in `examples/interop_client`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
all=(model aimock gate llmock litellm)
. interop/lib.sh
for name in "${all[@]}"; do . "interop/$name.sh"; done

[ $# -gt 0 ] || set -- "${all[@]}"
declare -A behind=([gate]=aimock [litellm]="model aimock") # what they need beside themselves
declare -A wanted=()
for name in "$@"; do
  declare -F "with_$name" >/dev/null || fail "there is no $name: ${all[*]}"
  for needed in "$name" ${behind[$name]:-}; do wanted[$needed]=1; done
done

# All at the same time, and while the client is built, with everything that it can speak. What fails is noticed where it is
# needed.
for name in "${!wanted[@]}"; do "install_$name" & done
cargo build --quiet --all-features --example quickstart --example interop_client
wait

[ -z "${wanted[litellm]:-}" ] || ! [ -e "$home/litellm/installed" ] || launch_litellm
for name in "$@"; do "with_$name"; done
say "all good"
