"""States, activations and buffers that torchtitan keeps in memory."""

from planner.specs.frameworks.framework import Recipe
from planner.specs.frameworks.states import StateBytes
from planner.specs.layouts.recompute import RecomputeKind

KINDS = {
    "none": RecomputeKind(name="none", keeps_others=1.0),
    "selective": RecomputeKind(
        name="selective",
        keeps={
            "attention_norm_input": 1.0,
            "qkv": 1.0,
            "attention_output": 1.0,
            "logsumexp": 1.0,
            "output_gate": 1.0,
            "scan_input": 1.0,
            "fc1_output": 0.5,
            "shared_fc1_output": 0.5,
        },
        gemms={
            "attention_out": 1.0,
            "fc1": 0.5,
            "shared_fc1": 0.5,
            "expert_fc1": 1.0,
            "expert_fc2": 1.0,
        },
        memory_ops=1.0,
        collectives=0.5,
        drops_key=True,
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
        0: StateBytes(weights=6, gradients=4, computing=2),
        1: StateBytes(weights=2, gradients=4, sharded_weights=4, computing=2),
        2: StateBytes(weights=2, sharded_weights=4, sharded_gradients=4, computing=2),
        3: StateBytes(sharded_weights=4, sharded_gradients=4),
    },
    kinds=KINDS,
    stops_early=True,
    gradient_bytes=4,
    gather_bytes=2,
    gather_buffers=2,
    reduce_buffers=1,
    accumulates_unsharded=True,
    logits_bytes=12,
    dummy_weight_gradients=False,
    gradients_reduced_per_group=True,
    gradients_freed=True,
    gathers_in_place=False,
    whole_embedding_gradient=True,
    reduces_units=True,
    workspace_mib={"ampere": 8, "hopper": 32, "blackwell": 32},
    source="PyTorch FSDP2 mixed precision (fp32 shards, bf16 compute); "
    "torchtitan distributed/activation_checkpoint.py: the operator policy saves "
    "attention and every second matrix multiplication; loss in fp32 over bf16 "
    "logits: log-softmax output, its gradient and the NLL gradient, 12 B a logit; "
    "cuBLAS keeps a workspace of 8 MiB, from Hopper on of 32 MiB",
)
