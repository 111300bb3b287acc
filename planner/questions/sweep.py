"""`planner.sweep`: a plan for each combination of values of some fields."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from yaml import YAMLError

from planner.errors import BadInputError, PlannerError
from planner.hardware.reading.yaml_text import parse_yaml
from planner.job.loading import Job
from planner.planning.comparison.results import Runner, results_of
from planner.planning.comparison.store import Store, key_of
from planner.questions.compare import runner
from planner.questions.inputs.given import (
    CalibrationLike,
    Changes,
    FilePath,
    JobLike,
    catalog_given,
    job_given,
    path_given,
    within,
)
from planner.questions.inputs.limits import MEMORY, memory_bytes
from planner.questions.inputs.progress import Counted, uncounted
from planner.questions.outputs.answer import Answer, Rows
from planner.questions.outputs.rows import plan_row
from planner.questions.plan import phases_to_plan, planned
from planner.search.stop import OUT_OF_TIME, Stop, under
from planner.specs.answer import sweep as answers
from planner.specs.answer.result import Result

if TYPE_CHECKING:
    from planner.document.blocks import Document


MOST_CELLS = 1000
"""Combinations of one sweep, at most. [1]"""
OPTION = "--over"
EXAMPLE = "training.seq_len=4096,8192"


@dataclass(frozen=True)
class _Task:
    """One combination, as a process of its own plans it."""

    job: Job
    values: Mapping[str, Any]
    robust: bool
    seconds: float

    def ended(self) -> "_Task":
        """The combination after the end of the time for it."""
        return replace(self, seconds=0.0)

    @property
    def assignments(self) -> tuple[str, ...]:
        """The values as `--set` takes them. [text]."""
        return tuple(f"{path}={json.dumps(v)}" for path, v in self.values.items())

    @property
    def key(self) -> str:
        """Name of the answer in a store. [text]."""
        measured = self.job.calibration
        return key_of(
            {
                "sweep": self.job.spec.model_dump(mode="json"),
                "base": str(self.job.base),
                "values": dict(self.values),
                "robust": self.robust,
                "seconds": self.seconds,
                "calibration": None if measured is None else measured.model_dump_json(),
            }
        )


def fields_over(texts: Iterable[str]) -> tuple[answers.Over, ...]:
    """Read fields and their values off the command line.

    Args:
        texts: `a.b.c=V1,V2` each; values are YAML. [text]

    Returns:
        The fields, in the order given. [-]

    Raises:
        BadInputError: A text has no field or no values, or a field is given twice.
    """
    return tuple(_over(text) for text in texts)


def _over(text: str) -> answers.Over:
    path, sign, values = (part.strip() for part in text.partition("="))
    try:
        read = parse_yaml(f"[{values}]") if path and sign else None
    except (YAMLError, ValueError):
        read = None
    if not read:
        raise BadInputError(
            "is no field with values", field=OPTION, value=text, allowed=EXAMPLE
        )
    # A date is the one value of YAML that JSON has no word for.
    plain = (str(each) if isinstance(each, date) else each for each in read)
    return answers.Over(path=path, values=tuple(plain))


@dataclass(frozen=True)
class SweepOver:
    """`planner sweep`: a plan for each combination of values of some fields.

    Attributes:
        job: The job. [-]
        over: Fields and their values. [-]
        run: Does the work: on all cores, or on a Dask cluster. [-]
        robust: True to limit the risk of running out of memory. [-]
        time_limit: Longest search of one combination. [s]
        memory_limit: Most memory of the process and its workers. [text]
        resume: Folder of finished combinations. [path]
    """

    job: Job
    over: tuple[answers.Over, ...]
    run: Runner
    robust: bool = True
    time_limit: float = 60.0
    memory_limit: str = MEMORY
    resume: Path | None = None

    def answer(self, told: Counted = uncounted) -> answers.SweepAnswer:
        """Plan every combination.

        Raises:
            BadInputError: Too many combinations, or none of them can be planned.
        """
        began, job = time.monotonic(), self.job
        tasks = [
            _Task(job, values, self.robust, self.time_limit)
            for values in _combinations(job, self.over)
        ]
        keys, store = [task.key for task in tasks], Store(self.resume)
        with under(Stop(memory=memory_bytes(self.memory_limit))):
            cells = results_of(_cell, tasks, keys, answers.Cell, self.run, store, told)
        if all(cell.status == "refused" for cell in cells):
            raise BadInputError(
                f"no combination can be planned: {cells[0].reason}",
                file=job.file,
                field=OPTION,
            )
        return answers.SweepAnswer(
            title=_title(job),
            over=self.over,
            cells=tuple(cells),
            seconds=time.monotonic() - began,
        )


def _combinations(job: Job, over: Sequence[answers.Over]) -> Iterator[dict[str, Any]]:
    """Every combination of values; the last field varies fastest."""
    paths = [each.path for each in over]
    if len(set(paths)) < len(paths):
        raise BadInputError("a field is given twice", field=OPTION, value=paths)
    count = prod(len(each.values) for each in over)
    if not over or count > MOST_CELLS:
        raise BadInputError(
            f"{count:,} combinations" if over else "no field to vary",
            field=OPTION,
            allowed=f"1 to {MOST_CELLS:,}, as {OPTION} {EXAMPLE}",
        )
    for each in over:
        _refuse_unknown(job, each)
    for values in product(*(each.values for each in over)):
        yield dict(zip(paths, values, strict=True))


def _refuse_unknown(job: Job, over: answers.Over) -> None:
    """Refuse a field that no job has, before any work."""
    try:
        job.assigned([f"{over.path}={json.dumps(over.values[0])}"])
    except BadInputError as error:
        error.file = OPTION if error.file == "--set" else error.file
        raise


def _cell(task: _Task) -> answers.Cell:
    """Plan one combination."""
    values = dict(task.values)
    stop = Stop(time.monotonic() + task.seconds)
    try:
        phases = phases_to_plan(task.job.assigned(task.assignments))
        found = planned(
            phases, top=1, stop=stop, robust=task.robust, told=lambda _: None
        ).result
    except PlannerError as error:
        return answers.Cell(values=values, status="refused", reason=str(error))
    return answers.Cell(
        values=values,
        status=_status(found),
        reason=" ".join(_answers(found)[0].explanation.infeasible[:1]),
        gap=max(one.objective.gap for one in _answers(found)),
        plan=_answers(found)[0].plans[0] if all(_plans(found)) else None,
        run=found.run,
        out_of_time=stop.why == OUT_OF_TIME,
    )


def _answers(found: Result) -> list[Result]:
    return [part.result for part in found.phases] or [found]


def _plans(found: Result) -> list[int]:
    """Number of plans of each phase. [1]."""
    return [len(one.plans) for one in _answers(found)]


def _status(found: Result) -> Any:
    """The least certain status of all phases."""
    order = ("infeasible", "unknown", "feasible", "optimal")
    return min((one.status for one in _answers(found)), key=order.index)


def _title(job: Job) -> str:
    """Names of model and cluster."""
    return " on ".join(_name(each) for each in (job.spec.model, job.spec.cluster))


def _name(given: object) -> str:
    """Name of an entry that is given by name or by fields."""
    fields = given if isinstance(given, Mapping) else {"name": given}
    return str(fields.get("name", "inline"))


class Sweep(answers.SweepAnswer, Answer):
    """Combinations of values, each with its best plan."""

    def table(self) -> Rows:
        """List the combinations.

        Returns:
            Values, status, and the plan where there is one. [-], shape (cells,)
        """
        return [
            {**cell.values, "status": cell.status}
            | (plan_row(cell.plan) if cell.plan else {})
            for cell in self.cells
        ]

    def _page(self) -> "Document":
        from planner.report.sweep import sweep_document  # noqa: PLC0415

        return sweep_document(self)


def sweep(
    job: JobLike,
    *,
    over: Mapping[str, Sequence[Any]],
    set: Changes | None = None,  # noqa: A002  # as on the command line
    time_limit: float = 60.0,
    memory_limit: str = MEMORY,
    robust: Literal["off", "on"] = "on",
    scheduler: str | None = None,
    resume: FilePath | None = None,
    hardware: FilePath | None = None,
    calibration: CalibrationLike | None = None,
    on_progress: Counted | None = None,
) -> Sweep:
    """Plan a job for each combination of values of some fields.

    Args:
        job: A file or the name of a known job, its fields, or a job. [-]
        over: Values by dotted path of a field. [-]
        set: Fields to replace in every combination, by dotted path. [-]
        time_limit: Longest search of one combination. [s]
        memory_limit: Most memory of this process and its workers. [text]
        robust: `on` to limit the risk of running out of memory. [text]
        scheduler: Address of the scheduler of a Dask cluster. [text]
        resume: Folder of finished combinations. [path]
        hardware: Folder of hardware laid over ours. [path]
        calibration: What the user measured. [-]
        on_progress: Called with combinations planned and combinations in all. [-]

    Returns:
        The combinations; those without a plan say why. [-]

    Raises:
        BadInputError: A field is wrong, or no combination can be planned.
    """
    within("time_limit", time_limit, 0.0)
    catalog = catalog_given(hardware)
    asked = SweepOver(
        job_given(job, set, catalog, calibration),
        tuple(answers.Over(path=at, values=tuple(v)) for at, v in over.items()),
        runner(scheduler, fall_back=False, note=lambda _: None),
        robust == "on",
        time_limit,
        memory_limit,
        path_given(resume),
    )
    return Sweep.of(asked.answer(on_progress or uncounted))
