#!/usr/bin/env bash
# Starts launch.sh on every host of a file, one host a line, in the order of nodes.txt.
# The folder must be at the same path on all of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
FILE="${1:?run.sh HOSTS [words for the program]}"
shift
# Rows of nodes.txt have their host in the fourth column.
mapfile -t HOSTS < <(grep -v '^[[:space:]]*\(#\|$\)' "$FILE" |
  while read -r first _ _ host _; do printf '%s\n' "${host:-$first}"; done)
if [[ " ${HOSTS[*]} " == *" - "* ]]; then
  echo "run.sh: $FILE has no host for some of its nodes" >&2
  exit 2
fi
if [ "${#HOSTS[@]}" -ne 4 ]; then
  echo "run.sh: $FILE names ${#HOSTS[@]} hosts, the plan has 4 nodes" >&2
  exit 2
fi
trap 'kill 0' INT TERM
for rank in "${!HOSTS[@]}"; do
  # shellcheck disable=SC2029  # all of it is meant to expand here
  ssh -o BatchMode=yes "${HOSTS[$rank]}" "cd $(printf %q "$PWD") && \
    NNODES=4 NODE_RANK=$rank MASTER_ADDR=$(printf %q "${HOSTS[0]}") \
    ./launch.sh $(printf '%q ' "$@")" &
done
wait
