"""Exceptions of planner, each with an exit code.

::

    PlannerError                exit 1   a bug of ours
    ├── BadInputError           exit 2   a file, a field or a limit is wrong
    ├── InfeasibleError         exit 3   legal layouts exist, none fits the memory
    ├── TimeLimitError          exit 4   the time limit came before any plan
    └── UnsupportedPlanError    exit 5   the target cannot express this plan
"""

from collections.abc import Iterable

from planner.hardware.reading.escape import shown
from planner.hardware.reading.nearest import alike

DISTRIBUTION = "trainplan"
"""Name on the package index, where `planner` is another project. [text]"""
LONGEST_FIELD = 200
"""Characters of a field in a message; the deepest field of planner has 60. [1]"""
LONGEST_MESSAGE = 1000
"""Characters of a message beside its file, field and value. [1]"""
LONGEST_VALUE = 60
"""Characters of a value in a message. [1]"""


class PlannerError(Exception):
    """A run that cannot go on; carries the exit code of the command line."""

    exit_code = 1
    file: str | None = None
    """File that is wrong, where one is. [text]"""
    field: str | None = None
    """Field or option that is wrong, as a dotted path, where one is. [text]"""


class BadInputError(PlannerError):
    """Input that cannot be planned: says where it is and what is allowed."""

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        field: str | None = None,
        value: object = None,
        allowed: str | None = None,
    ) -> None:
        self.message = message
        self.file, self.field, self.value, self.allowed = file, field, value, allowed
        super().__init__(message)

    def __str__(self) -> str:
        field = _cut(self.field or "", LONGEST_FIELD)
        place = ": ".join(shown(part) for part in (self.file, field) if part)
        given = "" if self.value is None else f" (given: {short(self.value)})"
        allowed = "" if self.allowed is None else f"; allowed: {self.allowed}"
        message = _cut(" ".join(self.message.split()), LONGEST_MESSAGE)
        return f"{place + ': ' if place else ''}{message}{given}{allowed}"


def install(extra: str) -> str:
    """Command that installs an extra of this distribution. [text]."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def short(value: object) -> str:
    """A value as Python writes it, cut to the characters that help to find it."""
    return _cut(repr(value), LONGEST_VALUE)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 4]} ..."


class InfeasibleError(PlannerError):
    """Every legal layout was shown not to fit the memory of one GPU."""

    exit_code = 3


class TimeLimitError(PlannerError):
    """The time limit came before the first plan; nothing is known to be wrong."""

    exit_code = 4


class UnsupportedPlanError(PlannerError):
    """The chosen target has no words for something that the plan needs."""

    exit_code = 5


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Name the closest known names, or all of them when few and none is close."""
    names = sorted(known)
    close = alike(name, names, 0.5)
    if close:
        return f"did you mean {' or '.join(close)}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"known: {shown}"
