#!/usr/bin/env bash
# llama-3-1-8b with torchtune: starts the ranks of one node.
# On one node run it as it is; on several run it on each, with NODE_RANK and MASTER_ADDR
# set (the launchers beside it do so). What follows its name goes to the program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

NNODES="${NNODES:-1}"
NODE_RANK="${NODE_RANK:-0}"
GPUS_PER_NODE="${GPUS_PER_NODE:-1}"
MASTER_ADDR="${MASTER_ADDR:-localhost}"
MASTER_PORT="${MASTER_PORT:-29500}"

# Yours to fill in.
# Folder of the weights, of meta-llama/Llama-3.1-8B, as `tune download` makes it; no spaces.
export MODEL="${MODEL:-}"
# Number of the last safetensors file, with five digits, as 00004.
export SHARDS="${SHARDS:-}"
# Texts, JSON lines with the key text; no spaces.
export DATASET="${DATASET:-texts.jsonl}"
# Peak of the learning rate; yours to choose for this model, data and batch.
export LEARNING_RATE="${LEARNING_RATE:-}"
# Folder for checkpoints; no spaces.
export CHECKPOINTS="${CHECKPOINTS:-checkpoints}"
# Optimizer steps.
export TRAIN_STEPS="${TRAIN_STEPS:-1000}"

if [ -z "$MODEL" ] && [ "${DEVICE:-gpu}" != cpu ]; then
  echo "launch.sh: set MODEL: Folder of the weights, of meta-llama/Llama-3.1-8B, as `tune download` makes it; no spaces." >&2
  exit 2
fi
if [ -z "$SHARDS" ] && [ "${DEVICE:-gpu}" != cpu ]; then
  echo "launch.sh: set SHARDS: Number of the last safetensors file, with five digits, as 00004." >&2
  exit 2
fi
if [ -z "$LEARNING_RATE" ] && [ "${DEVICE:-gpu}" != cpu ]; then
  echo "launch.sh: set LEARNING_RATE: Peak of the learning rate; yours to choose for this model, data and batch." >&2
  exit 2
fi
# The plan is for 1 ranks; another number is another layout.
if [ "$((NNODES * GPUS_PER_NODE))" -ne 1 ]; then
  echo "launch.sh: $NNODES nodes of $GPUS_PER_NODE GPUs are not the plan's 1" >&2
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

exec tune run lora_finetune_single_device \
  --config train.yaml checkpointer.checkpoint_dir="$MODEL" \
  checkpointer.checkpoint_files.max_filename="'$SHARDS'" \
  output_dir="$CHECKPOINTS" dataset.data_files="$DATASET" \
  max_steps_per_epoch="$TRAIN_STEPS" \
  optimizer.lr="${LEARNING_RATE:-1e-5}" "$@"
