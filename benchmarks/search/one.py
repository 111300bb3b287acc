"""One case in this process, as JSON: ``python -m benchmarks.search.one``."""

import argparse
import json
import time
from pathlib import Path

from benchmarks.machine import peak_memory
from benchmarks.search.phases import Phases, Watch
from planner.optimize import optimize
from planner.resolve import resolve
from planner.specs.read import read_spec
from planner.specs.result import Result

TOP = 4
"""Plans to list, as `planner plan` does. [1]"""


def measure(path: Path, space: str, time_limit: float, imports: float) -> dict:
    """Search one job.

    Args:
        path: The YAML file.
        space: default or full. [text]
        time_limit: Wall time of the search. [s]
        imports: Wall time since the process began. [s]

    Returns:
        What the search did and what it took; times are since the process began.
    """
    start = time.perf_counter()
    spec = read_spec(path, [f"search.space={space}"])
    workloads = resolve(spec, file=path.name, base=path.parent)
    phases, watch = Phases(), Watch(start - imports)
    phases.seconds["import"] = imports
    phases.seconds["resolve"] = time.perf_counter() - start
    with phases.watch():
        result = optimize(workloads, top=TOP, time_limit=time_limit, progress=watch)
    taken = imports + time.perf_counter() - start
    if result.plans and watch.first is None:
        watch.first = taken
    if result.status == "optimal" and watch.proof is None:
        watch.proof = taken - phases.seconds["report"]
    return {
        "job": path.stem,
        "space": space,
        "gpus": workloads[0].gpus,
        **_found(result),
        "first_plan_s": watch.first,
        "proof_s": watch.proof,
        "process_s": taken,
        "cpu_s": time.process_time(),
        "peak_mib": peak_memory() / 2**20,
        "phases_s": dict(phases.seconds),
    }


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


def main() -> None:
    """Print the measurement as one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--space", default="default", choices=("default", "full"))
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds")
    parser.add_argument("--started", type=float, required=True, help="of the epoch")
    asked = parser.parse_args()
    imports = time.time() - asked.started
    found = measure(asked.path, asked.space, asked.time_limit, imports)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
