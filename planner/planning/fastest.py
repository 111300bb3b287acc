"""Faster plans beside one whose risk is limited: what more risk would buy."""

from collections.abc import Sequence
from dataclasses import replace

from planner.cost.estimate.estimate import estimate
from planner.cost.workload import Workload
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
LAXER = (0.2, 0.1)
"""Limits on the risk between none and the job's own, ours. [1]"""
LEAST_GAIN = 0.01
"""Share of the step that a laxer limit must save to be told, ours. [1]"""


def plain_optimum(
    workloads: Sequence[Workload],
    safe: Contender | None,
    stop: Stop,
    bounds: KnownBounds,
) -> Fastest | None:
    """The fastest plan whose predicted memory fits, whatever its risk."""
    known_s = float("inf") if safe is None else safe.step_s
    plainly = [each.at_risk_of_most(robust=False) for each in workloads]
    found, bound_s = _searched(plainly, known_s, Enough(), stop, bounds)
    chosen = found or safe
    if chosen is None:
        return None
    least_s = known_s if found is None else found.step_s
    return _fastest(chosen, safe, proven=bound_s >= least_s)


def riskier(
    workloads: Sequence[Workload],
    safe: Contender | None,
    plain: Fastest | None,
    enough: Enough,
    stop: Stop,
    bounds: KnownBounds,
) -> tuple[Fastest, ...]:
    """The fastest plans under laxer limits on the risk, up to the plain optimum's.

    Returns:
        Plans, the strictest limit first, each faster than the one before by what is
        worth telling; none on mixed fleets, where no search knows another's bounds.
    """
    if plain is None or any(each.pools for each in workloads):
        return ()
    known_s = float("inf") if safe is None else safe.step_s
    found: list[Fastest] = []
    for limit in LAXER:
        gains = plain.step_time_s < known_s * (1 - LEAST_GAIN)
        most = min([plain, *found], key=lambda one: one.oom_probability)
        if gains and workloads[0].search.memory_risk < limit < most.oom_probability:
            jobs = [replace(each, risk=limit) for each in workloads]
            one, bound_s = _searched(jobs, known_s, enough, stop, bounds)
            if one is None:
                break
            found.append(_fastest(one, safe, proven=bound_s >= one.step_s))
    return _worth_telling(found[::-1], known_s)


def _worth_telling(plans: Sequence[Fastest], known_s: float) -> tuple[Fastest, ...]:
    """Plans that are faster than the first admitted, and than the one before."""
    told: list[Fastest] = []
    for one in plans:
        if one.step_time_s < known_s * (1 - LEAST_GAIN):
            told.append(one)
            known_s = one.step_time_s
    return tuple(told)


def _searched(
    workloads: Sequence[Workload],
    known_s: float,
    enough: Enough,
    stop: Stop,
    bounds: KnownBounds,
) -> tuple[Contender | None, float]:
    """The fastest plan below a step, and a bound on every plan. [s]."""
    outcomes = search_all(
        variants(workloads),
        top=1,
        known_s=known_s,
        enough=enough,
        stop=stop,
        known=bounds,
    )
    bound_s = min(outcome.bound_s for outcome in outcomes)
    plans = sorted(plan for outcome in outcomes for plan in outcome.ranked)
    if not plans or plans[0].step_s >= known_s:
        return None, bound_s
    outcome = outcomes[plans[0].variant]
    layout = found_layout(outcome, plans[0])
    its = outcome.pricing
    return Contender(its, layout, estimate(its, layout)), bound_s


def _fastest(one: Contender, safe: Contender | None, *, proven: bool) -> Fastest:
    return Fastest(
        status="optimal" if proven else "feasible",
        layout=one.layout,
        settings=one.pricing.chosen,
        framework=one.pricing.framework.name,
        step_time_s=one.step_s,
        faster=0.0 if safe is None else 1 - one.step_s / safe.step_s,
        oom_probability=one.estimate.memory.oom_probability or 0.0,
        peak_device_gib=one.estimate.memory.peak_device_gib.value,
    )


def no_safe_plan(
    fastest: Fastest | None, between: Sequence[Fastest], risk: float
) -> tuple[str, ...]:
    """Say that no layout is within the limit on the risk, and the ways out."""
    if fastest is None:
        return ()
    steps = (
        f"{one.step_time_s:.3g} s a step at {one.oom_probability:.0%}"
        for one in (*between, fastest)
    )
    first = (*between, fastest)[0]
    least = min(max(first.limit, risk), 0.99)
    return (
        f"No layout runs out of memory in at most {risk:.2g} of cases "
        f"(search.memory_risk); the fastest whose prediction fits: {', '.join(steps)}.",
        f"--set search.memory_risk={least:.2g} admits "
        f"{'the first' if between else 'that plan'}, and --robust off asks for the "
        "predicted memory alone; planner tune tries them in short runs.",
    )
