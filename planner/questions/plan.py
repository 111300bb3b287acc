"""`planner.plan`: the fastest layout of a job, with its proof."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import PrivateAttr

from planner.comparison.parts import on_cluster
from planner.errors import BadInputError
from planner.questions.flow.plan import FRONT_TIME, Planned, phases_to_plan, planned
from planner.questions.inputs.given import (
    CalibrationLike,
    Changes,
    FilePath,
    JobLike,
    catalog_given,
    looked_up,
    within,
)
from planner.questions.inputs.limits import MEMORY, memory_bytes
from planner.questions.inputs.progress import OnProgress, telling
from planner.questions.outputs.answer import Answer, Rows
from planner.questions.outputs.files import write_whole
from planner.questions.outputs.rows import plan_row
from planner.search.stop import Stop
from planner.specs.answer import result

if TYPE_CHECKING:
    from planner.document.blocks import Document

Robust = Literal["off", "on"]


class Result(result.Result, Answer):
    """The answer of a search: plans, the best first, and the bound that proves it."""

    _flow: Planned = PrivateAttr()

    def table(self) -> Rows:
        """List the plans, the best first.

        Returns:
            Layout, time, memory and verdict of each plan. [-], shape (plans,)
        """
        return [
            {"rank": plan.rank, **plan_row(plan), "slower": plan.slower}
            for plan in self.plans
        ]

    def report(self, path: FilePath, *, seconds: float = FRONT_TIME) -> None:
        """Write figures and tables as one page that needs no network.

        Args:
            path: File of the page. [path]
            seconds: Time for the search of the Pareto fronts; 0 leaves them out. [s]

        Raises:
            BadInputError: The file cannot be written.
        """
        from planner.document.page import page_html  # noqa: PLC0415

        write_whole(Path(path), page_html(self._flow.page(seconds)))

    def emit(
        self, out: FilePath, *, target: str | None = None, force: bool = False
    ) -> tuple[str, ...]:
        """Write plan.json and launch files of the best plan into a new folder.

        Args:
            out: The folder. [path]
            target: A name of `planner catalog targets`; None: the plan's own
                framework, with the plans of later phases beside it. [text]
            force: Replace a folder that holds a plan of planner. [-]

        Returns:
            Names of the files. [text]

        Raises:
            BadInputError: There is no plan, no such target, or the folder is not new.
            UnsupportedPlanError: The target cannot express the plan.
        """
        from planner.launch import check_folder, write_folder  # noqa: PLC0415

        if not self.plans:
            raise BadInputError("has no plan in it", field="plans", value=self.status)
        folder = Path(out)
        check_folder(folder, force=force)
        files = self._flow.launch_files(target, force=force)
        write_folder(folder, files, force=force)
        return tuple(file.name for file in files)

    def _page(self) -> "Document":
        return self._flow.page(0.0)


def plan(
    job: JobLike,
    *,
    set: Changes | None = None,  # noqa: A002  # as on the command line
    top: int = 4,
    time_limit: float = 120.0,
    memory_limit: str = MEMORY,
    robust: Robust = "on",
    hardware: FilePath | None = None,
    calibration: CalibrationLike | None = None,
    scheduler: str | None = None,
    on_progress: OnProgress | None = None,
) -> Result:
    """Search the layouts of a job.

    Args:
        job: A file or the name of a known job, its fields, or a job. [-]
        set: Fields to replace, by dotted path. [-]
        top: Plans to list. [1]
        time_limit: Longest time. [s]
        memory_limit: Most memory of this process and its workers. [text]
        robust: `on` to limit the risk of running out of memory. [text]
        hardware: Folder of hardware laid over ours. [path]
        calibration: What the user measured. [-]
        scheduler: Address of the scheduler of a Dask cluster. [text]
        on_progress: Called about ten times a second with the state of the search;
            it may raise `planner.StopSearch` to end the search. [-]

    Returns:
        Plans and proof; `status` says if there is none. [-]

    Raises:
        BadInputError: A file, a field or a name is wrong, or no layout is legal.
    """
    within("top", top, 1)
    within("time_limit", time_limit, 0.0)
    stop = Stop(time.monotonic() + time_limit, memory_bytes(memory_limit))
    catalog = catalog_given(hardware)
    phases = phases_to_plan(looked_up(job, set, catalog, calibration))
    told = telling(on_progress, stop)
    with on_cluster(scheduler):
        flow = planned(phases, top=top, stop=stop, robust=robust == "on", told=told)
    return Result.of(flow.result, flow)
