"""`planner.predict`: time and memory of one given layout."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import PrivateAttr

from planner.cost.estimate.pricing import price
from planner.cost.why.ask import terms_of
from planner.cost.why.terms import PhaseTerm, Why
from planner.job.loading import Job, workload_for
from planner.job.resolve import about
from planner.planning.economics import with_run
from planner.planning.economics.phases import Phase, phases_of, run_of_plans
from planner.planning.prediction.within import predict_within
from planner.planning.sanity import doubts
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
from planner.questions.inputs.progress import OnProgress
from planner.questions.outputs.answer import Answer, Rows
from planner.questions.outputs.rows import plan_row
from planner.questions.question import Question
from planner.report.heading import heading
from planner.report.screen import PhaseAnswer
from planner.search.emptiness import has_legal
from planner.search.stop import Stop, under
from planner.specs.answer import prediction as answers
from planner.specs.answer.result import RankedPlan
from planner.specs.answer.run import Run
from planner.verify.writable import writer_breaches

if TYPE_CHECKING:
    from planner.document.blocks import Document
    from planner.report.plan import Pictures


@dataclass(frozen=True)
class Predict(Question["Priced"]):
    """`planner predict`: one layout for each phase of a job, with its price.

    Attributes:
        job: The job; what its layout leaves open is filled in. [-]
    """

    job: Job

    def answer(self, stop: Stop, told: OnProgress | None = None) -> "Priced":  # noqa: ARG002
        """Complete and price the layouts.

        Raises:
            BadInputError: No layout is given, or the layout is not legal.
        """
        with under(stop):
            phases = phases_of(self.job)
            plans = [_price(phase.job) for phase in phases]
            run = run_of_plans(phases, plans)
            timed = (
                with_run(plan, run_of_plans([phase], [plan]))
                for phase, plan in zip(phases, plans, strict=True)
            )
            return Priced(phases, tuple(timed), run)


@dataclass(frozen=True)
class Priced:
    """A layout of each phase with its price, and the run that they make.

    Attributes:
        phases: Phases of the job; one without a name where the job has none. [-]
        plans: Completed and priced layout of each phase. [-]
        run: The run, None where no tokens are known. [-]
    """

    phases: tuple[Phase, ...]
    plans: tuple[RankedPlan, ...]
    run: Run | None

    @property
    def pairs(self) -> tuple[tuple[Phase, RankedPlan], ...]:
        """Each phase with its priced layout. [-], shape (phases,)."""
        return tuple(zip(self.phases, self.plans, strict=True))

    @property
    def can_be_searched(self) -> bool:
        """True where every phase has layouts that launch files can be written for."""
        return all(has_legal(each.job.variants) for each in self.phases)

    @property
    def answer(self) -> answers.Prediction:
        """The answer as JSON has it. [-]."""
        phase, first = self.pairs[0]
        parts = tuple(
            answers.PhasePrediction(
                name=phase.name,
                layout=plan.layout,
                estimate=plan.estimate,
                gap=plan.gap,
            )
            for phase, plan in self.pairs
            if phase.name
        )
        return answers.Prediction(
            layout=first.layout,
            estimate=first.estimate,
            gap=first.gap,
            warnings=cautions(phase, first),
            run=self.run,
            phases=parts,
        )

    @property
    def answers(self) -> tuple[PhaseAnswer, ...]:
        """Facts of each phase, as its screen and its document show them."""
        return tuple(
            PhaseAnswer(
                phase.name,
                heading(phase.job.workload_of(plan)),
                plan,
                cautions(phase, plan),
            )
            for phase, plan in self.pairs
        )

    def document(self, pictures: Sequence["Pictures"] = ()) -> "Document":
        """Everything that was predicted, in text or with pictures."""
        from planner.report.plan import plan_document  # noqa: PLC0415

        return plan_document(self.answers, self.run, pictures)

    def page(self) -> "Document":
        """Everything that was predicted, with pictures."""
        from planner.report.plan import Pictures  # noqa: PLC0415

        workloads = (phase.job.workload_of(plan) for phase, plan in self.pairs)
        return self.document([*map(Pictures, workloads)])

    def why(self, name: str) -> Why:
        """Terms of a number, as a tree, for each phase.

        Args:
            name: One of :data:`planner.cost.why.ask.NAMES`. [text]

        Returns:
            The trees. [s] or [GiB]

        Raises:
            BadInputError: No number has this name.
        """
        terms = []
        for phase, plan in self.pairs:
            layout = price(phase.job.workload_of(plan), plan.layout)
            terms.append(PhaseTerm(phase=phase.name, term=terms_of(layout, name)))
        return Why(terms=tuple(terms))


def cautions(phase: Phase, priced: RankedPlan) -> tuple[str, ...]:
    """Warnings about settings, estimate and missing launch files of a phase.

    Args:
        phase: The phase. [-]
        priced: Its completed and priced layout. [-]

    Returns:
        Sentences. [text]
    """
    job = phase.job
    workload = job.workload_of(priced)
    unwritten = writer_breaches(workload, priced.layout)
    said = (f"no launch files for this layout: {one.sentence}" for one in unwritten)
    return (
        *job.warnings,
        *doubts(workload, priced.layout, priced.estimate),
        *_unproven(priced.gap),
        *said,
    )


def _unproven(gap: float) -> tuple[str, ...]:
    """A split that was the best found when the work or the time for it ended."""
    if not gap:
        return ()
    return (
        "the stages are the best found, not proven the best: others with these degrees "
        f"are at most {gap:.2%} faster",
    )


def _price(job: Job) -> RankedPlan:
    """The job's layout, completed and priced under its one framework."""
    given = job.spec.layout
    workload = workload_for(job, given)
    with about(job.file):
        return predict_within(workload, given)


class Prediction(answers.Prediction, Answer):
    """One priced layout, or one for each phase."""

    _flow: Priced = PrivateAttr()

    def table(self) -> Rows:
        """List the layout of each phase.

        Returns:
            Layout, time, memory and verdict. [-], shape (phases,)
        """
        return [
            {"phase": phase.name, **plan_row(plan)} for phase, plan in self._flow.pairs
        ]

    def _page(self) -> "Document":
        return self._flow.page()


def predict(
    job: JobLike,
    *,
    layout: LayoutLike | None = None,
    set: Changes | None = None,  # noqa: A002  # as on the command line
    hardware: FilePath | None = None,
    calibration: CalibrationLike | None = None,
    time_limit: float = 60.0,
) -> Prediction:
    """Price one layout; what it leaves open is filled in.

    Args:
        job: A file or the name of a known job, its fields, or a job. [-]
        layout: Layout in place of the job's. [-]
        set: Fields to replace, by dotted path. [-]
        hardware: Folder of hardware laid over ours. [path]
        calibration: What the user measured. [-]
        time_limit: Longest time to choose what the layout leaves open. [s]

    Returns:
        The completed layout, its time and memory. [-]

    Raises:
        BadInputError: No layout is given, or the layout is not legal.
    """
    within("time_limit", time_limit, 0.0)
    read = looked_up(job, set, catalog_given(hardware), calibration, layout)
    found = Predict(read).within(time_limit)
    return Prediction.of(found.answer, found)
