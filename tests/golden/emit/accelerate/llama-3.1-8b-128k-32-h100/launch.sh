#!/usr/bin/env bash
# llama-3-1-8b with accelerate: starts the ranks of one node.
# On one node run it as it is; on several run it on each, with NODE_RANK and MASTER_ADDR
# set (the launchers beside it do so). What follows its name goes to the program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

NNODES="${NNODES:-4}"
NODE_RANK="${NODE_RANK:-0}"
GPUS_PER_NODE="${GPUS_PER_NODE:-8}"
MASTER_ADDR="${MASTER_ADDR:-localhost}"
MASTER_PORT="${MASTER_PORT:-29500}"

# Yours to fill in.
# Hugging Face name or folder of the weights; empty: new ones.
export MODEL="${MODEL:-}"
# Your tokens, a .npy file; empty: made-up ones.
export DATA_PATH="${DATA_PATH:-}"
# Peak of the learning rate; that of the model's own pre-training (arXiv:2407.21783, table 3).
export LEARNING_RATE="${LEARNING_RATE:-0.0003}"
# Folder for checkpoints; empty: none.
export CHECKPOINTS="${CHECKPOINTS:-}"
# Optimizer steps.
export TRAIN_STEPS="${TRAIN_STEPS:-1000}"
# cpu: train a small model without a GPU, in fp32.
export DEVICE="${DEVICE:-gpu}"

# The plan is for 32 ranks; another number is another layout.
if [ "$((NNODES * GPUS_PER_NODE))" -ne 32 ]; then
  echo "launch.sh: $NNODES nodes of $GPUS_PER_NODE GPUs are not the plan's 32" >&2
  exit 2
fi

# What you have set already stays as it is.
# Tokenizers fork no threads of their own in the data loader's processes.
export TOKENIZERS_PARALLELISM="${TOKENIZERS_PARALLELISM:-false}"
# NCCL says what goes wrong; INFO prints rings, trees and NICs once at start
export NCCL_DEBUG="${NCCL_DEBUG:-WARN}"
# a rank whose collective fails ends the job, where else the others wait for ever
export TORCH_NCCL_ASYNC_ERROR_HANDLING="${TORCH_NCCL_ASYNC_ERROR_HANDLING:-1}"
# segments grow in place, so that less memory is lost between blocks
export PYTORCH_CUDA_ALLOC_CONF="${PYTORCH_CUDA_ALLOC_CONF:-expandable_segments:True}"
# one process per GPU; the default gives every one of them all cores
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-8}"
# 17 s to the first retry, so that a link that flaps does not end the job
export NCCL_IB_TIMEOUT="${NCCL_IB_TIMEOUT:-22}"

exec accelerate launch --num_machines "$NNODES" --machine_rank "$NODE_RANK" \
  --num_processes "$((NNODES * GPUS_PER_NODE))" \
  --main_process_ip "$MASTER_ADDR" --main_process_port "$MASTER_PORT" \
  --config_file accelerate.yaml \
  train.py \
  --max_steps "$TRAIN_STEPS" --learning_rate "${LEARNING_RATE:-1e-5}" "$@"
