"""Time and memory of the search: ``python -m benchmarks.search``.

Each case runs in a fresh process, as `planner plan` would. Names of jobs in
configs/jobs or in benchmarks/search/jobs may follow. Without names the jobs that take
seconds run in the default space. ``--write`` keeps each figure in results.json as soon
as it is measured, beside the figures of other cases. At the end it writes README.md and
the charts. ``--write`` with ``--nothing`` writes both anew from results.json.
"""

import argparse
from collections.abc import Iterator, Sequence

from benchmarks.machine import machine
from benchmarks.search import growth
from benchmarks.search.cases import (
    BESIDE_CALCULON,
    BOTH,
    CHEAP,
    FLEETS,
    JOBS,
    Case,
    case,
)
from benchmarks.search.process import measured
from benchmarks.search.results import keep, known
from benchmarks.search.shown.page import line, write_page


def chosen(asked: argparse.Namespace) -> Iterator[Case]:
    """The cases that the command line asks for.

    Args:
        asked: Options of the command line.

    Yields:
        Cases, with cases of the default space first.
    """
    jobs = asked.jobs or (JOBS if asked.all else CHEAP)
    if not (asked.jobs or asked.all) and (asked.nothing or asked.growth):
        jobs = ()
    for space in ("default", "full") if asked.full else ("default",):
        yield from (case(name, space) for name in jobs)
    if asked.all:
        yield from (case(name, "default") for name in FLEETS)
    if asked.all and asked.full:
        yield from (case(BESIDE_CALCULON, s) for s in BOTH)


def run_cases(asked: argparse.Namespace) -> None:
    """Measure cases, and keep each at once where asked."""
    for one in chosen(asked):
        row = measured(one, asked.time_limit)
        print(line(row), flush=True)
        if asked.write:
            keep("cases", [row])


def run_growth(asked: argparse.Namespace) -> None:
    """Measure how the search grows, and keep each point at once where asked."""
    for axis in growth.AXES.values():
        for value, one in growth.cases(axis):
            row = measured(one, asked.time_limit)
            print(line(row), flush=True)
            if asked.write:
                keep("growth", [growth.point(axis, value, row)])


def write() -> None:
    """Write the page and its charts from the kept measurements."""
    from benchmarks.search.shown.charts import write_charts  # noqa: PLC0415  # charts are an extra

    tables = known()
    write_charts(tables["cases"], tables["growth"])
    write_page(tables)


def options(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Options of the command line.

    Args:
        words: Words of the command line; none takes this process's words. [text]

    Returns:
        Options.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="*", help="names of jobs")
    parser.add_argument("--all", action="store_true", help="every job of the page")
    parser.add_argument("--full", action="store_true", help="the full space too")
    parser.add_argument("--growth", action="store_true", help="against GPUs and layers")
    parser.add_argument("--nothing", action="store_true", help="measure nothing")
    parser.add_argument("--write", action="store_true", help="keep and write the page")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds")
    return parser.parse_args(words)


def main() -> None:
    """Measure, print a line each, and write the page where asked."""
    asked = options()
    print(machine())
    run_cases(asked)
    if asked.growth:
        run_growth(asked)
    if asked.write:
        write()


if __name__ == "__main__":
    main()
