"""The flow of a search by the objective of a job."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from planner.cost.workload import Workload
from planner.job.variants import variants
from planner.planning.optimize import Progress, optimize
from planner.search.aims.least_peak import LeastPeak, least_peak
from planner.search.stop import Stop
from planner.specs.aim import Aim
from planner.specs.answer.result import Objective, Result, Status

GIB, INF = 2.0**30, float("inf")
FOR_THE_PEAK = 0.7
"""Share of the time in which the least peak is sought, before the fastest plan. [1]"""


def optimize_for(
    aim: Aim,
    workloads: Sequence[Workload],
    *,
    stop: Stop,
    top: int = 4,
    robust: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Result:
    """Search the plan that an aim makes best.

    For memory the least peak is proven first. Then the fastest plan is sought among
    the plans that need no more.

    Args:
        aim: The amount that is sought. [-]
        workloads: The job under each framework that may run it. [-]
        stop: Ends the search. [-]
        top: Plans to list. [1]
        robust: Put the safest tied plan first, where the step is sought.
        progress: Called about ten times a second with the state of a search.

    Raises:
        BadInputError: The limits leave no legal layout.
    """
    aiming = tuple(replace(workload, aim=aim) for workload in workloads)
    if aim.name != "memory":
        return optimize(aiming, top=top, robust=robust, progress=progress, stop=stop)
    began = time.monotonic()
    peak = least_peak(variants(aiming), stop.within(FOR_THE_PEAK * stop.left))
    limited = replace(aim, most_bytes=peak.found)
    held = tuple(replace(workload, aim=limited) for workload in workloads)
    seconds = time.monotonic() - began
    found = optimize(held, top=top, progress=progress, stop=stop)
    return _of_memory(found, peak, seconds)


def _of_memory(found: Result, peak: LeastPeak, seconds: float) -> Result:
    """The fastest plan within a peak as the answer on the least peak."""
    search = found.search.model_copy(
        update={
            "seconds": found.search.seconds + seconds,
            "solved": found.search.solved + peak.visited,
        }
    )
    if not found.plans:
        status: Status = found.status if peak.is_proven else "unknown"
        least = peak.found / GIB if peak.is_proven and peak.found < INF else 0.0
        none = Objective(name="memory", value=0.0, bound=least, gap=1.0)
        empty = {"objective": none, "status": status, "search": search}
        return found.model_copy(update=empty)
    own = found.plans[0].estimate.memory.peak_device_gib.value
    value = peak.found / GIB if peak.found < INF else own
    bound = min(peak.bound / GIB, value)
    objective = Objective(
        name="memory", value=value, bound=bound, gap=max(0.0, 1.0 - bound / value)
    )
    proven = peak.is_proven and found.status == "optimal"
    said = found.warnings
    if peak.is_proven and not proven:
        said += (
            "no plan needs less memory, but one that needs as little may be faster",
        )
    return found.model_copy(
        update={
            "objective": objective,
            "status": "optimal" if proven else "feasible",
            "search": search,
            "warnings": said,
        }
    )
