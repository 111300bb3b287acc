"""Layouts and formats that Megatron-LM's arguments can express."""

from planner.frameworks.profiles import read_modules, read_recipes
from planner.specs.frameworks.limits import Limits
from planner.specs.layouts.recompute import combinations_of

CP_TYPES = {
    "ring": "p2p",
    "all-gather": "all_gather",
    "ulysses": "a2a",
    "ulysses+ring": "a2a+p2p",
}
"""--cp-comm-type by kind of context parallelism. [text]"""
LIMITS = Limits(
    zero_stages=(0, 1),
    default_zero_stage=1,
    default_zero_stage_pipelined=1,
    schedules=("1f1b", "interleaved"),
    cp_kinds=tuple(CP_TYPES),
    orders=("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"),
    recompute=("none", "selective", "full"),
    recompute_scope="plan",
    precisions=("bf16", "fp16", "fp8", "mxfp8", "nvfp4"),
    recompute_modules=combinations_of(read_modules("megatron")),
    recompute_recipes=read_recipes("megatron"),
    recompute_blocks=True,
    hybrid_sharding=True,
    sequence_parallel=(True, False),
    expert_tensor=True,
    experts_need_sp=True,
    splits_scans=True,
    source="Megatron-LM core_v0.16.1 megatron/training/arguments.py: "
    "--pipeline-model-parallel-layout, --use-tp-pp-dp-mapping, "
    "--recompute-granularity, --recompute-modules (from core_v0.12.0 on), "
    "--recompute-method block with --recompute-num-layers (core/transformer/"
    "transformer_block.py: the first layers of every virtual stage; uniform with more "
    "than one layer is left out), "
    "--num-distributed-optimizer-instances, "
    "--expert-tensor-parallel-size; --bf16, --fp16, --fp8-format with --fp8-recipe "
    "(mxfp8 among them), --fp4-format; --cp-comm-type p2p, all_gather, a2a and a2a+p2p "
    "with --hierarchical-context-parallel-sizes, where TransformerEngine "
    "(pytorch/attention/dot_product_attention/context_parallel.py) wants heads of "
    "queries and of keys that divide by the ranks of a2a; --optimizer-cpu-offload on "
    "the distributed optimizer, --optimizer-offload-fraction of it; "
    "--cpu-offloading-num-layers, refused by "
    "transformer_config.py with a pipeline and with recompute",
    offload=frozenset({"optimizer", "activations"}),
    offload_least_zero={"optimizer": 1},
    offload_in_parts={"optimizer": 1, "activations": 0},
    offloads_activations_alone=True,
)
