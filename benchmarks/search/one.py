"""One case in this process, as JSON: ``python -m benchmarks.search.one``."""

import argparse
import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.search.phases import Phases
from benchmarks.search.series import Watch, proof, thinned
from planner.job.resolve import resolve
from planner.planning.optimize import optimize
from planner.specs.answer.result import Result
from planner.specs.reading.read import read_spec

TOP = 4
"""Plans to list, as `planner plan` does. [1]"""


class Stopped(BaseException):
    """The process was told to stop."""


def measure(
    path: Path, assignments: Sequence[str], time_limit: float, imports: float
) -> dict[str, Any]:
    """Search one job.

    Args:
        path: The YAML file.
        assignments: Assignments as ``--set`` takes them. [text]
        time_limit: Wall time of the search. [s]
        imports: Wall time since the process began. [s]

    Returns:
        Counts, status, gap and times of the search; times are since the process
        began. If the search was stopped, its status, times and series.
    """
    start = time.perf_counter()
    phases, watch = Phases(), Watch(start - imports)
    phases.seconds["import"] = imports
    try:
        spec = read_spec(path, assignments)
        workloads = resolve(spec, file=path.name, base=path.parent)
        phases.seconds["resolve"] = time.perf_counter() - start
        with phases.watch():
            result = optimize(workloads, top=TOP, time_limit=time_limit, progress=watch)
        found = _found(result)
        _end(watch, result, time.perf_counter() - watch.started - phases.report)
    except Stopped:
        found = {"status": "stopped"}
    return found | _times(phases, watch)


def _times(phases: Phases, watch: Watch) -> dict[str, Any]:
    """Times of the first plan, the proof and the end since the process began. [s]."""
    first = phases.first_plan
    return {
        "first_plan_s": None if first is None else first - watch.started,
        "proof_s": proof(watch.points),
        "process_s": time.perf_counter() - watch.started,
        "cpu_s": sum(os.times()[:4]),
        "phases_s": dict(phases.seconds),
        "series": [[_short(value) for value in p] for p in thinned(watch.points)],
    }


def _end(watch: Watch, result: Result, now: float) -> None:
    """Note the result's plan and bound, which may be newer than the last report."""
    if result.plans:
        best = result.plans[0].estimate.step_time_s.value
        watch.note(now, best, best * (1 - result.objective.gap))


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _found(result: Result) -> dict[str, object]:
    """Numbers of the answer."""
    best = result.plans[0].estimate.step_time_s.value if result.plans else None
    return {
        "candidates": result.search.space,
        "priced": result.search.priced,
        "solved": result.search.solved,
        "status": result.status,
        "gap": result.objective.gap,
        "step_s": best,
    }


def _stop(*_: object) -> None:
    raise Stopped


def main() -> None:
    """Print the measurement as one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--set", action="append", default=[], help="a.b.c=value")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds")
    parser.add_argument("--started", type=float, required=True, help="of the epoch")
    asked = parser.parse_args()
    imports = time.time() - asked.started
    signal.signal(signal.SIGTERM, _stop)
    found = measure(asked.path, asked.set, asked.time_limit, imports)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
