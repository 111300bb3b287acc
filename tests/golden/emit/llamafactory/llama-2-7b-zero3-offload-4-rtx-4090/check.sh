#!/usr/bin/env bash
# 20 steps of the run, and what they say against the prediction.
#
#     ./check.sh                                  on one node, or under a launcher
#     planner validate --log check.log            step time and peak memory, read back
#
# Predicted: 72.338 s a step (41.450 to 126.302), 5.9 GiB of
# 24.0 GiB on the fullest GPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if [ "${NODE_RANK:-0}" -eq 0 ]; then
  ./launch.sh max_steps=20 logging_steps=1 save_steps=1000 "$@" 2>&1 | tee check.log
else
  ./launch.sh max_steps=20 logging_steps=1 save_steps=1000 "$@"
fi
