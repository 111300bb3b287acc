"""States, activations and buffers that Trainer keeps under eager PyTorch."""

from planner.specs.frameworks.framework import Recipe
from planner.specs.frameworks.states import StateBytes
from planner.specs.layouts.recompute import RecomputeKind

KINDS = {
    "none": RecomputeKind(name="none", keeps_others=1.0),
    "selective": RecomputeKind(
        name="selective",
        keeps={
            "attention_norm_input": 1.0,
            "ffn_norm_input": 1.0,
            "qkv": 1.0,
            "attention_output": 1.0,
            "logsumexp": 1.0,
            "output_gate": 1.0,
            "scan_input": 1.0,
            "fc1_output": 1.0,
            "shared_fc1_output": 1.0,
        },
        gemms={"expert_fc1": 1.0, "expert_fc2": 1.0},
        memory_ops=1.0,
        keeps_output=True,
    ),
    "full": RecomputeKind(
        name="full",
        keeps={"attention_norm_input": 1.0},
        gemms={"*": 1.0},
        core=1.0,
        memory_ops=1.0,
        collectives=1.0,
        rebuilds_layer=True,
    ),
}

RECIPE = Recipe(
    states={
        0: StateBytes(weights=2, gradients=2, state_bits=16, replica_buckets=2),
        2: StateBytes(weights=2, sharded_weights=4, sharded_gradients=4, computing=2),
        3: StateBytes(sharded_weights=4, sharded_gradients=4),
    },
    fp16_states={0: StateBytes(weights=4, gradients=4, replica_buckets=4)},
    kinds=KINDS,
    stops_early=True,
    gradient_bytes=2,
    gather_bytes=2,
    gather_buffers=2,
    reduce_buffers=1,
    accumulates_unsharded=False,
    accumulates_at=(2, 3),
    accumulator_bytes=2,
    logits_bytes=12,
    dummy_weight_gradients=False,
    gradients_reduced_per_group=True,
    gradients_freed=True,
    gathers_in_place=False,
    whole_embedding_gradient=True,
    reduces_units=True,
    replay="bf16",
    fp16_replay="amp_bf16",
    head_stays_whole=False,
    embedding_stays_whole=False,
    shards_freed=True,
    workspace_mib={"ampere": 8, "hopper": 32, "blackwell": 32},
    source="transformers 5 loads weights in the format of their checkpoint, bf16, "
    "and Adam's moments are made in the format of the weights: 2 + 2 + 4 B on one GPU "
    "and under DDP, whose reducer has a bucket for every gradient. In fp16 Trainer "
    "trains fp32 weights under autocast, since GradScaler refuses gradients in fp16 "
    "(torch/amp/grad_scaler.py, Attempting to unscale FP16 gradients): 4 + 4 + 8 B and "
    "autocast's 16-bit copies. Under FSDP2 "
    "accelerate 1.15 (utils/fsdp_utils.py) raises what trains to fp32 shards, "
    "computes and reduces in bf16, and makes units of the embedding and of the final "
    "norm with the head, which stay whole over the loss. Gradients are set to "
    "none after every step; optim is adamw_torch_fused, and FSDP2 writes "
    "shards. Loss of transformers' loss_utils.py: fp32 log-softmax, its "
    "gradient and that of the NLL, 12 B a logit, the 16-bit logits gone by then. With "
    "gradient accumulation the plan assumes sync_each_batch, so that gradients stay "
    "sharded; accumulation: no_sync in the stack block is Trainer's own default",
)
