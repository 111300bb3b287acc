"""`planner.plan`: the fastest layout of a job, with its proof."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import PrivateAttr

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.job.expressible import refuse_inexpressible
from planner.job.loading import Job
from planner.job.resolve import about
from planner.planning.alone import alone
from planner.planning.awkward import awkward
from planner.planning.comparison.parts import on_cluster
from planner.planning.economics.aims import aim_of
from planner.planning.economics.phases import Phase, phases_of, with_runs
from planner.planning.objectives.aimed import optimize_for
from planner.planning.optimize import Progress
from planner.planning.prediction.beside import with_yours
from planner.planning.prediction.ran import with_ran
from planner.planning.scope import with_scope
from planner.questions.inputs.given import (
    CalibrationLike,
    Changes,
    FilePath,
    JobLike,
    catalog_given,
    looked_up,
    within,
)
from planner.questions.inputs.limits import MEMORY
from planner.questions.inputs.progress import OnProgress, telling
from planner.questions.outputs.answer import Answer, Rows
from planner.questions.outputs.files import write_whole
from planner.questions.outputs.rows import plan_row
from planner.questions.question import Question
from planner.report.charts.search import SearchState
from planner.report.heading import heading
from planner.report.screen import PhaseAnswer
from planner.search.emptiness import has_legal
from planner.search.stop import Stop
from planner.specs.answer import result as answers

if TYPE_CHECKING:
    from planner.document.blocks import Document
    from planner.launch import PlanFile
    from planner.launch.brief import LaunchFile
    from planner.report.plan import Pictures

FRONT_TIME = 30.0
"""Most time to search the fronts of a page. [s]"""


@dataclass(frozen=True)
class Plan(Question["Planned"]):
    """`planner plan`: the fastest layouts of a job, with their proof.

    Attributes:
        job: The job. [-]
        top: Plans to list. [1]
        robust: True to limit the risk of running out of memory. [-]
        written: True to refuse a job without launch files before any search. [-]
    """

    job: Job
    top: int = 4
    robust: bool = True
    written: bool = False

    def answer(self, stop: Stop, told: OnProgress | None = None) -> "Planned":
        """Search the plans of every phase.

        Raises:
            BadInputError: The job cannot be planned.
            UnsupportedPlanError: No target writes files for the job, and they are
                asked for.
        """
        phases = phases_to_plan(self.job)
        if self.written:
            from planner.launch import require_written  # noqa: PLC0415

            for phase in phases:
                require_written(phase.job.workloads, phase.job.file)
        tell = telling(told, stop)
        return planned(phases, top=self.top, stop=stop, robust=self.robust, told=tell)


@dataclass(frozen=True)
class Planned:
    """The answer of a search, with all that pages and launch files need.

    Attributes:
        phases: Phases of the job; one without a name where the job has none. [-]
        result: The answer. [-]
        trails: States that the search of each phase reported. [-]
    """

    phases: tuple[Phase, ...]
    result: answers.Result
    trails: tuple[tuple[SearchState, ...], ...]

    @property
    def results(self) -> tuple[answers.Result, ...]:
        """Answer for each phase. [-], shape (phases,)."""
        return tuple(part.result for part in self.result.phases) or (self.result,)

    @property
    def answers(self) -> tuple[PhaseAnswer, ...]:
        """Facts of each phase, as its screen and its document show them."""
        return tuple(
            PhaseAnswer.of_search(phase.name, heading(_workload(phase.job, one)), one)
            for phase, one in zip(self.phases, self.results, strict=True)
        )

    def document(self, pictures: Sequence["Pictures"] = ()) -> "Document":
        """Everything that was found, in text or with pictures."""
        from planner.report.plan import plan_document  # noqa: PLC0415

        return plan_document(self.answers, self.result.run, pictures)

    def page(self, seconds: float) -> "Document":
        """Everything that was found, with pictures and fronts.

        Args:
            seconds: Time for the search of the fronts. [s]
        """
        until = time.monotonic() + seconds
        parts = zip(self.phases, self.results, self.trails, strict=True)
        return self.document([_pictures(p.job, r, t, until) for p, r, t in parts])

    def _plan_file(self) -> "PlanFile":
        """The best plan, of the first phase, as writers of launch files take it."""
        from planner.launch import plan_file  # noqa: PLC0415

        job = self.phases[0].job
        workload = job.workload_of(self.result.plans[0])
        return plan_file(_best(self.result), workload, job.file, job.calibration)

    def launch_files(
        self, target: str | None = None, *, force: bool = False
    ) -> tuple["LaunchFile", ...]:
        """Launch files of the best plan, as `--out` or `planner emit` writes them.

        Args:
            target: A target, for which the plan is priced anew; None: the plan's own
                framework, with the plans of later phases by name. [text]
            force: True to write a plan that does not fit the memory. [-]

        Returns:
            The folder's files. [-]

        Raises:
            UnsupportedPlanError: The target cannot express the plan.
        """
        from planner.launch.emit import plan_text  # noqa: PLC0415
        from planner.questions.emit import Emit  # noqa: PLC0415

        files = Emit(self._plan_file(), target, force).answer().files
        if target is not None:
            return files
        later = tuple(
            plan_text(f"plan-{phase.name}.json", _best(phase.result))
            for phase in self.result.phases[1:]
        )
        return (*files, *later)


def phases_to_plan(job: Job) -> tuple[Phase, ...]:
    """The phases of a job, none of whose limits contradict each other.

    Args:
        job: The job. [-]

    Returns:
        Phases in order. [-]

    Raises:
        BadInputError: A phase cannot be resolved, or no layout of it is legal.
    """
    phases = tuple(replace(phase, job=with_ran(phase.job)) for phase in phases_of(job))
    for phase in phases:
        _refuse_contradiction(phase.job)
    return phases


def _refuse_contradiction(job: Job) -> None:
    """Refuse limits that leave no legal layout, before any layout is looked at.

    Raises:
        BadInputError: Names a limit that no framework of the job can express, or a
            minimal set of limits that clashes and the nearest values that do not.
    """
    with about(job.file):
        refuse_inexpressible(job.workloads)
        is_empty = not has_legal(job.variants)
    if is_empty:
        from planner.planning.explanation import as_error, contradiction  # noqa: PLC0415

        raise as_error(contradiction(job), job.file)


def planned(
    phases: Sequence[Phase], *, top: int, stop: Stop, robust: bool, told: OnProgress
) -> Planned:
    """Search the plans of every phase, and make the run that the first plans make.

    Args:
        phases: Phases of a job. [-]
        top: Plans to list. [1]
        stop: Ends the searches, which share its time. [-]
        robust: True to limit the risk of running out of memory. [-]
        told: Called about ten times a second with the state of a search. [-]

    Returns:
        The answer. [-]

    Raises:
        BadInputError: A job cannot be planned.
    """
    parts = stop.shared(len(phases))
    found = [
        _searched(phase.job, top, part, robust=robust, told=told)
        for phase, part in zip(phases, parts, strict=True)
    ]
    result = with_runs(phases, [one for one, _ in found])
    return Planned(tuple(phases), result, tuple(trail for _, trail in found))


def _searched(
    job: Job, top: int, stop: Stop, *, robust: bool, told: OnProgress
) -> tuple[answers.Result, tuple[SearchState, ...]]:
    """The answer of the search, with the spec and its warnings put in."""
    trail: list[SearchState] = []
    began = time.monotonic()

    def note(state: Progress) -> None:
        now = time.monotonic() - began
        trail.append(SearchState(now, state.incumbent_s, state.bound_s))
        told(state)

    with about(job.file):
        aim = aim_of(job.spec.objective, job.workloads[0], job.spec.economics)
        found = optimize_for(
            aim, job.workloads, top=top, robust=robust, progress=note, stop=stop
        )
        found = with_scope(job.workloads, with_yours(job, found, robust=robust))
    best = found.plans[0] if found.plans else None
    warnings = (*job.warnings, *found.warnings, *_better(job, found, stop))
    more = {"spec": job.resolved(best), "warnings": warnings}
    return found.model_copy(update=more), tuple(trail)


def _better(job: Job, found: answers.Result, stop: Stop) -> tuple[str, ...]:
    """A batch that divides better than the job's own, in words; of fastest plans."""
    if found.objective.name != "throughput":
        return ()
    steps = [plan.estimate.step_time_s.value for plan in found.plans]
    return awkward(job.workloads, min(steps), stop) if steps else ()


def _workload(job: Job, result: answers.Result) -> Workload:
    return job.workload_of(next(iter(result.plans), None))


def _pictures(
    job: Job, result: answers.Result, trail: Sequence[SearchState], until: float
) -> "Pictures":
    """Data of the pictures of one answer, after a search of the fronts till a time."""
    from planner.planning.explanation.fronts import fronts  # noqa: PLC0415
    from planner.report.plan import Pictures  # noqa: PLC0415

    seconds, workload = until - time.monotonic(), _workload(job, result)
    if not result.plans or seconds <= 0:
        return Pictures(workload, trail)
    found = fronts(job, result.plans, min(FRONT_TIME, seconds))
    return Pictures(workload, trail, *found)


def _best(result: answers.Result) -> answers.Plan:
    """The best plan on its own, as an emitter takes it."""
    return alone(result.spec, result.plans[0])


Robust = Literal["off", "on"]


class Result(answers.Result, Answer):
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
        from planner.report.pages import page_html  # noqa: PLC0415

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
    read = looked_up(job, set, catalog_given(hardware), calibration)
    asked = Plan(read, top, robust == "on")
    with on_cluster(scheduler):
        found = asked.within(time_limit, memory_limit, on_progress)
    return Result.of(found.result, found)
