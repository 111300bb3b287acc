"""The phases of a job as the commands take them: each a job, together a run."""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.errors import BadInputError
from planner.job.loading import Job
from planner.job.resolve import about
from planner.planning.economics import Planned, run_of, with_run
from planner.specs.answer.result import PhaseResult, RankedPlan, Result
from planner.specs.answer.run import Run


@dataclass(frozen=True)
class Phase:
    """One phase of a run.

    Attributes:
        name: Name of the phase; empty for a run without phases. [text]
        job: Job of the phase. [-]
    """

    name: str
    job: Job

    def planned(self, plan: RankedPlan) -> Planned:
        """The phase with a plan."""
        assert self.job.spec.training is not None
        workload = self.job.workload_of(plan)
        return Planned(self.name, workload, plan, self.job.spec.training)


def phases_of(job: Job) -> tuple[Phase, ...]:
    """The phases of a job; one phase without a name where the job has none."""
    parts = job.spec.in_phases()
    if len(parts) == 1:
        return (Phase("", job),)
    return tuple(Phase(name, job.asking(spec)) for name, spec in parts)


def run_of_plans(phases: Sequence[Phase], plans: Sequence[RankedPlan]) -> Run | None:
    """The whole run of one plan for each phase.

    Returns:
        The run, None where no phase has tokens. [-]

    Raises:
        BadInputError: A batch of a ramp cannot be trained under its plan.
    """
    job = phases[0].job
    pairs = zip(phases, plans, strict=True)
    with about(job.file):
        return run_of([p.planned(plan) for p, plan in pairs], job.spec.economics)


def with_runs(phases: Sequence[Phase], results: Sequence[Result]) -> Result:
    """The answers of all phases as one, with the run that their first plans make.

    Raises:
        BadInputError: A batch of a ramp cannot be trained under its plan.
    """
    told = [
        result.model_copy(update={"plans": _timed(phase, result.plans)})
        for phase, result in zip(phases, results, strict=True)
    ]
    run = None
    if all(result.plans for result in told):
        run = run_of_plans(phases, [result.plans[0] for result in told])
    parts = tuple(
        PhaseResult(name=phase.name, result=result)
        for phase, result in zip(phases, told, strict=True)
        if phase.name
    )
    return told[0].model_copy(update={"run": run, "phases": parts})


def _timed(phase: Phase, plans: Sequence[RankedPlan]) -> tuple[RankedPlan, ...]:
    """Every plan with its own time, cost and energy, where it has them."""
    return tuple(_with_own(phase, plan) for plan in plans)


def _with_own(phase: Phase, plan: RankedPlan) -> RankedPlan:
    try:
        return with_run(plan, run_of_plans([phase], [plan]))
    except BadInputError:
        # For a first plan `with_runs` raises this; another plan goes without a run.
        return plan
