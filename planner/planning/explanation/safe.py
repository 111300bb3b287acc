"""The price of a plan that fits at the upper end of the memory interval."""

from dataclasses import replace

from planner.job.case import Case
from planner.planning.explanation.changes import Clock
from planner.planning.explanation.relaxations import best_of
from planner.planning.reasons import changes
from planner.specs.answer.result import RankedPlan

SAFE = 0.05
"""Probability beyond the upper end of an interval. [1]"""


def safe_choice(case: Case, best: RankedPlan, clock: Clock) -> str:
    """The fastest plan that is not at risk, beside a best plan that is.

    A plan is safe where the upper end of its memory interval fits: it runs out of
    memory in a twentieth of cases at most. The space is searched under that limit.

    Args:
        case: The job. [-]
        best: Best plan of the job. [-]
        clock: Time for the search. [s]

    Returns:
        One sentence; empty where the best plan is safe. [text]
    """
    if best.estimate.memory.verdict == "fits":
        return ""
    limited = case.edited(lambda job: replace(job, risk=SAFE))
    result = best_of(limited, clock.left)
    if result is None or not result.plans:
        return "no plan was found that is not at risk"
    (safe, *_), step = result.plans, best.estimate.step_time_s.value
    slower = safe.estimate.step_time_s.value / step - 1
    proof = "" if result.status == "optimal" else ", as far as the time allowed to look"
    return (
        f"the fastest plan that is not at risk ({changes(best, safe)}) is "
        f"{slower:.1%} slower{proof}"
    )
