"""`planner.compare`: the same job on several clusters, or a purchase."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.comparison import answer as answers
from planner.comparison.read import Given, given_by
from planner.questions.flow.compare import compared, runner
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
from planner.questions.inputs.limits import MEMORY
from planner.questions.inputs.progress import Counted, uncounted
from planner.questions.outputs.answer import Answer, Rows

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
        from planner.report.pages import comparison_page  # noqa: PLC0415

        return comparison_page(self)


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
    found = compared(
        [_given(spec) for spec in _several(specs)],
        runner(scheduler, fall_back=False, note=lambda _: None),
        assignments=assignments(set),
        deadline=deadline,
        budget=budget,
        time_limit=time_limit,
        memory_limit=memory_limit,
        effort=effort,
        tolerance=tolerance,
        resume=path_given(resume),
        catalog=catalog,
        calibration=calibration_given(calibration, catalog),
        told=on_progress or uncounted,
    )
    return Comparison.of(found)


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
