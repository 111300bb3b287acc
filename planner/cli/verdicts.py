"""The option that makes a verdict fail a command."""

from enum import StrEnum
from typing import Annotated

import typer

from planner.specs.answer.estimate import Verdict

EXIT_DOES_NOT_FIT = 3


class FailOn(StrEnum):
    """The mildest verdict that makes the command fail."""

    OOM = "oom"
    AT_RISK = "at-risk"


Failing = Annotated[
    FailOn | None,
    typer.Option(
        "--fail-on",
        help="Exit with 3 on this verdict or a worse one.",
        show_default=False,
    ),
]


def fail_on_verdict(verdict: Verdict, fail_on: FailOn | None) -> None:
    """Leave with 3 where a verdict is the named verdict or worse.

    Args:
        verdict: Verdict on the memory. [-]
        fail_on: The mildest verdict that fails, or None. [-]

    Raises:
        Exit: With 3.
    """
    if fail_on is not None and verdict in ("oom", fail_on.value):
        raise typer.Exit(EXIT_DOES_NOT_FIT)
