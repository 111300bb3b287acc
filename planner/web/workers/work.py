"""The work of a process: a question goes in, its answer comes out."""

from pathlib import Path

from planner.errors import PlannerError
from planner.web.answers.compare import compare_answer
from planner.web.answers.one_job import explain_answer, memory_answer
from planner.web.answers.plan import Tell, plan_answer, what_if_answer
from planner.web.answers.rows import rows_answer
from planner.web.question import Answered, Question, Refused

BUG = "this is a bug of planner, please report it"


def answer(question: Question, tell: Tell, folder: Path) -> Answered | Refused:
    """Answer a question, or say why it cannot be.

    Args:
        question: The question. [-]
        tell: Told of the state of the work. [-]
        folder: Empty folder. [path]
    """
    try:
        return _answer(question, tell, folder)
    except PlannerError as error:
        ours = error.exit_code == PlannerError.exit_code
        said = str(getattr(error, "message", error))
        return Refused(_words(error, said), error.field or "", bug=ours)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # no question ends the server
        return Refused(f"{BUG}: {type(error).__name__}: {error}", bug=True)


def _words(error: PlannerError, said: str) -> str:
    """The message without file and field, which the page shows by its place."""
    allowed = getattr(error, "allowed", None)
    return f"{said}; allowed: {allowed}" if allowed else said


def _answer(question: Question, tell: Tell, folder: Path) -> Answered:
    if question.kind == "plan":
        return plan_answer(question, tell)
    if question.kind == "what-if":
        return what_if_answer(question, tell)
    if question.kind == "compare":
        return compare_answer(question, tell)
    if question.kind == "memory":
        return memory_answer(question)
    if question.kind == "explain":
        return explain_answer(question)
    return rows_answer(question, tell, folder)
