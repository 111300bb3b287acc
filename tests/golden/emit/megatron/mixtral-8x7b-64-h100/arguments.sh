# Arguments of Megatron-LM's pretrain_gpt.py; launch.sh reads this file.
# shellcheck shell=bash disable=SC2034  # launch.sh uses the arrays
ARGUMENTS=(
  # model
  --num-layers 32
  --hidden-size 4096
  --ffn-hidden-size 14336
  --num-attention-heads 32
  --kv-channels 128
  --group-query-attention
  --num-query-groups 8
  --max-position-embeddings 32768
  --position-embedding-type rope
  --rotary-base 1000000
  --normalization RMSNorm
  --swiglu
  --disable-bias-linear
  --num-experts 8
  --moe-router-topk 2
  --moe-ffn-hidden-size 14336
  --moe-layer-freq '[1]*32'
  --moe-router-load-balancing-type aux_loss
  --moe-aux-loss-coeff 0.01
  --moe-token-dispatcher-type alltoall
  --moe-grouped-gemm
  --moe-permute-fusion
  --untie-embeddings-and-output-weights
  # parallelism
  --tensor-model-parallel-size 1
  --pipeline-model-parallel-size 2
  --num-virtual-stages-per-pipeline-rank 8
  --expert-model-parallel-size 8
  --expert-tensor-parallel-size 1
  --use-distributed-optimizer
  --overlap-grad-reduce
  --overlap-param-gather
  # batch
  --seq-length 4096
  --micro-batch-size 1
  --global-batch-size 1024
  # numbers
  --bf16
  # optimizer
  --optimizer adam
  --min-lr 0.0
  --lr-decay-style cosine
  --lr-warmup-fraction 0.01
  --weight-decay 0.1
  --clip-grad 1.0
  --adam-beta1 0.9
  --adam-beta2 0.95
  --attention-dropout 0.0
  --hidden-dropout 0.0
  --init-method-std 0.02
  # run
  --no-create-attention-mask-in-dataloader
  --use-mcore-models
  --transformer-impl transformer_engine
  --attention-backend auto
  --distributed-timeout-minutes 30
  --log-interval 10
  --log-throughput
  --log-device-memory-used
  --eval-interval 1000
  --eval-iters 10
  --save-interval 1000
  --ckpt-format torch_dist
  --manual-gc
)

if [ -n "$DATA_PATH" ]; then
  # The model's own rows of the embedding, more than its tokenizer has tokens.
  DATA=(--data-path "$DATA_PATH" --tokenizer-type HuggingFaceTokenizer
        --tokenizer-model "$TOKENIZER" --split "99,1,0"
        --padded-vocab-size 32000)
else
  DATA=(--mock-data --tokenizer-type NullTokenizer --vocab-size 31999)
fi
if [ -n "$CHECKPOINTS" ]; then
  DATA+=(--save "$CHECKPOINTS" --load "$CHECKPOINTS")
fi
