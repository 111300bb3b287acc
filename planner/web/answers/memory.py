"""Answer of the page of memory."""

from planner.errors import BadInputError
from planner.questions.flow.memory import Training, held
from planner.report.pages.memory import training_page
from planner.web.answers.line import line_of
from planner.web.question import Answered, Question


def memory_answer(question: Question) -> Answered:
    """Say what a job holds in memory, and the most that fits.

    Raises:
        BadInputError: A field is wrong, or the layout is not legal.
    """
    line = line_of(question)
    found = held(line.unasked())
    if not isinstance(found, Training):
        raise BadInputError("does not train", field="model")
    return Answered(
        page=training_page(found.answer, found.title),
        json=found.answer.model_dump_json(by_alias=True, indent=2),
        job=line.text(),
        assumed=line.assumed,
    )
