"""The flow of `planner plan`: from a job to plans with a proof."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.economics.aims import aim_of
from planner.economics.phases import Phase, phases_of, with_runs
from planner.job.loading import Job
from planner.job.resolve import about
from planner.planning.alone import alone
from planner.planning.awkward import awkward
from planner.planning.objectives.aimed import optimize_for
from planner.planning.optimize import Progress
from planner.planning.scope import with_scope
from planner.prediction.beside import with_yours
from planner.prediction.ran import with_ran
from planner.questions.flow.contradictions import refuse_contradiction
from planner.report.charts.search import SearchState
from planner.report.heading import heading
from planner.search.stop import Stop
from planner.specs.answer.result import Plan, Result

if TYPE_CHECKING:
    from planner.document.blocks import Document
    from planner.launch import PlanFile
    from planner.launch.brief import LaunchFile

FRONT_TIME = 30.0
"""Most time to search the fronts of a page. [s]"""
Told = Callable[[Progress], object]


@dataclass(frozen=True)
class Planned:
    """The answer of a search, with all that pages and launch files need.

    Attributes:
        phases: Phases of the job; one without a name where the job has none. [-]
        result: The answer. [-]
        trails: States that the search of each phase reported. [-]
    """

    phases: tuple[Phase, ...]
    result: Result
    trails: tuple[tuple[SearchState, ...], ...]

    @property
    def results(self) -> tuple[Result, ...]:
        """Answer for each phase. [-], shape (phases,)."""
        return tuple(part.result for part in self.result.phases) or (self.result,)

    def page(self, seconds: float) -> "Document":
        """The page of the answer, or one page for the answers of all phases.

        Args:
            seconds: Time for the search of the fronts. [s]

        Returns:
            The page. [-]
        """
        from planner.report.pages import phased_page  # noqa: PLC0415

        until = time.monotonic() + seconds
        parts = [
            (phase.name, _page(phase.job, one, trail, until))
            for phase, one, trail in zip(
                self.phases, self.results, self.trails, strict=True
            )
        ]
        return phased_page(parts, self.result.run)

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
        refuse_contradiction(phase.job)
    return phases


def planned(
    phases: Sequence[Phase], *, top: int, stop: Stop, robust: bool, told: Told
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
    job: Job, top: int, stop: Stop, *, robust: bool, told: Told
) -> tuple[Result, tuple[SearchState, ...]]:
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


def _better(job: Job, found: Result, stop: Stop) -> tuple[str, ...]:
    """A batch that divides better than the job's own, in words; of fastest plans."""
    if found.objective.name != "throughput":
        return ()
    steps = [plan.estimate.step_time_s.value for plan in found.plans]
    return awkward(job.workloads, min(steps), stop) if steps else ()


def _page(
    job: Job, result: Result, trail: Sequence[SearchState], until: float
) -> "Document":
    """The page of one answer, after a search of the fronts till a time."""
    from planner.explanation.fronts import fronts  # noqa: PLC0415
    from planner.report.pages import Extras, plan_page  # noqa: PLC0415

    best, seconds = next(iter(result.plans), None), until - time.monotonic()
    workload, extras = job.workload_of(best), Extras(trail)
    if best is not None and seconds > 0:
        extras = Extras(trail, *fronts(job, result.plans, min(FRONT_TIME, seconds)))
    return plan_page(result, workload, heading(workload), extras)


def _best(result: Result) -> Plan:
    """The best plan on its own, as an emitter takes it."""
    return alone(result.spec, result.plans[0])
