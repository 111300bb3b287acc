"""Outer tuples priced and bounded per second: ``python -m benchmarks.pricing``.

The space of Llama 3.1 405B on 16,384 GPUs, one process. Numpy's own threads are
not used: operations on columns are element by element.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import perf_counter

from benchmarks.machine import machine
from benchmarks.simulator import best_of
from planner.cost.pricing import Pricing
from planner.cost.table.table import fill_table
from planner.job.resolve import resolve
from planner.search.bounds.bounds import space_bounds
from planner.search.space.space import enumerate_space
from planner.specs.reading.read import read_spec

JOB = Path(__file__).resolve().parents[1] / "configs/jobs/llama-3.1-405b-16k-h100.yaml"
RUNS = 5
"""Calls of which the fastest counts. [1]"""


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Time a call the first time, with cold caches, and at its best.

    Args:
        call: Function to time.

    Returns:
        First and best wall time. [s]
    """
    start = perf_counter()
    call()
    return perf_counter() - start, best_of(RUNS, call)


def main() -> None:
    """Print one line per step and framework."""
    print(machine())
    for job in resolve(read_spec(JOB), file=JOB.name, base=JOB.parent):
        pricing = Pricing.candidate(job)
        space = enumerate_space(pricing)
        table = fill_table(pricing, space.meshes, space.recompute)
        print(f"{JOB.stem}, {pricing.framework.name}: ", end="")
        print(f"{len(table):,} meshes, {len(space):,} candidates")
        steps: dict[str, tuple[int, Callable[[], object]]] = {
            "enumerate": (len(space), partial(enumerate_space, pricing)),
            "price": (
                len(table),
                partial(fill_table, pricing, space.meshes, space.recompute),
            ),
            "bound": (len(space), partial(space_bounds, table, space)),
        }
        for name, (count, call) in steps.items():
            first, best = timed(call)
            print(f"  {name:10} first {first:6.2f} s, best {best:6.2f} s", end="")
            print(f", {count / best:12,.0f} a second")
    print(f"peak RSS {getrusage(RUSAGE_SELF).ru_maxrss / 2**10:,.0f} MiB")


if __name__ == "__main__":
    main()
