#!/usr/bin/env bash
# 20 steps of the run, and what they say against the prediction.
#
#     ./check.sh                                  on one node, or under a launcher
#     planner validate --log check.log            step time and peak memory, read back
#
# Predicted: 109.519 s a step (63.630 to 188.481), 27.0 GiB of
# 48.0 GiB on the fullest GPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if [ "${NODE_RANK:-0}" -eq 0 ]; then
  ./launch.sh --max_steps 20 --logging_steps 1 --save_strategy no "$@" 2>&1 | tee check.log
else
  ./launch.sh --max_steps 20 --logging_steps 1 --save_strategy no "$@"
fi
