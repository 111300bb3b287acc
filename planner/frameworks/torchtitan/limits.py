"""Layouts and formats that torchtitan's configuration can express."""

from planner.specs.frameworks.limits import Limits

ROTATIONS = {"all-gather": "", "ring": "alltoall", "gathered-ring": "allgather"}
"""context_parallel_rotate_method by kind, of releases before 0.3; FlexAttention has
none and gathers. [text]"""
LIMITS = Limits(
    zero_stages=(2, 3),
    default_zero_stage=3,
    default_zero_stage_pipelined=2,
    schedules=("1f1b", "interleaved", "gpipe"),
    cp_kinds=tuple(ROTATIONS),
    orders=("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"),
    recompute=("none", "selective", "full"),
    recompute_scope="plan",
    precisions=("bf16", "fp8", "mxfp8"),
    recomputes_split=False,
    hybrid_sharding=True,
    sequence_parallel=(True, False),
    expert_tensor=False,
    experts_need_sp=False,
    source="torchtitan 0.3.0 distributed/parallel_dims.py and "
    "config/configs.py: no optimizer-only sharding, reshard-after-forward never "
    "(ZeRO-2) or always (ZeRO-3), module_fqns_per_model_part for uneven stages; "
    "training.mixed_precision_param bfloat16, quantize.linear.float8 and mx; "
    "stages are put on nodes by the launcher's node order; "
    "training.enable_cpu_offload is FSDP2's CPUOffloadPolicy, which moves parameters, "
    "gradients and optimizer states together; the schedule is any of PyTorch's, but "
    "those that split the backward refuse compiled blocks (PyTorch 2.13 "
    "pipelining/schedules.py, _check_torch_compile_compatibility), and each of their "
    "weight gradients would run a checkpointed forward again (utils/checkpoint.py "
    "recomputes once per backward call, pipelining/_backward.py calls it once per "
    "linear; pytorch issue 136766)",
    offload=frozenset({"parameters+gradients+optimizer"}),
)
