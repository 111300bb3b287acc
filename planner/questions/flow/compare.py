"""The flow of `planner compare`: where candidates are planned, and in what limits."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from planner.comparison.answer import WORK, Comparison, Effort
from planner.comparison.flow import compare
from planner.comparison.read import Asking, Given, sweep_of
from planner.comparison.results import Runner
from planner.comparison.store import Store
from planner.comparison.sweep import OnCluster, UnreachableError, on_cores, on_dask
from planner.errors import BadInputError
from planner.hardware.reading.files import Catalog
from planner.hardware.reading.units import parse_quantity
from planner.job.calibration_file import CalibrationFile
from planner.questions.inputs.limits import memory_bytes
from planner.search.stop import Stop, under


def compared(
    given: Sequence[Given],
    run: Runner,
    *,
    assignments: Sequence[str],
    deadline: str | None,
    budget: str | None,
    time_limit: float | None,
    memory_limit: str,
    effort: float,
    tolerance: float,
    resume: Path | None,
    catalog: Catalog,
    calibration: CalibrationFile | None,
    told: Callable[[int, int], object],
) -> Comparison:
    """Plan every candidate on the user's hardware, and hold them side by side.

    Args:
        given: One purchase, or one or more jobs. [-]
        run: Does the work: on all cores, or on a Dask cluster. [-]
        assignments: `a.b.c=value` each, for every job. [text]
        deadline: Longest run. [text]
        budget: Most money. [text]
        time_limit: Longest time of the whole comparison. [s]
        memory_limit: Most memory of the process and its workers. [text]
        effort: Work for each candidate, of the usual. [1]
        tolerance: Largest share by which another plan may be faster. [1]
        resume: Folder of finished candidates. [-]
        catalog: Files of facts. [-]
        calibration: The user's measurements, or None. [-]
        told: Called with candidates done and candidates in all. [-]

    Returns:
        The answer. [-]

    Raises:
        BadInputError: A field or a limit is wrong, nothing meets the deadline, or the
            budget pays for nothing.
    """
    asking = Asking(
        effort=Effort(work=effort * WORK, time_limit_s=time_limit, tolerance=tolerance),
        until=inf if time_limit is None else time.time() + time_limit,
        assignments=assignments,
        budget_usd=_quantity("--budget", budget, "USD"),
        deadline_s=_quantity("--deadline", deadline, "s"),
        calibration=calibration,
        catalog=catalog,
    )
    sweep = sweep_of(given, asking)
    with under(Stop(memory=memory_bytes(memory_limit))):
        return compare(sweep, run, Store(resume), told=told)


def _quantity(option: str, text: str | None, unit: str) -> float | None:
    """A quantity above zero."""
    if text is None:
        return None
    try:
        value = parse_quantity(text, unit)
    except ValueError as error:
        raise BadInputError(str(error), field=option) from error
    if value <= 0:
        raise BadInputError("has to be more than 0", field=option, value=text)
    return value


def runner(
    scheduler: str | None, *, fall_back: bool, note: Callable[[str], object]
) -> Runner:
    """Choose where the candidates are planned.

    Args:
        scheduler: Address of the scheduler of a Dask cluster, or None. [text]
        fall_back: True to plan on this machine where the scheduler does not answer.
        note: Told of a fall back. [-]

    Returns:
        The cores of this machine, or the workers of the scheduler. [-]

    Raises:
        BadInputError: A fall back is asked for without a scheduler.
    """
    if scheduler is None:
        if fall_back:
            raise BadInputError(
                "goes with --scheduler", field="--fall-back", allowed="both, or neither"
            )
        return on_cores
    if fall_back:
        return partial(_or_here, scheduler, note)
    return OnCluster(scheduler)


def refuse_lost(run: Runner) -> None:
    """Refuse an answer that misses what a lost cluster had not finished.

    Args:
        run: What did the work. [-]

    Raises:
        TimeLimitError: Workers were lost.
    """
    if isinstance(run, OnCluster):
        run.refuse_lost()


def _or_here(
    address: str,
    note: Callable[[str], object],
    work: Callable[[Any], Any],
    tasks: Sequence[Any],
) -> Iterator[tuple[int, Any]]:
    """Results of the cluster; tasks that it did not hand back run on this machine."""
    done: set[int] = set()
    try:
        for at, result in on_dask(work, tasks, address):
            done.add(at)
            yield at, result
    except UnreachableError as error:
        note(f"{error.message}; planning on this machine")
        left = [at for at in range(len(tasks)) if at not in done]
        for index, result in on_cores(work, [tasks[at] for at in left]):
            yield left[index], result
