"""Turns what goes wrong into a message on stderr and an exit code."""

import os
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import typer

from planner.errors import PlannerError
from planner.specs.escape import shown

INTERRUPTED = 130
"""What a shell reports of a command stopped by Ctrl-C: 128 + SIGINT."""

NEWLINE = "\n"
P = ParamSpec("P")


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """A command that ends with a message, never with a traceback.

    Args:
        command: Function of a command. [-]

    Returns:
        The same, raising nothing but typer's own exits. [-]
    """

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            raise typer.Exit(_tell(error)) from error

    return run


def _tell(error: Exception) -> int:
    """Say what went wrong, and with which code to leave."""
    if isinstance(error, PlannerError) and error.exit_code != PlannerError.exit_code:
        print(f"error: {shown(error, keep=NEWLINE)}", file=sys.stderr)
        return error.exit_code
    if os.environ.get("PLANNER_DEBUG") == "1":
        traceback.print_exception(error)
    last = shown(traceback.format_exception_only(error)[-1].strip())
    print(f"error: this is a bug of planner, please report it: {last}", file=sys.stderr)
    print("set PLANNER_DEBUG=1 for the whole traceback", file=sys.stderr)
    return PlannerError.exit_code
