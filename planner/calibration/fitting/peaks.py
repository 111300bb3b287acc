"""A user's own peaks of memory beside their predictions, and the factors they give."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.calibration.fitting.factors import (
    likeliest_factor,
    other_factor,
    spreads,
)
from planner.calibration.mapping.case import Case
from planner.job.calibration_file import Job
from planner.planning.prediction.predict import predict

FARTHEST = 4.0
"""Times between measured and predicted peak beyond which a row is no evidence. [1]"""


@dataclass(frozen=True)
class Peak:
    """A measured peak of memory.

    Attributes:
        job: Model and campaign of the run. [-]
        allocated: True where the counter tells of allocated memory alone. [-]
        log_ratio: log(measured / predicted) of what the allocator holds. [1]
    """

    job: Job
    allocated: bool
    log_ratio: float


@dataclass(frozen=True)
class Held:
    """Factors of memory.

    Attributes:
        memory: Of allocated memory. [1]
        reserved: Of reserved over allocated memory. [1]
        rows: Measured peaks. [1]
    """

    memory: float = 1.0
    reserved: float = 1.0
    rows: int = 0


def peak_of(case: Case, job: Job) -> Peak | None:
    """The peak of a measured row.

    A driver's count tells nothing once caches have filled the card.

    Returns:
        The peak; None where the row has none, or one too far from its price. [-]
    """
    measured = case.measured
    if measured.memory_gib is None or measured.oom:
        return None
    memory = predict(case.workload, case.layout).estimate.memory
    some = {"first": memory.stages[:1], "last": memory.stages[-1:]}
    stages = some.get(measured.ranks, memory.stages)
    allocated = measured.counter in {"allocated", "active"}
    driver = measured.counter == "device"
    stage = max(stages, key=lambda s: s.allocated if allocated else s.device)
    if driver and stage.device >= memory.capacity_gib:
        return None
    beside = stage.communication + stage.context if driver else 0.0
    caches = 0.0 if allocated else stage.fragmentation
    held, predicted = measured.memory_gib - beside, stage.allocated + caches
    if not predicted / FARTHEST <= held <= predicted * FARTHEST:
        return None
    return Peak(job, allocated, float(np.log(held / predicted)))


def held_factors(peaks: Sequence[Peak]) -> tuple[dict[Job, Held], Held]:
    """Factors of memory of the measured jobs, and of every other job."""
    jobs = dict.fromkeys(peak.job for peak in peaks)
    by_job = {job: [p for p in peaks if p.job == job] for job in jobs}
    logs = {job: _logs(own) for job, own in by_job.items()}
    each = {job: _held(logs[job], len(own)) for job, own in by_job.items()}
    tensors = [(log.tensors, len(by_job[job])) for job, log in logs.items()]
    caches = [(log.caches, log.cached) for log in logs.values() if log.cached]
    others = _Logs(
        other_factor(tensors, spreads().allocated),
        other_factor(caches, spreads().reserved),
    )
    return each, _held(others, len(peaks))


@dataclass(frozen=True)
class _Logs:
    """Logs of both factors, and the peaks that tell of caches. [1]."""

    tensors: float
    caches: float
    cached: int = 0


def _logs(peaks: Sequence[Peak]) -> _Logs:
    """Logs of both factors of a job.

    A reserved peak above its prediction tells of caches; one below, of tensors. Each
    layout has a fullest moment of its own, so that one peak may be far from the others.
    """
    counted = np.array([p.log_ratio for p in peaks if p.allocated])
    cached = np.array([p.log_ratio for p in peaks if not p.allocated])
    whole = likeliest_factor(cached, spreads().reserved) if len(cached) else 0.0
    tensors = min(whole, 0.0)
    if len(counted):
        tensors = likeliest_factor(counted, spreads().allocated)
    return _Logs(tensors, whole - tensors if len(cached) else 0.0, len(cached))


def _held(logs: _Logs, rows: int) -> Held:
    return Held(float(np.exp(logs.tensors)), float(np.exp(logs.caches)), rows)
