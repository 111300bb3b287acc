"""The price of a plan that fits at the upper end of the memory interval."""

from planner.explanation.changes import Clock, with_capacity
from planner.explanation.relaxations import best_of
from planner.job.case import Case
from planner.planning.reasons import changes
from planner.specs.answer.result import RankedPlan


def safe_choice(case: Case, best: RankedPlan, clock: Clock) -> str:
    """The fastest plan that is not at risk, beside a best plan that is.

    A plan is safe where the upper end of its memory interval fits. With ``high`` the
    upper factor of that interval, a safe plan fits ``capacity / high``. The whole
    space is searched on GPUs of that size.

    Args:
        case: The job. [-]
        best: Best plan of the job. [-]
        clock: Time for the search. [s]

    Returns:
        One sentence; empty where the best plan is safe. [text]
    """
    if best.estimate.memory.verdict == "fits":
        return ""
    high = max(workload.uncertainty.memory.high for workload in case.workloads)
    capacity = case.workloads[0].gpu.memory_capacity / high
    result = best_of(case.edited(with_capacity(capacity)), clock.left)
    if result is None or not result.plans:
        return "no plan was found that is not at risk"
    (safe, *_), step = result.plans, best.estimate.step_time_s.value
    slower = safe.estimate.step_time_s.value / step - 1
    proof = "" if result.status == "optimal" else ", as far as the time allowed to look"
    return (
        f"the fastest plan that is not at risk ({changes(best, safe)}) is "
        f"{slower:.1%} slower{proof}"
    )
