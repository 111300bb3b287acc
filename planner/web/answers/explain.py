"""Answer of the page that says why."""

import time
from collections.abc import Iterator

from planner.explanation.neighbours import KEPT
from planner.questions.flow.explain import reasoned
from planner.questions.inputs.limits import memory_bytes
from planner.search.stop import Stop, under
from planner.specs.answer.explanation import Explained
from planner.specs.layouts.layout import Layout
from planner.web.answers.line import is_robust, line_of
from planner.web.question import Answered, Question


def explain_answer(question: Question) -> Answered:
    """Say why no layout will do, or why the best one wins over a given one.

    Raises:
        BadInputError: A field is wrong, or the layout is not legal.
    """
    line = line_of(question)
    stop = Stop(time.monotonic() + question.seconds, memory_bytes(question.memory))
    job = line.job()
    with under(stop):
        found = reasoned(job, time_limit=stop.left, robust=is_robust(question))
    return Answered(
        page=found.page(),
        json=found.answer.model_dump_json(by_alias=True, indent=2),
        job=line.text(),
        assumed=line.assumed,
        more=dict(next_layouts(found.answer)),
    )


def next_layouts(answer: Explained) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Layouts next to the best that are legal."""
    if answer.best is None:
        return
    best = answer.best.layout
    legal = {(each.field, each.value) for each in answer.neighbours if each.legal}
    for axis in KEPT:
        own = axis.of(best) if axis.is_degree or axis.name == "micro_batch" else None
        for value in (own // 2, 2 * own) if isinstance(own, int) else ():
            if (axis.name, value) in legal:
                yield f"{axis.told} {value}", (_short(best, axis.name, value),)


def _short(best: Layout, changed: str, value: int) -> str:
    """The best layout with one degree changed, all else left open."""
    degrees = {axis.name: axis.of(best) for axis in KEPT if axis.name != "dp"}
    return ",".join(f"{name}={it}" for name, it in (degrees | {changed: value}).items())
