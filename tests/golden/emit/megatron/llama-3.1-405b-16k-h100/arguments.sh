# Arguments of Megatron-LM's pretrain_gpt.py; launch.sh reads this file.
# shellcheck shell=bash disable=SC2034  # launch.sh uses the arrays
ARGUMENTS=(
  # model
  --num-layers 126
  --hidden-size 16384
  --ffn-hidden-size 53248
  --num-attention-heads 128
  --kv-channels 128
  --group-query-attention
  --num-query-groups 8
  --max-position-embeddings 131072
  --position-embedding-type rope
  --rotary-base 500000
  --use-rope-scaling
  --rope-scaling-factor 8.0
  --normalization RMSNorm
  --swiglu
  --disable-bias-linear
  --untie-embeddings-and-output-weights
  # parallelism
  --tensor-model-parallel-size 4
  --sequence-parallel
  --pipeline-model-parallel-size 16
  --pipeline-model-parallel-layout 'E|(t|)*126L'
  --context-parallel-size 4
  --cp-comm-type p2p
  --use-distributed-optimizer
  --overlap-grad-reduce
  --overlap-param-gather
  --use-tp-pp-dp-mapping
  # batch
  --seq-length 8192
  --micro-batch-size 1
  --global-batch-size 2048
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
        --padded-vocab-size 128512)
else
  DATA=(--mock-data --tokenizer-type NullTokenizer --vocab-size 128255)
fi
if [ -n "$CHECKPOINTS" ]; then
  DATA+=(--save "$CHECKPOINTS" --load "$CHECKPOINTS")
fi
