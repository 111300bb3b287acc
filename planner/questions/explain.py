"""`planner.explain`: why nothing fits, or why the best layout wins."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import PrivateAttr

from planner.cost.workload import Workload
from planner.job.loading import Job
from planner.job.objectives import refuse_objective
from planner.job.resolve import about
from planner.planning import explanation
from planner.planning.explanation.neighbours import KEPT
from planner.questions.inputs.given import (
    CalibrationLike,
    Changes,
    FilePath,
    JobLike,
    LayoutLike,
    catalog_given,
    looked_up,
    within,
)
from planner.questions.inputs.limits import MEMORY
from planner.questions.inputs.progress import OnProgress
from planner.questions.outputs.answer import Answer, Rows
from planner.questions.plan import Robust
from planner.questions.question import Question
from planner.report.heading import heading
from planner.search.stop import Stop, under
from planner.specs.answer import explanation as answers
from planner.specs.layouts.layout import Layout

if TYPE_CHECKING:
    from planner.document.blocks import Document


@dataclass(frozen=True)
class Explain(Question["Reasoned"]):
    """`planner explain`: why no layout will do, or why the best one wins.

    Attributes:
        job: The job; its layout is judged. [-]
        robust: True to explain the safest tied plan. [-]
    """

    job: Job
    robust: bool = True

    def answer(self, stop: Stop, told: OnProgress | None = None) -> "Reasoned":  # noqa: ARG002
        """Search reasons; the job's warnings go in.

        Raises:
            BadInputError: The given layout is not legal, or a setting is impossible.
        """
        job = self.job
        with about(job.file), under(stop):
            refuse_objective(job.spec, "planner explain explains the fastest plan")
            found = explanation.explain(
                job, job.spec.layout, time_limit=stop.left, robust=self.robust
            )
        warnings = (*job.warnings, *found.warnings)
        answer = found.model_copy(update={"warnings": warnings})
        return Reasoned(answer, job.workload_of(answer.best))


@dataclass(frozen=True)
class Reasoned:
    """Reasons, with the job that they are about.

    Attributes:
        answer: The answer as JSON has it. [-]
        workload: The job, with the best plan's settings where there is one. [-]
    """

    answer: answers.Explained
    workload: Workload

    def document(self, pictured: Workload | None = None) -> "Document":
        """The answer in text, or with pictures of the job. [-]."""
        from planner.report.explanation import explanation_document  # noqa: PLC0415

        return explanation_document(self.answer, heading(self.workload), pictured)

    def page(self) -> "Document":
        """The answer with pictures. [-]."""
        return self.document(self.workload)


def next_layouts(answer: answers.Explained) -> Iterator[tuple[str, str]]:
    """Legal layouts next to the best, each with the words of its change. [text]."""
    if answer.best is None:
        return
    best = answer.best.layout
    legal = {(each.field, each.value) for each in answer.neighbours if each.legal}
    for axis in KEPT:
        own = axis.of(best) if axis.is_degree or axis.name == "micro_batch" else None
        for value in (own // 2, 2 * own) if isinstance(own, int) else ():
            if (axis.name, value) in legal:
                yield f"{axis.told} {value}", _short(best, axis.name, value)


def _short(best: Layout, changed: str, value: int) -> str:
    """The best layout with one degree changed, all else left open."""
    degrees = {axis.name: axis.of(best) for axis in KEPT if axis.name != "dp"}
    return ",".join(f"{name}={it}" for name, it in (degrees | {changed: value}).items())


class Explained(answers.Explained, Answer):
    """Limits that clash and changes that help, or what binds the best plan."""

    _flow: Reasoned = PrivateAttr()

    def table(self) -> Rows:
        """List the changes that help where nothing fits, else the sensitivities.

        Returns:
            Changes with their effects. [-]
        """
        changes = self.sensitivities if self.feasible else self.relaxations
        return [change.model_dump(mode="json") for change in changes]

    def _page(self) -> "Document":
        return self._flow.page()


def explain(
    job: JobLike,
    *,
    layout: LayoutLike | None = None,
    set: Changes | None = None,  # noqa: A002  # as on the command line
    time_limit: float = 60.0,
    memory_limit: str = MEMORY,
    robust: Robust = "on",
    hardware: FilePath | None = None,
    calibration: CalibrationLike | None = None,
) -> Explained:
    """Say which limits clash and what helps, or what binds the best plan.

    Args:
        job: A file or the name of a known job, its fields, or a job. [-]
        layout: Layout to judge, in place of the job's. [-]
        set: Fields to replace, by dotted path. [-]
        time_limit: Longest time for all searches. [s]
        memory_limit: Most memory of this process and its workers. [text]
        robust: `on` to limit the risk of running out of memory. [text]
        hardware: Folder of hardware laid over ours. [path]
        calibration: What the user measured. [-]

    Returns:
        Reasons; `status` says if no layout is legal or none fits. [-]

    Raises:
        BadInputError: A file, a field or a name is wrong, or the layout is not legal.
    """
    within("time_limit", time_limit, 0.0)
    read = looked_up(job, set, catalog_given(hardware), calibration, layout)
    found = Explain(read, robust == "on").within(time_limit, memory_limit)
    return Explained.of(found.answer, found)
