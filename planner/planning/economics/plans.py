"""Plans and their runs, which a command prints and writes."""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.cost.workload import Workload
from planner.job.run_tokens import tokens_rule
from planner.planning.economics.ramp import stretches_of
from planner.planning.economics.run import whole_run
from planner.planning.economics.terms import run_terms
from planner.specs.answer.result import RankedPlan
from planner.specs.answer.run import Run
from planner.specs.economics import EconomicsSpec
from planner.specs.training import TrainingSpec


@dataclass(frozen=True)
class Planned:
    """One phase with its plan.

    Attributes:
        name: Name of the phase, empty for a run without phases. [text]
        workload: Job of the phase, under the plan's framework. [-]
        plan: Plan of the phase. [-]
        training: Training block of the phase as the user wrote it. [-]
    """

    name: str
    workload: Workload
    plan: RankedPlan
    training: TrainingSpec


def run_of(phases: Sequence[Planned], economics: EconomicsSpec) -> Run | None:
    """The whole run of a plan, or of one plan for each phase.

    Returns:
        The run, None where no phase says how many tokens it has. [-]

    Raises:
        BadInputError: A batch of a ramp cannot be trained under its plan.
    """
    stretches = [
        stretch
        for index, phase in enumerate(phases)
        for stretch in stretches_of(
            phase.workload, phase.plan, name=phase.name, phase=index
        )
    ]
    if not stretches:
        return None
    first = phases[0]
    rule = tokens_rule(first.training, first.workload.model)
    rule = f"{rule}, in {len(phases)} phases" if len(phases) > 1 else rule
    return whole_run(stretches, run_terms(first.workload, economics), rule=rule)


def with_run(plan: RankedPlan, run: Run | None) -> RankedPlan:
    """A plan whose estimate has the time, cost and energy of the run.

    Args:
        plan: A plan. [-]
        run: Run of the plan, None where no tokens are known. [-]
    """
    if run is None:
        return plan
    update = {
        "time_to_train_s": run.time_to_train_s.value,
        "cost_usd": None if run.cost_usd is None else run.cost_usd.total.value,
        "energy_mwh": run.energy_mwh.value,
    }
    estimate = plan.estimate.model_copy(update=update)
    return plan.model_copy(update={"estimate": estimate})
