#!/usr/bin/env bash
# 20 steps of the run, and what they say against the prediction.
#
#     ./check.sh                                  on one node, or under a launcher
#     planner validate --log check.log            step time and peak memory, read back
#
# Predicted: 4.692 s a step (3.322 to 6.630), 110.2 GiB of
# 179.1 GiB on the fullest GPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if [ "${NODE_RANK:-0}" -eq 0 ]; then
  ./launch.sh --train-iters 20 --exit-interval 20 --log-interval 1 --eval-iters 0 --save-interval 1000000 "$@" 2>&1 | tee check.log
else
  ./launch.sh --train-iters 20 --exit-interval 20 --log-interval 1 --eval-iters 0 --save-interval 1000000 "$@"
fi
