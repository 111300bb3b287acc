#!/usr/bin/env bash
# 20 steps of the run, and what they say against the prediction.
#
#     ./check.sh                                  on one node, or under a launcher
#     planner validate --log check.log            step time and peak memory, read back
#
# Predicted: 169.583 s a step (102.064 to 282.053), 72.9 GiB of
# 79.6 GiB on the fullest GPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if [ "${NODE_RANK:-0}" -eq 0 ]; then
  ./launch.sh --steps 20 "$@" 2>&1 | tee check.log
else
  ./launch.sh --steps 20 "$@"
fi
