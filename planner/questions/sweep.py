"""`planner.sweep`: a plan for each combination of values of some fields."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from planner.questions.flow.compare import runner
from planner.questions.flow.sweep import swept
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
from planner.questions.inputs.limits import MEMORY
from planner.questions.inputs.progress import Counted, uncounted
from planner.questions.outputs.answer import Answer, Rows
from planner.questions.outputs.rows import plan_row
from planner.specs.answer import sweep as answers

if TYPE_CHECKING:
    from planner.document.blocks import Document


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
        from planner.report.pages import sweep_page  # noqa: PLC0415

        return sweep_page(self)


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
    found = swept(
        job_given(job, set, catalog, calibration),
        [
            answers.Over(path=path, values=tuple(values))
            for path, values in over.items()
        ],
        runner(scheduler, fall_back=False, note=lambda _: None),
        robust=robust == "on",
        time_limit=time_limit,
        memory_limit=memory_limit,
        resume=path_given(resume),
        told=on_progress or uncounted,
    )
    return Sweep.of(found)
