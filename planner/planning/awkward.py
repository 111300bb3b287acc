"""Numbers of a job that divide badly, and the nearest that train faster."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd

from planner.cost.workload import Workload
from planner.job.variants import variants
from planner.search.best_first import search_all
from planner.search.outcome import Enough
from planner.search.stop import Stop

SHARED = 8
"""A batch is awkward if its largest divisor shared with the GPUs is below the smaller
of both numbers over this. [1]"""
FAR = 0.25
"""Largest change of a batch that is tried, as a share. [1]"""
MOST_TRIED = 4
"""Batches that are planned, at most. [1]"""
WORTH = 0.05
"""Least gain in tokens per second that is told. [1]"""
MOST_OF_IT = 0.9
"""A nearer batch with this part of the best rate is preferred. [1]"""
QUICK = Enough(work=200.0)
"""Work of the search of one other batch. [visit]"""


@dataclass(frozen=True)
class Other:
    """Another batch, and what it brings.

    Attributes:
        batch: Sequences in a step. [sequence]
        rate: Sequences per second over those of the job's own batch. [1]
    """

    batch: int
    rate: float


def is_awkward(batch: int, gpus: int) -> bool:
    """True where batch and GPUs share no large divisor.

    Args:
        batch: Sequences in a step. [sequence]
        gpus: GPUs in service. [1]

    Returns:
        True where few splits of the batch over replicas are whole. [-]
    """
    return gcd(batch, gpus) * SHARED < min(batch, gpus)


def near_batches(batch: int, gpus: int) -> list[int]:
    """Batches near an awkward one that share a larger divisor with the GPUs.

    For every divisor of the GPUs, the multiples next to the batch.

    Args:
        batch: Sequences in a step. [sequence]
        gpus: GPUs in service. [1]

    Returns:
        At most ``MOST_TRIED`` batches, the largest shared divisor first. [sequence]
    """
    steps = [step for step in range(gcd(batch, gpus) + 1, gpus + 1) if gpus % step == 0]
    near = {(batch // step + up) * step for step in steps for up in (0, 1)}
    allowed = [b for b in near if b > 0 and 0 < abs(b - batch) <= FAR * batch]
    ranked = sorted(allowed, key=lambda b: (-gcd(b, gpus), abs(b - batch)))
    return ranked[:MOST_TRIED]


def awkward(
    workloads: Sequence[Workload], step_s: float, stop: Stop
) -> tuple[str, ...]:
    """Name the nearest batch that trains faster, where the job's own divides badly.

    Args:
        workloads: The job under each framework that may run it.
        step_s: Step of the fastest plan. [s]
        stop: Ends the searches.

    Returns:
        One sentence, empty where no other batch is worth it. [text]
    """
    first = workloads[0]
    batch, gpus = first.sequences, first.fleet_gpus
    if stop.reached or first.training.batch_ramp or not is_awkward(batch, gpus):
        return ()
    batches = near_batches(batch, gpus)
    worth = {each: step_s * each / batch / (1 + WORTH) for each in batches}
    steps = [(each, _step_s(workloads, each, worth[each], stop)) for each in batches]
    tried = [
        Other(each, each * step_s / (batch * step)) for each, step in steps if step
    ]
    if not tried:
        return ()
    best = max(other.rate for other in tried)
    good = [other for other in tried if other.rate >= MOST_OF_IT * best]
    chosen = min(good, key=lambda other: abs(other.batch - batch))
    return (
        f"a batch of {batch:,} divides badly over {gpus:,} GPUs: {chosen.batch:,} "
        f"sequences train {chosen.rate:.2f} times as many tokens per second",
    )


def _step_s(
    workloads: Sequence[Workload], batch: int, below_s: float, stop: Stop
) -> float | None:
    """Step of a plan with another batch; None where none is below a time. [s]."""
    update = {"global_batch": batch, "global_batch_tokens": None}
    others = [
        replace(one, training=one.training.model_copy(update=update))
        for one in workloads
    ]
    outcomes = search_all(
        variants(others), top=1, known_s=below_s, enough=QUICK, stop=stop
    )
    steps = [found.step_s for outcome in outcomes for found in outcome.ranked]
    return min(steps, default=None)
