"""The jobs of the worked examples, resolved as a user's would be."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.cost.pricing import Pricing
from planner.job.resolve import resolve
from planner.planning.capacity.leanest import resized
from planner.specs.job import JobSpec

A100 = "dgx-a100-1-node"
"""A node of eight A100 with 80 GB."""
RTX_4090 = "rtx-4090-1"
"""A workstation with one card of 24 GB."""


def job(
    model: str,
    *,
    cluster: str = A100,
    framework: str = "torchtitan",
    stack: Mapping[str, Any] | None = None,
    gpus: int | None = None,
    **training: Any,
) -> Pricing:
    """A job on a whole cluster, or on some GPUs of one node.

    Args:
        model: Name of a preset. [-]
        cluster: Name of a cluster. [-]
        framework: Name of a framework. [-]
        stack: Overrides of the framework's stack. [-]
        gpus: GPUs of one node that the job uses; None for the whole cluster. [1]
        training: Fields of the training block that differ from one sequence of
            4,096 tokens, in bf16 with Adam. [-]

    Returns:
        The job. [-]
    """
    step = {"seq_len": 4096, "global_batch": 64, **training}
    fields = {"model": model, "cluster": cluster, "framework": framework}
    spec = JobSpec.model_validate({**fields, "training": step, "stack": stack or {}})
    (workload,) = resolve(spec, file="benchmarks/memory", base=Path())
    found = Pricing.candidate(workload)
    return found if gpus is None else resized(found, 1, gpus)
