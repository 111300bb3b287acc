"""The price of a limit on the risk: ``python -m benchmarks.search.risk [JOBS]``.

Prints how much slower the fastest plan within ``search.memory_risk`` is than the
fastest whose predicted memory fits, of every job in ``configs/jobs``, also under laxer
limits.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from planner.cost.workload import Workload
from planner.frameworks.sanity import compared
from planner.hardware.reading.files import SHIPPED
from planner.job.loading import load
from planner.planning.economics.phases import phases_of
from planner.planning.optimize import optimize
from planner.questions.tune.flow import BUDGET
from planner.questions.tuning.belief import Predicted
from planner.questions.tuning.choice import decide
from planner.specs.answer.result import Result

JOBS = Path(__file__).resolve().parents[2] / "configs" / "jobs"
SECONDS = 120.0
"""Longest time for one search. [s]"""
LAXER = (0.1, 0.2)
"""Limits beside the default. [1]"""
HEAD = """# The price of a limit on the risk of running out of memory

Written by `python -m benchmarks.search.risk`. Steps of the fastest plan within the
default limit of 5 %, and within laxer ones, over that of the fastest plan whose
predicted memory fits. *Won back* is by how much `planner tune` is expected to shorten
the step of the fastest plan within the limit in at most five short runs, which show
what fits: memory is drawn from the distribution of the risk, one factor for all plans
of a job, and steps are as predicted.

| job | over plain optimum | its risk | the plan's | at 10 % | at 20 % | won back |
|---|---|---|---|---|---|---|"""


def main() -> None:
    """Plan every job, and print a row for each and the median prices."""
    files = [Path(name) for name in sys.argv[1:]] or sorted(JOBS.glob("*.yaml"))
    print(HEAD)
    prices = []
    for file in files:
        workloads = phases_of(load(file, (), catalog=SHIPPED))[0].job.workloads
        result = optimize(workloads, robust=True, time_limit=SECONDS)
        price = price_of(result)
        laxer = [] if price is None else [*_laxer(workloads, result), won_back(result)]
        prices += [] if price is None else [(price, *laxer)]
        told = "".join(f" {one:.1%} |" for one in laxer)
        print(f"| {file.stem} | {_words(result, price)} |{told}", flush=True)
    *slower, won = (f"{median(column):.1%}" for column in zip(*prices, strict=True))
    middle = ", ".join(slower)
    print(f"\nMedian: {middle} slower than the plain optimum, at 5, 10 and 20 %;")
    print(f"{won} won back.")


def price_of(result: Result) -> float | None:
    """Price of the limit: step of the fastest admitted plan over the plain optimum's.

    Args:
        result: Answer of a robust search. [-]

    Returns:
        Share above the plain optimum's step; none where no plan is admitted. [1]
    """
    if result.fastest is None or not result.plans:
        return None
    return 1 / (1 - result.fastest.faster) - 1


def won_back(result: Result) -> float:
    """Share of the step that short runs of riskier plans are expected to save.

    Args:
        result: Answer of a robust search with a plan. [-]

    Returns:
        Mean over the factor by which memory is off, steps as predicted. [1]
    """
    assert result.fastest is not None
    first = min(
        (plan.estimate for plan in result.plans), key=lambda one: one.step_time_s.value
    )
    own = first.memory.oom_probability or 0.0
    plans = [Predicted("first", (first.step_time_s.value,), own)]
    for at, one in enumerate((*result.riskier, result.fastest)):
        plans.append(Predicted(str(at), (one.step_time_s,), one.oom_probability))
    ends = sorted({own, *(plan.risk for plan in plans if plan.risk > own), 1.0})
    saved = (
        (high - low) * (1 - _tuned(plans, low) / plans[0].step_s)
        for low, high in pairwise(ends)
    )
    return sum(saved) / (1 - own) if own < 1 else 0.0


def _tuned(plans: Sequence[Predicted], largest: float) -> float:
    """Best step measured where plans up to a risk fit, and no others. [s]."""
    fits = {plan.name: plan.step_s for plan in plans if plan.risk <= largest}
    measured: dict[str, float] = {}
    short: list[str] = []
    told = decide(plans, measured, budget=BUDGET, spread=compared().spread)
    while told.next is not None:
        if told.next in fits:
            measured[told.next] = fits[told.next]
        else:
            short.append(told.next)
        told = decide(
            plans, measured, short, short=short, budget=BUDGET, spread=compared().spread
        )
    return min(measured.values())


def _laxer(workloads: tuple[Workload, ...], told: Result) -> Iterator[float]:
    """Prices of the laxer limits. [1]."""
    assert told.fastest is not None
    for risk in LAXER:
        jobs = [replace(each, risk=risk) for each in workloads]
        plans = optimize(jobs, top=1, time_limit=SECONDS).plans
        steps = (plan.estimate.step_time_s.value for plan in plans)
        yield min(steps) / told.fastest.step_time_s - 1


def _words(result: Result, price: float | None) -> str:
    fastest = result.fastest
    if fastest is None:
        return "nothing fits | | | | "
    if price is None:
        return f"no plan within the limit | {fastest.oom_probability:.0%} | "
    own = result.plans[0].estimate.memory.oom_probability or 0.0
    return f"{price:.1%} | {fastest.oom_probability:.0%} | {own:.1%}"


if __name__ == "__main__":
    main()
