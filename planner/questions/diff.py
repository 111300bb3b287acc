"""`planner.diff`: two plans or jobs side by side."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import BadInputError
from planner.planning.difference import Compared, difference_of
from planner.questions.flow.diff import holds_plan, planned_side, read_side, result_side
from planner.questions.inputs.given import (
    CalibrationLike,
    FilePath,
    JobLike,
    calibration_given,
    catalog_given,
    looked_up,
    within,
)
from planner.questions.inputs.limits import MEMORY, memory_bytes
from planner.questions.inputs.progress import OnProgress, telling
from planner.questions.outputs.answer import Answer, Rows
from planner.questions.plan import Result
from planner.report.heading import heading
from planner.search.stop import Stop
from planner.specs.answer import difference as answers

if TYPE_CHECKING:
    from planner.document.blocks import Document


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
        from planner.report.answers.difference import difference_page  # noqa: PLC0415

        return difference_page(self)


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
    stop = Stop(time.monotonic() + time_limit, memory_bytes(memory_limit))
    catalog = catalog_given(hardware)

    def side(given: JobLike | Result, part: Stop) -> Compared:
        if isinstance(given, Result):
            return _of_result(given)
        if isinstance(given, str | os.PathLike) and holds_plan(Path(given)):
            return read_side(
                Path(given), catalog, calibration_given(calibration, catalog)
            )
        job = looked_up(given, None, catalog, calibration)
        return planned_side(job, part, telling(on_progress, part))

    sides = zip((a, b), stop.shared(2), strict=True)
    ours, theirs = (side(given, part) for given, part in sides)
    found = difference_of(ours, theirs)
    return Difference.of(found)


def _of_result(result: Result) -> Compared:
    """The first plan of an answer."""
    if not result.plans:
        raise BadInputError("has no plan in it", field="plans", value=result.status)
    job = result._flow.phases[0].job  # noqa: SLF001  # of this package
    return result_side(job.file, result, heading(job.workload_of(result.plans[0])))
