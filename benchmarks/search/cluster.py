"""One search on 1, 2 and 4 Dask workers: ``python -m benchmarks.search.cluster``.

Prints the page. Needs the extra [distributed].
"""

import argparse
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import planner
from benchmarks.machine import machine
from benchmarks.search.cases import ROOT
from planner.search import first_tier

JOB = "llama-3.1-70b-32-h100"
"""A job whose full space is proven within seconds. [text]"""
MESHES = 64
"""Meshes of a part, so that a job of seconds has many. [1]"""
HEAD = """# One search on Dask workers

Written by `python -m benchmarks.search.cluster`: {machine}.
The full space of {job} in parts of {meshes} meshes, one thread a worker.
*Plan and bound* are compared bit by bit with the search of one process. A part that is
done twice was lost with its worker after it was done.
"""
WORKERS = (1, 2, 4)
KILLED_AFTER = 8
"""Parts that are back when a worker is killed. [1]"""


def main() -> None:
    """Search without workers, with 1, 2 and 4, and with one of 4 killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", default=JOB)
    given = parser.parse_args()
    first_tier.PART, first_tier.PARALLEL_FROM = MESHES, 1
    alone, seconds = answer(given.job, None)
    print(HEAD.format(machine=machine(), job=given.job, meshes=MESHES))
    print("| workers | plan and bound | time | parts | done twice |")
    print("|---|---|---|---|---|")
    print(f"| none | the first | {seconds:.1f} s | - | - |", flush=True)
    for count in WORKERS:
        print(line(given.job, count, alone, kill=False), flush=True)
    print(line(given.job, WORKERS[-1], alone, kill=True), flush=True)


def line(job: str, workers: int, alone: str, *, kill: bool) -> str:
    """Search on so many workers, as a row of the table.

    Args:
        job: Name of a job in configs/jobs. [text]
        workers: Processes of a thread each. [1]
        alone: Answer without workers. [text]
        kill: True to kill the first worker on the way.

    Returns:
        Markdown. [text]
    """
    with cluster(workers, KILLED_AFTER if kill else 0) as (address, done):
        found, seconds = answer(job, address)
    twice = sum(times - 1 for times in done.values())
    share = f"{twice} ({twice / max(len(done), 1):.1%})"
    name = f"{workers}, one killed" if kill else str(workers)
    same = "the same" if found == alone else "OTHERWISE"
    return f"| {name} | {same} | {seconds:.1f} s | {len(done)} | {share} |"


def answer(job: str, scheduler: str | None) -> tuple[str, float]:
    """The whole answer but for its time, and its time.

    Args:
        job: Name of a job in configs/jobs. [text]
        scheduler: Address; none: this process alone. [text]

    Returns:
        JSON of plans and search, and wall time. [text], [s]
    """
    began = time.monotonic()
    found = planner.plan(
        ROOT / "configs" / "jobs" / f"{job}.yaml",
        set={"search.space": "full"},
        scheduler=scheduler,
    ).model_dump(mode="json")
    del found["search"]["seconds"]
    return json.dumps(found, sort_keys=True), time.monotonic() - began


@contextmanager
def cluster(workers: int, killed_after: int) -> Iterator[tuple[str, Counter[str]]]:
    """A cluster of processes on this machine, and how often each part was done.

    Args:
        workers: Processes of a thread each. [1]
        killed_after: Parts after which the first worker is killed; 0 kills none. [1]

    Yields:
        Address of the scheduler, and times done by key of the part.
    """
    from distributed import LocalCluster  # noqa: PLC0415  # an extra
    from distributed.diagnostics.plugin import SchedulerPlugin  # noqa: PLC0415

    done: Counter[str] = Counter()

    class Noting(SchedulerPlugin):
        def transition(
            self, key: Any, start: str, finish: str, *_: Any, **__: Any
        ) -> None:
            if (start, finish) == ("processing", "memory"):
                done[str(key)] += 1
                if done.total() == killed_after:
                    os.kill(next(iter(local.workers.values())).pid, signal.SIGKILL)

    with LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None
    ) as local:
        local.scheduler.add_plugin(Noting())
        yield local.scheduler_address, done


if __name__ == "__main__":
    main()
