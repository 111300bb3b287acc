"""States, activations and buffers that Megatron-Core keeps in memory."""

from planner.frameworks.profiles import read_modules
from planner.specs.frameworks.framework import Recipe
from planner.specs.frameworks.states import StateBytes
from planner.specs.layouts.recompute import RecomputeKind

KINDS = {
    "none": RecomputeKind(name="none", keeps_others=1.0),
    "selective": RecomputeKind(
        name="selective", keeps={"logsumexp": 0.0}, keeps_others=1.0, core=1.0
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
        0: StateBytes(weights=2, gradients=4, optimizer=4),
        1: StateBytes(weights=2, gradients=4, sharded_optimizer=4),
        2: StateBytes(weights=2, sharded_gradients=4, sharded_optimizer=4),
        3: StateBytes(sharded_weights=2, sharded_gradients=4, sharded_optimizer=4),
    },
    fp16_states={
        0: StateBytes(weights=2, gradients=2, optimizer=8, step_gradients=4),
        1: StateBytes(weights=2, gradients=2, sharded_optimizer=8, step_gradients=4),
    },
    kinds=KINDS,
    modules=read_modules("megatron"),
    gradient_bytes=4,
    gather_bytes=2,
    gather_buffers=2,
    reduce_buffers=1,
    accumulates_unsharded=False,
    logits_bytes=6,
    dummy_weight_gradients=True,
    gradients_reduced_per_group=False,
    keeps_fp8=True,
    vocab_multiple=128,
    resume_copies=1.0,
    resume_advice="Megatron-Bridge loads fp32 moments in place since its pull request "
    "4936 (July 2026; --set stack.recipe.resume_copies=0 prices that), and "
    "--no-load-optim starts the moments anew; --set search.memory_moments=all asks "
    "for plans that resume, too",
    reduces_units=True,
    overlap_buffers=8,
    optimizer_kernel="fused-fp32",
    workspace_mib={"ampere": 20, "hopper": 96, "blackwell": 96},
    source="Megatron-LM docs/user-guide/features/dist_optimizer.md (6 + 12/d "
    "bytes a parameter with fp32 main gradients, 4 + 16/d with fp16 ones and "
    "their fp32 copy; ZeRO-2 and 3 as Megatron-FSDP shards them) and "
    "megatron/training/theoretical_memory_usage.py; cached dummy weight "
    "gradients: TransformerEngine's fused weight-gradient accumulation; loss: "
    "core/tensor_parallel/cross_entropy.py works in place, 16-bit logits and one "
    "fp32 copy; workspaces: one of cuBLAS for each thread that multiplies, forward's "
    "and autograd's (PyTorch aten/src/ATen/cuda/CublasHandlePool.cpp), 8 MiB or from "
    "Hopper on 32, and one of TransformerEngine, 4 or 32 MiB; "
    "resume: Megatron-LM issues 1509 and 2339 and Megatron-Bridge pull request 4936, "
    "the moments are loaded beside those of the optimizer; ZeRO-2 and 3: Megatron-LM "
    "issue 6314, a bucket of whole main gradients; overlap buffers: "
    "TransformerEngine's initialize_ub, gathers and scatters of four linears; "
    "optimizer: TransformerEngine's fused_adam.py, whose kernel takes fp32 moments",
)
