#!/usr/bin/env bash
# 20 steps of the run, and what they say against the prediction.
#
#     ./check.sh                                  on one node, or under a launcher
#     planner validate --log check.log            step time and peak memory, read back
#
# Predicted: 54.819 s a step (38.812 to 77.459), 76.2 GiB of
# 79.6 GiB on the fullest GPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if [ "${NODE_RANK:-0}" -eq 0 ]; then
  ./launch.sh train.train_iters=20 logger.log_interval=1 validation.eval_iters=0 checkpoint.save=null "$@" 2>&1 | tee check.log
else
  ./launch.sh train.train_iters=20 logger.log_interval=1 validation.eval_iters=0 checkpoint.save=null "$@"
fi
