"""Price of each limit of the search, and gain of better machines."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from planner.cost.estimate.estimate import estimate
from planner.cost.workload import Workload
from planner.hardware.calibration import GemmCalibration, GpuCalibration
from planner.hardware.catalog import Cluster
from planner.job.case import Case, Edit
from planner.planning.explanation.changes import Clock, on_cluster, on_kernels
from planner.planning.explanation.limits import InForce, limits_in_force, widened
from planner.planning.explanation.relaxations import best_of
from planner.planning.reasons import changes
from planner.specs.answer.explanation import Price, Sensitivity
from planner.specs.answer.result import RankedPlan

FASTER_NIC = 1.1
MORE_MEMORY = 16e9
"""Memory that a better GPU has beyond the job's GPU. [B]"""
BETTER_GEMM = 1.01
WIDER_DOMAIN = 2
SAME = 5e-5
"""Share of the step below which a gain counts as none. [1]"""


def limit_prices(case: Case, best: RankedPlan, clock: Clock) -> tuple[Price, ...]:
    """Search again without each limit that narrows the space of layouts.

    Args:
        case: The job. [-]
        best: Best plan of the job. [-]
        clock: Time for the searches, each limit an equal share. [s]

    Returns:
        Step time of the best plan without each limit; never longer, since a plan
        remains legal when a limit goes.
    """
    narrowing = [
        limit
        for limit in limits_in_force(case)
        if limit.field.startswith(("search.", "framework")) and limit.assignments
    ]
    return tuple(
        _price(case, best, limit, clock.share(left))
        for left, limit in zip(range(len(narrowing), 0, -1), narrowing, strict=True)
    )


def _price(case: Case, best: RankedPlan, limit: InForce, seconds: float) -> Price:
    wider = widened(case, limit.assignments)
    step = best.estimate.step_time_s.value
    result = None if wider is None else best_of(wider, seconds, known_s=step)
    found, other = step, ""
    if result is not None and result.plans:
        found = min(step, result.plans[0].estimate.step_time_s.value)
        other = changes(best, result.plans[0])
    gain = 1 - found / step
    proven = result is not None and result.status == "optimal"
    unsure = "" if proven else ", as far as the time allowed to look"
    unsure = (
        unsure if seconds > 0 else " for all that is known: no time was left to look"
    )
    wins = f"costs {gain:.1%}: {found:.3f} s without it, with {other}"
    costs = wins if gain > SAME else "free"
    return Price(
        limit=limit.limit.limit,
        effect=f"{costs}{unsure}",
        step_time_s=found,
        gain=gain,
    )


@dataclass(frozen=True)
class Better:
    """One better number of the machine."""

    words: str
    edit: Edit


def betters(workload: Workload) -> Iterator[Better]:
    """Improvements of the machine that are priced.

    Yields:
        NICs, memory, matrix products; a wider scale-up domain where the job has GPUs
        outside one domain.
    """
    yield Better("+10 % NIC bandwidth", _edit(_faster_nic))
    yield Better("+16 GB HBM", _edit(_more_memory))
    yield Better("+1 % GEMM efficiency", _better_gemm)
    if workload.gpus > workload.topology.cluster.node.scale_up_domain:
        yield Better("2x scale-up domain", _edit(_wider_domain))


def _edit(change: Callable[[Cluster], Cluster]) -> Edit:
    return lambda workload: on_cluster(workload, change)


def _faster_nic(cluster: Cluster) -> Cluster:
    faster = {"bandwidth": cluster.nic.bandwidth * FASTER_NIC}
    return replace(cluster, nic=cluster.nic.model_copy(update=faster))


def _more_memory(cluster: Cluster) -> Cluster:
    more = {"memory_capacity": cluster.gpu.memory_capacity + MORE_MEMORY}
    return replace(cluster, gpu=cluster.gpu.model_copy(update=more))


def _wider_domain(cluster: Cluster) -> Cluster:
    wider = {"scale_up_domain": cluster.node.scale_up_domain * WIDER_DOMAIN}
    return replace(cluster, node=cluster.node.model_copy(update=wider))


def _better_gemm(workload: Workload) -> Workload:
    return on_kernels(workload, _with_better_gemm)


def _with_better_gemm(measured: GpuCalibration) -> GpuCalibration:
    def better(entry: GemmCalibration) -> GemmCalibration:
        efficiency = min(1.0, entry.efficiency * BETTER_GEMM)
        return entry.model_copy(update={"efficiency": efficiency})

    changed = {
        name: {dtype: better(entry) for dtype, entry in getattr(measured, name).items()}
        for name in ("gemm", "grouped_gemm")
    }
    return measured.model_copy(update=changed)


def sensitivities(
    case: Case, workload: Workload, best: RankedPlan, clock: Clock
) -> tuple[Sensitivity, ...]:
    """Price the best plan on better machines, and search there for another.

    Args:
        case: The job. [-]
        workload: The job that the best plan is for. [-]
        best: Best plan of the job. [-]
        clock: Time for the searches, each an equal share. [s]
    """
    every = list(betters(workload))
    return tuple(
        _sensitivity(case, workload, best, better, clock.share(left))
        for left, better in zip(range(len(every), 0, -1), every, strict=True)
    )


def _sensitivity(
    case: Case, workload: Workload, best: RankedPlan, better: Better, seconds: float
) -> Sensitivity:
    step = best.estimate.step_time_s.value
    same = estimate(better.edit(workload), best.layout).step_time_s.value
    there = case.edited(better.edit)
    result = best_of(there, seconds, known_s=same)
    found = same
    if result is not None and result.plans:
        found = min(same, result.plans[0].estimate.step_time_s.value)
    wins = found < same * (1 - SAME)
    effect = f"this plan {_saved(1 - same / step)}"
    if wins:
        effect += f"; another would win there, {_saved(1 - found / step)}"
    elif result is None or result.status != "optimal":
        effect += "; no other was found in the time there was"
    return Sensitivity(
        change=better.words,
        effect=effect,
        step_time_s=same,
        gain=1 - same / step,
        best_step_time_s=found,
        best_gain=1 - found / step,
        another_wins=wins,
    )


def _saved(gain: float) -> str:
    """A share of the step saved, in words."""
    if abs(gain) < SAME:
        return "no faster"
    return f"{abs(gain):.2%} {'faster' if gain > 0 else 'slower'}"
