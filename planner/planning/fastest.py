"""The plain optimum beside a plan whose risk is limited: what the risk would buy."""

from collections.abc import Sequence

from planner.cost.workload import Workload
from planner.estimate.estimate import estimate
from planner.job.variants import variants
from planner.planning.layouts import found_layout
from planner.planning.ties import Contender
from planner.search.best_first import search_all
from planner.search.bounds.known_bounds import KnownBounds
from planner.search.outcome import Enough
from planner.search.stop import Stop
from planner.specs.answer.result import Fastest

FOR_THE_LIMIT = 0.7
"""Share of the time for the search under the limit on the risk, at most. [1]"""


def plain_optimum(
    workloads: Sequence[Workload],
    safe: Contender | None,
    stop: Stop,
    bounds: KnownBounds,
) -> Fastest | None:
    """The fastest plan whose predicted memory fits, whatever its risk.

    Args:
        workloads: The job under each framework that may run it.
        safe: The fastest plan under the limit on the risk; none where there is none.
        stop: Ends the search.
        bounds: Bounds of the search under the limit on the risk.

    Returns:
        The plan; the safe one where none is faster, none where no plan was found.
    """
    known = float("inf") if safe is None else safe.step_s
    plain = variants([each.at_risk_of_most(robust=False) for each in workloads])
    outcomes = search_all(
        plain, top=1, known_s=known, enough=Enough(), stop=stop, known=bounds
    )
    plans = sorted(plan for outcome in outcomes for plan in outcome.ranked)
    chosen = safe
    if plans and plans[0].step_s < known:
        outcome = outcomes[plans[0].variant]
        layout = found_layout(outcome, plans[0])
        its = outcome.workload
        chosen = Contender(its, layout, estimate(its, layout))
    if chosen is None:
        return None
    bound = min(outcome.bound_s for outcome in outcomes)
    least = plans[0].step_s if chosen is not safe else known
    return _fastest(chosen, safe, proven=bound >= least)


def _fastest(one: Contender, safe: Contender | None, *, proven: bool) -> Fastest:
    return Fastest(
        status="optimal" if proven else "feasible",
        layout=one.layout,
        settings=one.workload.chosen,
        framework=one.workload.framework.name,
        step_time_s=one.step_s,
        faster=0.0 if safe is None else 1 - one.step_s / safe.step_s,
        oom_probability=one.estimate.memory.oom_probability or 0.0,
        peak_device_gib=one.estimate.memory.peak_device_gib.value,
    )


def no_safe_plan(fastest: Fastest | None, risk: float) -> tuple[str, ...]:
    """Say that no layout is within the limit on the risk, and the ways out.

    Args:
        fastest: The plain optimum, if there is one. [-]
        risk: The limit. [1]

    Returns:
        Sentences; none where no layout fits at all. [text]
    """
    if fastest is None:
        return ()
    least = min(max(-(-fastest.oom_probability * 100 // 1) / 100, risk), 0.99)
    return (
        f"No layout runs out of memory in at most {risk:.2g} of cases "
        f"(search.memory_risk); the fastest whose prediction fits does in "
        f"{fastest.oom_probability:.0%}, at {fastest.step_time_s:.3g} s a step.",
        f"--set search.memory_risk={least:.2g} admits that plan, and --robust off asks "
        "for the predicted memory alone.",
    )
