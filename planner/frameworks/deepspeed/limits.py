"""Layouts and formats that ds_config.json and its training script can express."""

from planner.specs.frameworks.limits import Limits

LIMITS = Limits(
    zero_stages=(0, 1, 2, 3),
    default_zero_stage=3,
    default_zero_stage_pipelined=1,
    schedules=("1f1b",),
    cp_kinds=("ulysses",),
    orders=("tp-cp-ep-dp-pp",),
    recompute=("none", "full"),
    recompute_scope="plan",
    precisions=("bf16", "fp16", "fp32"),
    hybrid_sharding=False,
    hpz=True,
    sequence_parallel=(False,),
    expert_tensor=False,
    experts_need_sp=False,
    offload=frozenset({"optimizer", "parameters+optimizer"}),
    offload_least_zero={"optimizer": 1},
    offload_in_parts={"optimizer": 3},
    ulysses_copies_keys=True,
    apart=(
        ("pp", "ZeRO 2"),
        ("pp", "ZeRO 3"),
        ("pp", "tp"),
        ("pp", "cp"),
        ("pp", "ep"),
        ("pp", "offload"),
        ("tp", "cp"),
        ("cp", "ZeRO 0"),
        ("cp", "ZeRO 1"),
        ("tp", "hpz"),
        ("ep", "cp"),
        ("ep", "offload"),
        ("ep", "hpz"),
    ),
    source="DeepSpeed 0.19.8: runtime/pipe/engine.py refuses ZeRO-2 and 3, runs 1F1B "
    "and takes its mpu from the PipelineModule; runtime/engine.py puts AutoTP's mpu in "
    "place of any other, so that it goes with neither a pipeline nor Ulysses; "
    "module_inject/auto_ep_folding.py: AutoEP beside tp without pipeline, Ulysses and "
    "offload, and under ZeRO-3 without hpZ; runtime/zero/config.py: "
    "zero_hpz_partition_size, stage 3 only, over neighbouring ranks of the world "
    "(utils/groups.py), beside which all states stay over all ranks; "
    "offload_optimizer from stage 1 with a ratio at stage 3 alone, offload_param at "
    "stage 3; runtime/sequence_parallel/ulysses_sp.py divides heads, and below ZeRO-2 "
    "runtime/bf16_optimizer.py takes its ranks for tensor ranks and finds no gradient "
    "for the norm (it was run: ZeRO-2 and 3 train, ZeRO-1 stops). Blocks are "
    "checkpointed all or not at all; Megatron's sequence parallelism has no key",
)
