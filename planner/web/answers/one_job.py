"""Answers on one job: what it holds, and why its best plan wins."""

from dataclasses import replace

from planner.errors import BadInputError
from planner.questions.explain import Explain, Reasoned, next_layouts
from planner.questions.memory import Memory, Training
from planner.web.answers.line import Line, is_robust, line_of
from planner.web.question import Answered, Question


def memory_answer(question: Question) -> Answered:
    """Say what a job holds in memory, and the most that fits.

    Raises:
        BadInputError: A field is wrong, or the layout is not legal.
    """
    line = line_of(question)
    found = Memory(line.unasked()).within(question.seconds, question.memory)
    if not isinstance(found, Training):
        raise BadInputError("does not train", field="model")
    return _answered(line, found)


def explain_answer(question: Question) -> Answered:
    """Say why no layout will do, or why the best one wins over a given one.

    Raises:
        BadInputError: A field is wrong, or the layout is not legal.
    """
    line = line_of(question)
    asked = Explain(line.job(), is_robust(question))
    found = asked.within(question.seconds, question.memory)
    more: dict[str, tuple[str, ...]] = {
        words: (layout,) for words, layout in next_layouts(found.answer)
    }
    return replace(_answered(line, found), more=more)


def _answered(line: Line, found: Training | Reasoned) -> Answered:
    return Answered(
        page=found.page(),
        json=found.answer.model_dump_json(by_alias=True, indent=2),
        job=line.text(),
        assumed=line.assumed,
    )
