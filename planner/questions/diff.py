"""`planner.diff`: two plans or jobs side by side."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from planner.errors import BadInputError, InfeasibleError, TimeLimitError
from planner.hardware.reading.documents import DocumentError, plain_json
from planner.hardware.reading.files import Catalog
from planner.job.calibration_file import CalibrationFile
from planner.job.loading import Job as LoadedJob
from planner.launch import read_plan
from planner.planning.difference import Compared, difference_of
from planner.questions.inputs.given import (
    CalibrationLike,
    FilePath,
    JobLike,
    calibration_given,
    catalog_given,
    looked_up,
    within,
)
from planner.questions.inputs.limits import MEMORY
from planner.questions.inputs.progress import OnProgress
from planner.questions.outputs.answer import Answer, Rows
from planner.questions.plan import Plan, Result
from planner.questions.question import Question
from planner.report.heading import Heading, heading
from planner.search.stop import Stop
from planner.specs.answer import difference as answers
from planner.specs.answer import result as answered
from planner.specs.answer.difference import Side
from planner.specs.answer.result import RankedPlan
from planner.specs.reading.read import locate, user_text

if TYPE_CHECKING:
    from planner.document.blocks import Document


@dataclass(frozen=True)
class Diff(Question[answers.Difference]):
    """`planner diff`: fields and terms in which two plans differ.

    Attributes:
        a: A plan that was read, or a job that is to be planned. [-]
        b: The other. [-]
    """

    a: Compared | LoadedJob
    b: Compared | LoadedJob

    def answer(self, stop: Stop, told: OnProgress | None = None) -> answers.Difference:
        """Plan what is a job, and compare; signs are those of B minus A.

        Raises:
            BadInputError: A job cannot be planned.
            InfeasibleError: A job fits nowhere.
            TimeLimitError: The time ended before the first plan of a job.
        """
        ours, theirs = (
            side if isinstance(side, Compared) else _planned(side, part, told)
            for side, part in zip((self.a, self.b), stop.shared(2), strict=True)
        )
        return difference_of(ours, theirs)


def holds_plan(path: Path) -> bool:
    """Tell if a file holds a plan or a result, not a job.

    Args:
        path: The file, or the name of a job. [-]

    Returns:
        True where the file is JSON with a schema.

    Raises:
        BadInputError: There is no such file and no such job.
    """
    file = locate(path)
    if file.suffix != ".json":
        return False
    try:
        fields = plain_json(user_text(file, pipes=True))
    except DocumentError:
        return False
    return isinstance(fields, dict) and "schema" in fields


def read_side(
    path: Path, catalog: Catalog, calibration: CalibrationFile | None
) -> Compared:
    """Read a plan, or the first plan of a result.

    Args:
        path: JSON that `planner plan` wrote. [-]
        catalog: Files of facts. [-]
        calibration: What the user measured. [-]

    Returns:
        The plan. [-]

    Raises:
        BadInputError: The file holds no plan, or an illegal one.
    """
    found = read_plan(path, catalog, calibration)
    plan = found.plan
    best = RankedPlan(rank=1, layout=plan.layout, estimate=plan.estimate)
    return _compared(str(path), "plan", best, plan.spec, heading(found.pricing))


def _planned(job: LoadedJob, stop: Stop, told: OnProgress | None) -> Compared:
    """The first plan of a job, of its first phase."""
    found = Plan(job, top=1).answer(stop, told)
    if not found.result.plans:
        refuse_planless(job.file, found.result)
    best = found.result.plans[0]
    title = heading(found.phases[0].job.workload_of(best))
    return _compared(job.file, "job", best, found.result.spec, title)


def _compared(
    name: str, kind: str, plan: RankedPlan, spec: dict[str, object], title: Heading
) -> Compared:
    side = Side.model_validate(
        {
            "name": name,
            "kind": kind,
            "title": f"{title.model} on {title.on}, {title.framework}",
            "layout": plan.layout,
            "verdict": plan.estimate.memory.verdict,
        }
    )
    return Compared(side, spec, plan.settings, plan.estimate)


def refuse_planless(file: str, found: answered.Result) -> NoReturn:
    """End as `planner plan` would.

    Args:
        file: File of the job. [text]
        found: Answer of a search without plans. [-]

    Raises:
        InfeasibleError: Nothing fits.
        TimeLimitError: The time ended before the first plan.
    """
    if found.status == "infeasible":
        raise InfeasibleError(f"{file}: proven: no legal layout fits the memory")
    raise TimeLimitError(f"{file}: no plan in time; give more --time-limit")


class Difference(answers.Difference, Answer):
    """Fields and terms in which two plans differ."""

    def table(self) -> Rows:
        """List the terms of time and memory that differ.

        Returns:
            Quantity, term, both figures and their difference. [-], shape (terms,)
        """
        parts = {"time_s": self.time_s, "memory_gib": self.memory_gib}
        return [
            {"quantity": name, **term.model_dump(exclude={"words"})}
            for name, terms in parts.items()
            for term in terms
        ]

    def _page(self) -> "Document":
        from planner.report.difference import difference_document  # noqa: PLC0415

        return difference_document(self)


def diff(
    a: JobLike | Result,
    b: JobLike | Result,
    *,
    time_limit: float = 120.0,
    memory_limit: str = MEMORY,
    hardware: FilePath | None = None,
    calibration: CalibrationLike | None = None,
    on_progress: OnProgress | None = None,
) -> Difference:
    """Compare two plans, or the plans of two jobs.

    Args:
        a: JSON of a plan or a result, an answer of `planner.plan`, or a job. [-]
        b: The same, for the other side. [-]
        time_limit: Longest time of the searches. [s]
        memory_limit: Most memory of this process and its workers. [text]
        hardware: Folder of hardware laid over ours. [path]
        calibration: What the user measured. [-]
        on_progress: Called about ten times a second with the state of a search. [-]

    Returns:
        Fields and terms that differ; signs are those of B minus A. [-]

    Raises:
        BadInputError: A file, a field or a name is wrong.
        InfeasibleError: A job fits nowhere.
        TimeLimitError: The time ended before the first plan of a job.
    """
    within("time_limit", time_limit, 0.0)
    catalog = catalog_given(hardware)

    def side(given: JobLike | Result) -> Compared | LoadedJob:
        if isinstance(given, Result):
            return _of_result(given)
        if isinstance(given, str | os.PathLike) and holds_plan(Path(given)):
            own = calibration_given(calibration, catalog)
            return read_side(Path(given), catalog, own)
        return looked_up(given, None, catalog, calibration)

    asked = Diff(side(a), side(b))
    return Difference.of(asked.within(time_limit, memory_limit, on_progress))


def _of_result(result: Result) -> Compared:
    """The first plan of an answer."""
    if not result.plans:
        raise BadInputError("has no plan in it", field="plans", value=result.status)
    job = result._flow.phases[0].job  # noqa: SLF001  # of this package
    best = result.plans[0]
    title = heading(job.workload_of(best))
    return _compared(job.file, "plan", best, result.spec, title)
