"""Times answers of planner memory: ``python -m benchmarks.memory.answers``.

Whole processes, the start of the interpreter included; the best of three.
"""

import resource
import subprocess
import sys
import time
from pathlib import Path

JOBS = ("llama-3.1-8b-lora-rtx-4090", "llama-3.1-405b-16k-h100")
"""Jobs of configs/jobs: one card, and 16,384. [text]"""
FOLDER = Path(__file__).resolve().parents[2] / "configs" / "jobs"
RUNS = 3
"""Runs of which the quickest counts. [1]"""


def main() -> None:
    """Print wall and processor time of every job."""
    for name in JOBS:
        wall, processor = min(_once(FOLDER / f"{name}.yaml") for _ in range(RUNS))
        print(f"{name:30} {wall:5.2f} s, {processor:5.2f} s of a processor")


def _once(job: Path) -> tuple[float, float]:
    """Wall and processor time of one answer. [s]."""
    before, start = _spent(), time.perf_counter()
    command = [sys.executable, "-m", "planner", "memory", str(job), "--json", "-"]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    return time.perf_counter() - start, _spent() - before


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
