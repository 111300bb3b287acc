"""The price of a limit on the risk: ``python -m benchmarks.search.risk [JOBS]``.

Prints how much slower the fastest plan within ``search.memory_risk`` is than the
fastest whose predicted memory fits, of every job in ``configs/jobs``.
"""

import sys
from pathlib import Path
from statistics import median

from planner.economics.phases import phases_of
from planner.job.loading import load
from planner.planning.optimize import optimize
from planner.specs.answer.result import Result

JOBS = Path(__file__).resolve().parents[2] / "configs" / "jobs"
SECONDS = 120.0
"""Longest time for one job. [s]"""


def main() -> None:
    """Plan every job, and print a row for each and the median price."""
    files = [Path(name) for name in sys.argv[1:]] or sorted(JOBS.glob("*.yaml"))
    print("# The price of a limit on the risk of running out of memory\n")
    print("Written by `python -m benchmarks.search.risk`.\n")
    print("| job | slower than the plain optimum | its risk | the plan's |")
    print("|---|---|---|---|")
    prices = []
    for file in files:
        job = phases_of(load(file, ()))[0].job
        result = optimize(job.workloads, robust=True, time_limit=SECONDS)
        price = price_of(result)
        prices += [] if price is None else [price]
        print(f"| {file.stem} | {_words(result, price)} |", flush=True)
    print(f"\nMedian: {median(prices):.1%} slower than the plain optimum.")


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


def _words(result: Result, price: float | None) -> str:
    fastest = result.fastest
    if fastest is None:
        return "nothing fits | | "
    if price is None:
        return f"no plan within the limit | {fastest.oom_probability:.0%} | "
    own = result.plans[0].estimate.memory.oom_probability or 0.0
    return f"{price:.1%} | {fastest.oom_probability:.0%} | {own:.1%}"


if __name__ == "__main__":
    main()
