#!/usr/bin/env bash
# llama-3-1-8b with TRL: starts the ranks of one node.
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
# Hugging Face name or folder of the weights and a tokenizer.
export MODEL="${MODEL:-meta-llama/Llama-3.1-8B}"
# Hugging Face name or folder of texts (column text) or messages.
export DATASET="${DATASET:-}"
# Peak of the learning rate; yours to choose for this model, data and batch.
export LEARNING_RATE="${LEARNING_RATE:-}"
# Folder for checkpoints.
export CHECKPOINTS="${CHECKPOINTS:-checkpoints}"
# Optimizer steps.
export TRAIN_STEPS="${TRAIN_STEPS:-1000}"

if [ -z "$MODEL" ] && [ "${DEVICE:-gpu}" != cpu ]; then
  echo "launch.sh: set MODEL: Hugging Face name or folder of the weights and a tokenizer." >&2
  exit 2
fi
if [ -z "$DATASET" ] && [ "${DEVICE:-gpu}" != cpu ]; then
  echo "launch.sh: set DATASET: Hugging Face name or folder of texts (column text) or messages." >&2
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
# Tokenizers fork no threads of their own in the data loader's processes.
export TOKENIZERS_PARALLELISM="${TOKENIZERS_PARALLELISM:-false}"
# accelerate stops on RTX 4000 cards that would try it: they have none.
export NCCL_P2P_DISABLE="${NCCL_P2P_DISABLE:-1}"
# accelerate stops on RTX 4000 cards that would try it: they have none.
export NCCL_IB_DISABLE="${NCCL_IB_DISABLE:-1}"
# NCCL says what goes wrong; INFO prints rings, trees and NICs once at start
export NCCL_DEBUG="${NCCL_DEBUG:-WARN}"
# a rank whose collective fails ends the job, where else the others wait for ever
export TORCH_NCCL_ASYNC_ERROR_HANDLING="${TORCH_NCCL_ASYNC_ERROR_HANDLING:-1}"
# segments grow in place, so that less memory is lost between blocks
export PYTORCH_CUDA_ALLOC_CONF="${PYTORCH_CUDA_ALLOC_CONF:-expandable_segments:True}"
# one process per GPU; the default gives every one of them all cores
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-8}"

exec trl sft --config train.yaml --accelerate_config accelerate.yaml \
  --num_machines "$NNODES" --machine_rank "$NODE_RANK" \
  --num_processes "$((NNODES * GPUS_PER_NODE))" \
  --main_process_ip "$MASTER_ADDR" --main_process_port "$MASTER_PORT" \
  --model_name_or_path "$MODEL" --dataset_name "$DATASET" \
  --output_dir "$CHECKPOINTS" --max_steps "$TRAIN_STEPS" \
  --learning_rate "${LEARNING_RATE:-1e-5}" "$@"
