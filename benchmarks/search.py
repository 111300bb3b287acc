"""What the search of every job in configs/jobs costs: ``python -m benchmarks.search``.

One line per job and framework, each in a fresh process, with one plan to list.
The time to the first plan is known to a tenth of a second.
Names of jobs may follow, and ``--time-limit SECONDS``.
"""

import argparse
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import perf_counter

from benchmarks.machine import machine, peak_memory
from planner.cost.table import fill_table
from planner.cost.workload import Workload
from planner.resolve import resolve
from planner.search.best_first import Progress, search
from planner.search.bounds import space_bounds
from planner.search.space import enumerate_space
from planner.specs.read import read_spec

JOBS = Path(__file__).resolve().parents[1] / "configs" / "jobs"
HEADINGS = (
    "job / framework", "meshes", "candidates", "enumerate", "price", "bound",
    "first plan", "proof", "gap", "step", "peak RSS",
)  # fmt: skip
WIDTHS = (42, 8, 11, 10, 8, 8, 11, 9, 8, 9, 9)


@dataclass
class Watch:
    """Notes when the first plan was there; progress comes ten times a second."""

    started: float
    first: float | None = None

    def __call__(self, progress: Progress) -> None:
        """Look at one report.

        Args:
            progress: Where the search stands.
        """
        if self.first is None and progress.incumbent_s is not None:
            self.first = perf_counter() - self.started


def workloads(path: Path) -> tuple[Workload, ...]:
    """Resolve one job file.

    Args:
        path: The YAML file.

    Returns:
        The job under each framework that may run it.
    """
    return resolve(read_spec(path), file=path.name, base=path.parent)


def tiers(workload: Workload) -> tuple[int, int, list[float]]:
    """Time the three steps before the search proper.

    Args:
        workload: The job.

    Returns:
        Meshes and candidates [1]; wall time to enumerate, price and bound. [s]
    """
    marks = [perf_counter()]
    space = enumerate_space(workload)
    marks.append(perf_counter())
    table = fill_table(workload, space.meshes, space.recompute)
    marks.append(perf_counter())
    space_bounds(table, space)
    marks.append(perf_counter())
    spans = [late - early for early, late in pairwise(marks)]
    return len(table), len(space), spans


def measure(path: Path, index: int, time_limit: float) -> list[str]:
    """Search one job under one framework, in this process.

    Args:
        path: The YAML file.
        index: Which of the job's frameworks. [1]
        time_limit: Wall time of the search. [s]

    Returns:
        The cells of a row. [text]
    """
    workload = workloads(path)[index]
    meshes, candidates, spans = tiers(workload)
    watch = Watch(perf_counter())
    outcome = search(workload, top=1, time_limit=time_limit, progress=watch)
    best = outcome.ranked[0].step_s if outcome.ranked else None
    first = watch.first if watch.first is not None else outcome.seconds
    gap = 1 - outcome.bound_s / best if best else 0.0
    return [
        f"{path.stem} / {workload.framework.name}",
        f"{meshes:,}",
        f"{candidates:,}",
        *(f"{span:.2f} s" for span in spans),
        f"{first:.1f} s" if best else "none",
        "open" if outcome.timed_out else f"{outcome.seconds:.1f} s",
        f"{gap:.2%}",
        f"{best:.3f} s" if best else "none",
        f"{peak_memory() / 2**20:,.0f} MiB",
    ]


def rows(paths: Sequence[Path], time_limit: float) -> Iterator[list[str]]:
    """Measure every job and framework, each in a process of its own.

    Args:
        paths: The YAML files.
        time_limit: Wall time of each search. [s]

    Yields:
        The cells of a row. [text]
    """
    spawn = multiprocessing.get_context("spawn")
    for path in paths:
        for index in range(len(workloads(path))):
            with ProcessPoolExecutor(1, mp_context=spawn) as pool:
                yield pool.submit(measure, path, index, time_limit).result()


def line(cells: Sequence[str]) -> str:
    """Put cells under each other.

    Args:
        cells: One row. [text]

    Returns:
        The line. [text]
    """
    name, *numbers = zip(cells, WIDTHS, strict=True)
    return f"{name[0]:{name[1]}}" + "".join(f"{c:>{w}}" for c, w in numbers)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="*", help="names in configs/jobs; all if none")
    parser.add_argument("--time-limit", type=float, default=600.0, help="seconds")
    asked = parser.parse_args()
    paths = [JOBS / f"{name}.yaml" for name in asked.jobs] or sorted(
        JOBS.glob("*.yaml")
    )
    print(machine())
    print(line(HEADINGS))
    for row in rows(paths, asked.time_limit):
        print(line(row), flush=True)


if __name__ == "__main__":
    main()
