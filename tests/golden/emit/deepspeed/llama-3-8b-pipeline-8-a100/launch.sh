#!/usr/bin/env bash
# llama-3-8b with DeepSpeed: starts the ranks of one node.
# On one node run it as it is; on several run it on each, with NODE_RANK and MASTER_ADDR
# set (the launchers beside it do so). What follows its name goes to the program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

NNODES="${NNODES:-1}"
NODE_RANK="${NODE_RANK:-0}"
GPUS_PER_NODE="${GPUS_PER_NODE:-8}"
MASTER_ADDR="${MASTER_ADDR:-localhost}"
MASTER_PORT="${MASTER_PORT:-29500}"

# Yours to fill in.
# Tokens, a .npy file; empty trains on made-up ones.
export DATA_PATH="${DATA_PATH:-}"
# Peak of the learning rate; yours to choose for this model, data and batch.
export LEARNING_RATE="${LEARNING_RATE:-}"
# Folder for checkpoints; empty writes none.
export CHECKPOINTS="${CHECKPOINTS:-}"
# Optimizer steps of the run.
export TRAIN_STEPS="${TRAIN_STEPS:-1000}"

if [ -z "$LEARNING_RATE" ] && [ "${DEVICE:-gpu}" != cpu ]; then
  echo "launch.sh: set LEARNING_RATE: Peak of the learning rate; yours to choose for this model, data and batch." >&2
  exit 2
fi
# The plan is for 8 ranks; another number is another layout.
if [ "$((NNODES * GPUS_PER_NODE))" -ne 8 ]; then
  echo "launch.sh: $NNODES nodes of $GPUS_PER_NODE GPUs are not the plan's 8" >&2
  exit 2
fi

# What you have set already stays as it is.
# NCCL says what goes wrong; INFO prints rings, trees and NICs once at start
export NCCL_DEBUG="${NCCL_DEBUG:-WARN}"
# a rank whose collective fails ends the job, where else the others wait for ever
export TORCH_NCCL_ASYNC_ERROR_HANDLING="${TORCH_NCCL_ASYNC_ERROR_HANDLING:-1}"
# segments grow in place, so that less memory is lost between blocks
export PYTORCH_CUDA_ALLOC_CONF="${PYTORCH_CUDA_ALLOC_CONF:-expandable_segments:True}"
# one process per GPU; the default gives every one of them all cores
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-8}"

exec deepspeed --hostfile hostfile --no_ssh \
  --node_rank "$NODE_RANK" \
  --master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" \
  train.py --config ds_config.json --model config.json \
  --seq-length 8192 \
  --attention sdpa --learning-rate "${LEARNING_RATE:-1e-5}" \
  --steps "$TRAIN_STEPS" --data "$DATA_PATH" --checkpoints "$CHECKPOINTS" "$@"
