"""The option that makes a risk of running out of memory fail a command."""

from collections.abc import Iterable
from typing import Annotated

import typer

from planner.errors import BadInputError
from planner.specs.answer.estimate import MemoryEstimate
from planner.specs.answer.memory import ServingEstimate

EXIT_DOES_NOT_FIT = 3
WORDS = {"oom": 0.5, "at-risk": 0.05}
"""Most probability of running out of memory that passes, by the option's word. [1]"""

Failing = Annotated[
    str | None,
    typer.Option(
        "--fail-on",
        metavar="oom|at-risk|P",
        help="Exit with 3 where the probability of running out of memory is over 50 % "
        "(oom), over 5 % (at-risk), or over P, such as 0.2.",
        show_default=False,
    ),
]


def failing_risk(fail_on: str | None) -> float:
    """Probability of running out of memory above which a command fails.

    Args:
        fail_on: `oom`, `at-risk`, a probability, or None. [text]

    Raises:
        BadInputError: It is neither a word nor a probability.
    """
    if fail_on is None:
        return 1.0
    try:
        risk = WORDS[fail_on] if fail_on in WORDS else float(fail_on)
    except ValueError:
        risk = -1.0
    if not 0 <= risk < 1:
        allowed = "oom, at-risk, or a probability from 0 to below 1, such as 0.05"
        raise BadInputError(
            "no risk", field="--fail-on", value=fail_on, allowed=allowed
        )
    return risk


def fail_over(risk: float, held: Iterable[MemoryEstimate | ServingEstimate]) -> None:
    """Leave with 3 where a job is likelier to run out of memory than it may be."""
    if any((memory.oom_probability or 0.0) > risk for memory in held):
        raise typer.Exit(EXIT_DOES_NOT_FIT)
