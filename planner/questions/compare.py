"""`planner.compare`: the same job on several clusters, or a purchase."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import BadInputError
from planner.hardware.reading.files import Catalog
from planner.hardware.reading.units import parse_quantity
from planner.job.calibration_file import CalibrationFile
from planner.planning.comparison import answer as answers
from planner.planning.comparison import flow
from planner.planning.comparison.read import Asking, Given, given_by, sweep_of
from planner.planning.comparison.results import Runner
from planner.planning.comparison.store import Store
from planner.planning.comparison.sweep import (
    OnCluster,
    UnreachableError,
    on_cores,
    on_dask,
)
from planner.questions.inputs.given import (
    CalibrationLike,
    Changes,
    FilePath,
    Job,
    JobLike,
    assignments,
    calibration_given,
    catalog_given,
    fields_given,
    path_given,
    within,
)
from planner.questions.inputs.limits import MEMORY, memory_bytes
from planner.questions.inputs.progress import Counted, uncounted
from planner.questions.outputs.answer import Answer, Rows
from planner.search.stop import Stop, under

if TYPE_CHECKING:
    from planner.document.blocks import Document

_COLUMNS = (
    "name",
    "status",
    "gpu",
    "nodes",
    "gpus",
    "time_to_train_s",
    "cost_usd",
    "energy_mwh",
    "pareto",
    "settled",
)


@dataclass(frozen=True)
class Compare:
    """`planner compare`: every candidate planned, and held side by side.

    Attributes:
        given: One purchase, or one or more jobs. [-]
        run: Does the work: on all cores, or on a Dask cluster. [-]
        catalog: Files of facts. [-]
        calibration: The user's measurements, or None. [-]
        assignments: `a.b.c=value` each, for every job. [text]
        deadline: Longest run. [text]
        budget: Most money. [text]
        time_limit: Longest time of the whole comparison. [s]
        memory_limit: Most memory of the process and its workers. [text]
        effort: Work for each candidate, of the usual. [1]
        tolerance: Largest share by which another plan may be faster. [1]
        resume: Folder of finished candidates. [path]
    """

    given: Sequence[Given]
    run: Runner
    catalog: Catalog
    calibration: CalibrationFile | None = None
    assignments: Sequence[str] = ()
    deadline: str | None = None
    budget: str | None = None
    time_limit: float | None = None
    memory_limit: str = MEMORY
    effort: float = 1.0
    tolerance: float = 0.07
    resume: Path | None = None

    def answer(self, told: Counted = uncounted) -> answers.Comparison:
        """Plan every candidate.

        Raises:
            BadInputError: A field or a limit is wrong, nothing meets the deadline, or
                the budget pays for nothing.
        """
        limit, work = self.time_limit, self.effort * answers.WORK
        asking = Asking(
            effort=answers.Effort(
                work=work, time_limit_s=limit, tolerance=self.tolerance
            ),
            until=inf if limit is None else time.time() + limit,
            assignments=self.assignments,
            budget_usd=_quantity("--budget", self.budget, "USD"),
            deadline_s=_quantity("--deadline", self.deadline, "s"),
            calibration=self.calibration,
            catalog=self.catalog,
        )
        sweep = sweep_of(self.given, asking)
        with under(Stop(memory=memory_bytes(self.memory_limit))):
            return flow.compare(sweep, self.run, Store(self.resume), told=told)


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


class Comparison(answers.Comparison, Answer):
    """Candidates with time, cost and energy, and the best of them."""

    def table(self) -> Rows:
        """List the candidates.

        Returns:
            Status, size, time, cost and energy of each. [-], shape (candidates,)
        """
        return [
            {name: getattr(one, name) for name in _COLUMNS} for one in self.candidates
        ]

    def _page(self) -> "Document":
        from planner.report.comparison import comparison_document  # noqa: PLC0415

        return comparison_document(self)


def compare(
    specs: JobLike | Sequence[JobLike],
    *,
    deadline: str | None = None,
    budget: str | None = None,
    set: Changes | None = None,  # noqa: A002  # as on the command line
    time_limit: float | None = None,
    memory_limit: str = MEMORY,
    effort: float = 1.0,
    tolerance: float = 0.07,
    scheduler: str | None = None,
    resume: FilePath | None = None,
    hardware: FilePath | None = None,
    calibration: CalibrationLike | None = None,
    on_progress: Counted | None = None,
) -> Comparison:
    """Compare clusters for a job: time, cost, energy, and what to sign for.

    Args:
        specs: One purchase, or one or more jobs: files, names or fields. [-]
        deadline: Longest run, as `60 d`. [text]
        budget: Most money, as `100 MUSD`. [text]
        set: Fields of every job to replace, by dotted path. [-]
        time_limit: Longest time of the whole comparison. [s]
        memory_limit: Most memory of this process and its workers. [text]
        effort: Work for each candidate, of the usual. [1]
        tolerance: Largest share by which another plan may be faster. [1]
        scheduler: Address of the scheduler of a Dask cluster. [text]
        resume: Folder of finished candidates. [path]
        hardware: Folder of hardware laid over ours. [path]
        calibration: What the user measured. [-]
        on_progress: Called with candidates planned and candidates in all. [-]

    Returns:
        The candidates and the best; `best` is empty where nothing fits. [-]

    Raises:
        BadInputError: A file or a value is wrong, nothing meets the deadline, or the
            budget pays for nothing.
    """
    within("effort", effort, 0.01)
    within("tolerance", tolerance, 0.0, 0.5)
    catalog = catalog_given(hardware)
    asked = Compare(
        [_given(spec) for spec in _several(specs)],
        runner(scheduler, fall_back=False, note=lambda _: None),
        catalog,
        calibration_given(calibration, catalog),
        assignments(set),
        deadline,
        budget,
        time_limit,
        memory_limit,
        effort,
        tolerance,
        path_given(resume),
    )
    return Comparison.of(asked.answer(on_progress or uncounted))


def _several(specs: JobLike | Sequence[JobLike]) -> Sequence[JobLike]:
    """Jobs as a list, one of them or several."""
    one = isinstance(specs, Mapping | Job) or not isinstance(specs, list | tuple)
    several: Any = [specs] if one else specs
    return list(several)


def _given(spec: JobLike) -> Given:
    if not isinstance(spec, Mapping | Job):
        return given_by(Path(spec))
    name, base, fields = fields_given(spec)
    return Given(name, base / name, fields)
