"""`planner.tune`: short measured runs of the plans that tie, until one has won."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import BadInputError
from planner.questions.inputs.given import (
    CalibrationLike,
    Changes,
    FilePath,
    JobLike,
    catalog_given,
    looked_up,
    path_given,
    within,
)
from planner.questions.inputs.limits import MEMORY, memory_bytes
from planner.questions.inputs.progress import OnProgress, telling
from planner.questions.outputs.answer import Answer, Rows
from planner.questions.tune.flow import BUDGET, TOP, begun, continued
from planner.search.stop import Stop
from planner.specs.answer import tuning

if TYPE_CHECKING:
    from planner.document.blocks import Document


class Tuning(tuning.Tuning, Answer):
    """Short runs of the tied plans, and the run to make next."""

    def table(self) -> Rows:
        """List the runs.

        Returns:
            Predicted, expected and measured step of each. [-], shape (runs,)
        """
        return [run.model_dump(exclude={"layout"}) for run in self.runs]

    def _page(self) -> "Document":
        from planner.report.tuning import tuning_document  # noqa: PLC0415

        return tuning_document(self)


def tune(
    job: JobLike,
    *,
    out: FilePath | None = None,
    top: int | None = None,
    runs: int | None = None,
    set: Changes | None = None,  # noqa: A002  # as on the command line
    time_limit: float = 120.0,
    memory_limit: str = MEMORY,
    hardware: FilePath | None = None,
    calibration: CalibrationLike | None = None,
    on_progress: OnProgress | None = None,
) -> Tuning:
    """Write short runs of the tied plans of a job; or read their logs and go on.

    Args:
        job: A job, with `out`; or a folder that an earlier call wrote, alone. [-]
        out: New folder for the runs. [path]
        top: Most plans of a search that become runs; 8 unless given. [1]
        runs: Most runs to measure; 5 unless given, or as the folder says. [1]
        set: Fields of the job to replace, by dotted path. [-]
        time_limit: Longest time. [s]
        memory_limit: Most memory of this process and its workers. [text]
        hardware: Folder of hardware laid over ours. [path]
        calibration: What the user measured. [-]
        on_progress: Called about ten times a second with the state of a search. [-]

    Returns:
        Every run, the best so far and the run to make next. [-]

    Raises:
        BadInputError: A file, a field or a name is wrong, or a log is foreign.
        InfeasibleError: The job fits nowhere.
        TimeLimitError: The time ended before the first plan.
        UnsupportedPlanError: No launch files can be written of the plans.
    """
    for name, count in {"top": top, "runs": runs}.items():
        within(name, 1 if count is None else count, 1)
    within("time_limit", time_limit, 0.0)
    stop = Stop(time.monotonic() + time_limit, memory_bytes(memory_limit))
    told = telling(on_progress, stop)
    if out is None:
        folder = _folder_given(job, set=set, hardware=hardware, calibration=calibration)
        went = continued(folder, top=top, budget=runs, stop=stop, told=told)
        return Tuning.of(went)
    found = begun(
        looked_up(job, set, catalog_given(hardware), calibration),
        Path(out),
        top=top or TOP,
        budget=runs or BUDGET,
        hardware=path_given(hardware),
        stop=stop,
        told=told,
    )
    return Tuning.of(found)


def _folder_given(job: JobLike, **options: object) -> Path:
    """The folder to go on in; refuse a job, and what only a job takes."""
    if not isinstance(job, str | os.PathLike) or not Path(job).is_dir():
        raise BadInputError(
            "needs a new folder for the runs", field="out", allowed="out=DIR with a job"
        )
    for name, given in options.items():
        if given:
            raise BadInputError(
                "does not apply: the folder keeps the job as it was given", field=name
            )
    return Path(job)
