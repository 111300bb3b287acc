"""The screens of a search and of a priced layout, with or without phases."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.document.screen import Part, Screen, dashed
from planner.report.heading import Heading
from planner.report.screen.sentences import (
    NEXT,
    layout_sentences,
    memory_words,
    next_rows,
    proof_words,
    run_sentence,
    time_words,
)
from planner.report.screen.verdict import planless, verdict
from planner.report.screen.yours import YOURS, yours_rows
from planner.report.sections.ties import bought, free_words
from planner.specs.answer.result import Explanation, RankedPlan, Result
from planner.specs.answer.run import Run
from planner.specs.reading.layout_line import given_layout

ENDING = "-v shows every figure and assumption, -q the layout alone."


@dataclass(frozen=True)
class PhaseAnswer:
    """Facts of one phase that a screen tells.

    Attributes:
        name: Name of the phase; empty for a job without phases. [text]
        title: The heading of the phase's job. [-]
        plan: The best or the given layout, None where no layout was found. [-]
        warnings: Warnings of search and prediction. [text]
        result: Answer of the search; None for a layout that was given. [-]
    """

    name: str
    title: Heading
    plan: RankedPlan | None
    warnings: Sequence[str]
    result: Result | None = None

    @classmethod
    def of_search(cls, name: str, title: Heading, result: Result) -> "PhaseAnswer":
        """The answer of a search."""
        best = result.plans[0] if result.plans else None
        return cls(name, title, best, result.warnings, result)


def screen(
    answers: Sequence[PhaseAnswer],
    run: Run | None = None,
    command: str = "",
    assumed: Sequence[str] = (),
) -> Screen:
    """An answer on one screen, its verdict first.

    Args:
        answers: Answer of each phase. [-]
        run: The whole run, None where no tokens are known. [-]
        command: Command that does the next step. [text]
        assumed: Words for what the job left open. [text]
    """
    parts = [part for answer in answers for part in _parts(answer)]
    tail = [Part("Assumed", (("; ".join(assumed),),))] if assumed else []
    tail += [Part("Run", ((run_sentence(run),),))] if run else []
    tail += [Part("Next", ((command,),))] if command else []
    return Screen(f"{opening(answers, run)}.", parts, tail, ENDING)


def quiet_lines(plans: Sequence[RankedPlan]) -> str:
    """Layouts alone, each as `--layout` takes it back."""
    return "\n".join(given_layout(plan.layout) for plan in plans)


def opening(answers: Sequence[PhaseAnswer], run: Run | None) -> str:
    """Sentence that answers: how the job fits, its step and its run."""
    for answer in answers:
        if answer.plan is None and answer.result is not None:
            return planless(answer.title, answer.result)
    told = [(each.name, each.plan.estimate) for each in answers if each.plan]
    used = max((each.plan.layout.gpus for each in answers if each.plan), default=0)
    return verdict(answers[0].title.using(used), told, run)


def _parts(answer: PhaseAnswer) -> Iterator[Part]:
    title, plan, result = answer.title, answer.plan, answer.result
    job = f"{title.framework}; {title.job}; {title.cluster}"
    yield Part("Job", ((f"{answer.name}: {job}" if answer.name else job,),))
    if plan is not None:
        told = result.explanation if result else Explanation()
        sentences = layout_sentences(plan, told)
        yield Part("Layout", tuple((each,) for each in sentences))
        yield Part("Memory", ((memory_words(plan.estimate.memory),),))
        yield Part("Time", ((time_words(plan.estimate),),))
    if result is not None:
        yield from _of_search(result)
    if answer.warnings:
        yield Part("Warnings", dashed(answer.warnings))


def _of_search(result: Result) -> Iterator[Part]:
    """The next best plans, or reasons why there is none, and the proof."""
    if len(result.plans) > 1:
        yield Part("Next best", next_rows(result), NEXT)
    if options := bought(result):
        yield Part("More risk", tuple((each,) for each in options))
    if free := free_words(result):
        yield Part("More free", ((free,),))
    if rows := yours_rows(result):
        yield Part("Yours", rows, YOURS)
    if reasons := result.explanation.infeasible:
        yield Part("Why", dashed(reasons))
    yield Part("Proof", ((proof_words(result),),))
