#!/usr/bin/env bash
# llama-3-1-70b with Megatron-LM: starts the ranks of one node.
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
# A checkout of Megatron-LM.
export MEGATRON_PATH="${MEGATRON_PATH:-./Megatron-LM}"
# Prefix of your tokenised data; empty trains on mock data.
export DATA_PATH="${DATA_PATH:-}"
# Hugging Face tokenizer, with DATA_PATH.
export TOKENIZER="${TOKENIZER:-}"
# Peak of the learning rate; that of the model's own pre-training (arXiv:2407.21783, table 3).
export LEARNING_RATE="${LEARNING_RATE:-0.00015}"
# Folder for checkpoints; empty writes none.
export CHECKPOINTS="${CHECKPOINTS:-}"
# Optimizer steps.
export TRAIN_STEPS="${TRAIN_STEPS:-1000}"

# The plan is for 32 ranks; another number is another layout.
if [ "$((NNODES * GPUS_PER_NODE))" -ne 32 ]; then
  echo "launch.sh: $NNODES nodes of $GPUS_PER_NODE GPUs are not the plan's 32" >&2
  exit 2
fi

# What you have set already stays as it is.
# one hardware queue keeps tensor- and context-parallel exchanges ahead of the GEMMs that wait for them; Megatron refuses to start without it
export CUDA_DEVICE_MAX_CONNECTIONS="${CUDA_DEVICE_MAX_CONNECTIONS:-1}"
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

# shellcheck source=arguments.sh
source arguments.sh
exec torchrun --nnodes "$NNODES" --node-rank "$NODE_RANK" \
  --nproc-per-node "$GPUS_PER_NODE" \
  --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" \
  "$MEGATRON_PATH/pretrain_gpt.py" \
  "${ARGUMENTS[@]}" "${DATA[@]}" \
  --train-iters "$TRAIN_STEPS" --lr "${LEARNING_RATE:-1e-5}" "$@"
