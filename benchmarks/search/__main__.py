"""What the search costs: ``python -m benchmarks.search``.

Each case runs in a fresh process, as `planner plan` would. Without names it runs the
cases that take seconds; ``--all`` runs every case of the page, ``--full`` takes the
full space in place of the default one. Names of jobs in configs/jobs may follow.
``--write`` puts the figures on the page, benchmarks/search/README.md, beside those of
other cases that it has already.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.machine import machine
from benchmarks.search.cases import CASES, CHEAP, path_of
from benchmarks.search.page import Row, line, write_page

ROOT = Path(__file__).resolve().parents[2]


def measured(path: Path, space: str, time_limit: float) -> Row:
    """Search one job in a process of its own.

    Args:
        path: The YAML file.
        space: default or full. [text]
        time_limit: Wall time of the search. [s]

    Returns:
        What it did and took, with the machine and the date.
    """
    options = ["--space", space, "--time-limit", str(time_limit)]
    command = [sys.executable, "-m", "benchmarks.search.one", str(path), *options]
    done = subprocess.run(  # noqa: S603  # our own module
        [*command, "--started", str(time.time())],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    row: Row = json.loads(done.stdout.splitlines()[-1])
    return row | {"machine": machine(), "time_limit_s": time_limit}


def main() -> None:
    """Measure, print a line each, and write the page where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="*", help="names of jobs")
    parser.add_argument("--all", action="store_true", help="every case of the page")
    parser.add_argument("--full", action="store_true", help="the full space")
    parser.add_argument("--write", action="store_true", help="write the page")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds")
    asked = parser.parse_args()
    names = asked.jobs or (CASES if asked.all else CHEAP)
    paths = [path_of(name) for name in names]
    print(machine())
    for path in paths:
        row = measured(path, "full" if asked.full else "default", asked.time_limit)
        print(line(row), flush=True)
        if asked.write:
            write_page([row])


if __name__ == "__main__":
    main()
