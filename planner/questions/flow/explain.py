"""The flow of `planner explain`: from a job to reasons."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.cost.workload import Workload
from planner.explanation import explain
from planner.job.loading import Job
from planner.job.objectives import refuse_objective
from planner.job.resolve import about
from planner.report.heading import heading
from planner.specs.answer.explanation import Explained

if TYPE_CHECKING:
    from planner.document.blocks import Document


@dataclass(frozen=True)
class Reasoned:
    """Reasons, with the job that they are about.

    Attributes:
        answer: The answer as JSON has it. [-]
        workload: The job, with the best plan's settings where there is one. [-]
    """

    answer: Explained
    workload: Workload

    def page(self) -> "Document":
        """The page of the answer.

        Returns:
            The page. [-]
        """
        from planner.report.pages import explanation_page  # noqa: PLC0415

        return explanation_page(self.answer, self.workload, heading(self.workload))


def reasoned(job: Job, *, time_limit: float, robust: bool) -> Reasoned:
    """Say why no layout will do, or why the best one wins; the job's warnings go in.

    Args:
        job: The job; its layout is judged. [-]
        time_limit: Wall time for all searches. [s]
        robust: True to explain the safest tied plan. [-]

    Returns:
        The answer. [-]

    Raises:
        BadInputError: The given layout is not legal, or a setting is impossible.
    """
    with about(job.file):
        refuse_objective(job.spec, "planner explain explains the fastest plan")
        found = explain(job, job.spec.layout, time_limit=time_limit, robust=robust)
    more = {"warnings": (*job.warnings, *found.warnings)}
    answer = found.model_copy(update=more)
    return Reasoned(answer, job.workload_of(answer.best))
