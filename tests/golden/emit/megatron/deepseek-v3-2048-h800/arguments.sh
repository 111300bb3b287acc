# Arguments of Megatron-LM's pretrain_gpt.py; launch.sh reads this file.
# shellcheck shell=bash disable=SC2034  # launch.sh uses the arrays
ARGUMENTS=(
  # model
  --num-layers 61
  --hidden-size 7168
  --ffn-hidden-size 18432
  --multi-latent-attention
  --num-attention-heads 128
  --q-lora-rank 1536
  --kv-lora-rank 512
  --qk-head-dim 128
  --qk-pos-emb-head-dim 64
  --v-head-dim 128
  --qk-layernorm
  --max-position-embeddings 163840
  --position-embedding-type rope
  --rotary-base 10000
  --rope-type yarn
  --rotary-scaling-factor 40
  --mscale 1.0
  --mscale-all-dim 1.0
  --normalization RMSNorm
  --swiglu
  --disable-bias-linear
  --num-experts 256
  --moe-router-topk 8
  --moe-ffn-hidden-size 2048
  --moe-layer-freq '[0]*3+[1]*58'
  --moe-router-load-balancing-type seq_aux_loss
  --moe-aux-loss-coeff 0.0001
  --moe-router-score-function sigmoid
  --moe-router-enable-expert-bias
  --moe-router-bias-update-rate 0.001
  --moe-router-pre-softmax
  --moe-router-dtype fp32
  --moe-token-dispatcher-type alltoall
  --moe-grouped-gemm
  --moe-permute-fusion
  --moe-shared-expert-intermediate-size 2048
  --untie-embeddings-and-output-weights
  --mtp-num-layers 1
  # parallelism
  --tensor-model-parallel-size 1
  --pipeline-model-parallel-size 16
  --pipeline-model-parallel-layout 'Et*2|(t*2|)*29t|mL'
  --context-parallel-size 2
  --cp-comm-type p2p
  --expert-model-parallel-size 8
  --expert-tensor-parallel-size 1
  --use-distributed-optimizer
  --overlap-grad-reduce
  --overlap-param-gather
  # batch
  --seq-length 4096
  --micro-batch-size 3
  --global-batch-size 15360
  # recompute and offload
  --recompute-granularity full
  --recompute-method uniform
  --recompute-num-layers 1
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
        --padded-vocab-size 129280)
else
  DATA=(--mock-data --tokenizer-type NullTokenizer --vocab-size 129279)
fi
if [ -n "$CHECKPOINTS" ]; then
  DATA+=(--save "$CHECKPOINTS" --load "$CHECKPOINTS")
fi
