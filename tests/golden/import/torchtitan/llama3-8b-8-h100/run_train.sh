#!/usr/bin/bash
# Re-created by its values: 8 GPUs, and the package's own configuration of 8B.
NGPU=${NGPU:-"8"}
export LOG_RANK=${LOG_RANK:-0}
MODULE=${MODULE:-"llama3"}
CONFIG=${CONFIG:-"llama3_8b"}

torchrun --nproc_per_node=${NGPU} --rdzv_backend c10d --rdzv_endpoint="localhost:0" \
  --local-ranks-filter ${LOG_RANK} --role rank --tee 3 \
  -m torchtitan.train --module ${MODULE} --config ${CONFIG} "$@"
