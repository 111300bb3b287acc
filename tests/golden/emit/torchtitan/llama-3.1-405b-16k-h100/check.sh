#!/usr/bin/env bash
# 20 steps of the run, and what they say against the prediction.
#
#     ./check.sh                                  on one node, or under a launcher
#     planner validate --log check.log            step time and peak memory, read back
#
# Predicted: 6.895 s a step (4.213 to 11.281), 79.4 GiB of
# 79.6 GiB on the fullest GPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if [ "${NODE_RANK:-0}" -eq 0 ]; then
  ./launch.sh --training.steps=20 --metrics.log-freq=1 "$@" 2>&1 | tee check.log
else
  ./launch.sh --training.steps=20 --metrics.log-freq=1 "$@"
fi
