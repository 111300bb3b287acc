"""Layouts and formats that a launch file of accelerate can express."""

from planner.specs.frameworks.limits import Limits

ROTATIONS = {"all-gather": "allgather", "ring": "alltoall"}
"""cp_comm_strategy by kind: keys are gathered, or sent on around the ring. [text]"""
LIMITS = Limits(
    zero_stages=(0, 2, 3),
    default_zero_stage=3,
    default_zero_stage_pipelined=3,
    schedules=("1f1b",),
    cp_kinds=tuple(ROTATIONS),
    orders=("tp-cp-ep-dp-pp",),
    recompute=("none", "full"),
    recompute_scope="plan",
    precisions=("bf16", "fp16", "fp8", "fp32", "tf32"),
    hybrid_sharding=True,
    sequence_parallel=(False,),
    expert_tensor=False,
    experts_need_sp=False,
    pipeline=False,
    expert_parallel=False,
    shards_need_ranks=True,
    split_replicas_need_shards=True,
    offload=frozenset({"parameters+gradients+optimizer", "activations"}),
    apart=(("tp", "cp"), ("tp", "hpz")),
    source="accelerate 1.15 parallelism_config.py (axes dp_replicate, dp_shard, cp, "
    "tp; no pipeline and no expert axis; tp and cp with replicas only over shards, "
    "FSDP2 needs dp_shard or cp, cp needs FSDP2) and utils/dataclasses.py: "
    "fsdp_reshard_after_forward false (ZeRO-2) or true (ZeRO-3), cp_comm_strategy "
    "allgather or alltoall (ring); one GPU and DDP are ZeRO 0. transformers 5.23 "
    "training_args.py: gradient_checkpointing is on or off for all blocks. "
    "Megatron's sequence parallelism has no key there. Tensor ranks are those of "
    "transformers' DistributedConfig, which has no context ranks, and DeepSpeed's "
    "AutoTP goes with no Ulysses and no groups of neighbours that share a copy of the "
    "weights. "
    "mixed_precision is no, fp16, bf16 or fp8. fsdp_offload_params is FSDP2's "
    "CPUOffloadPolicy, which moves parameters, gradients and optimizer together; TRL's "
    "activation_offloading moves saved activations",
)
