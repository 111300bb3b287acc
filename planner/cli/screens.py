"""Options that say what of an answer is printed, and the command to go on with."""

import shlex
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer

from planner.errors import BadInputError

Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Print every figure and assumption."),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print the layout alone, as --layout takes it."),
]
LIMITS = frozenset({"time_limit", "memory_limit"})
"""Options that a proof does not depend on."""
OF_A_SEARCH = frozenset({"top", "robust"})
"""Options of `plan` that other commands lack."""
SHOWN = frozenset(
    {
        "json_to",
        "report_to",
        "trace_to",
        "plot",
        "out",
        "save",
        "verbose",
        "quiet",
        "layout",
        "fail_on",
        "why_name",
        "depth",
    }
)
"""Options that change what is shown or written, or the layout alone."""


class Detail(StrEnum):
    """Amount of an answer that is printed."""

    QUIET = "quiet"
    SCREEN = "screen"
    VERBOSE = "verbose"


def detail(*, verbose: bool, quiet: bool) -> Detail:
    """Read the amount to print off the options.

    Args:
        verbose: True for everything. [-]
        quiet: True for the layout alone. [-]
    """
    if verbose and quiet:
        raise BadInputError(
            "everything and the layout alone cannot both be printed",
            field="--quiet",
            allowed="either --verbose or --quiet",
        )
    if quiet:
        return Detail.QUIET
    return Detail.VERBOSE if verbose else Detail.SCREEN


def again(
    context: typer.Context, command: str, without: frozenset[str], *more: str
) -> str:
    """The command line of a job as it was typed, for another command."""
    words = ["planner", command]
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if name not in without and source is not None and source.name == "COMMANDLINE":
            words += _words(parameter, context.params[name])
    return shlex.join([*words, *more])


def _words(parameter: Any, value: Any) -> Iterator[str]:
    """The words that give a parameter its value."""
    option = parameter.opts[0] if parameter.param_type_name == "option" else None
    for each in value if isinstance(value, list | tuple) else [value]:
        if option is not None:
            yield option
        if each is not True:
            yield f"{each:g}" if isinstance(each, float) else str(each)
