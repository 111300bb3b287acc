"""Errors of a command as a message on stderr and an exit code."""

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec

import typer

from planner.cli.output import discard_stdout
from planner.cli.stopping import LEFT_BY_SIGNAL, SignalError, running
from planner.errors import BadInputError, PlannerError
from planner.hardware.reading.escape import shown

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)
"""Errors of a file or device that takes no more. [1]"""

NEWLINE = "\n"
P = ParamSpec("P")


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """A command that ends with a message, never with a traceback.

    A signal ends the command's searches, and the command leaves with the signal's
    code. A reader of stdout that goes away, as `head` does, is no error.
    """

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with running() as this:
            try:
                _keep_inputs(command, kwargs)
                command(*args, **kwargs)
                sys.stdout.flush()
            except (typer.Exit, typer.Abort):
                this.leave()
                raise
            except BrokenPipeError:
                discard_stdout()
            except (SignalError, Exception) as error:
                # A library may raise an error of its own from the signal's.
                code = tell(this.ended or error)
                this.leave()
                raise typer.Exit(code) from error
            this.leave()

    return run


def _keep_inputs(command: Callable[P, None], given: Mapping[str, object]) -> None:
    """Refuse outputs over inputs; the check is imported when a command is run."""
    from planner.cli.overwriting import refuse_overwriting  # noqa: PLC0415

    refuse_overwriting(command, given)


def tell(error: BaseException) -> int:
    """Say what went wrong."""
    if isinstance(error, SignalError):
        print(f"error: ended by {error}", file=sys.stderr)
        return error.exit_code
    if isinstance(error, KeyboardInterrupt):
        print("error: ended by SIGINT", file=sys.stderr)
        return LEFT_BY_SIGNAL + signal.SIGINT
    if isinstance(error, BrokenPipeError):
        discard_stdout()
        return 0
    if isinstance(error, OSError) and error.errno in FULL:
        discard_stdout()
        print(f"error: stdout: cannot be written: {error.strerror}", file=sys.stderr)
        return BadInputError.exit_code
    if isinstance(error, PlannerError) and error.exit_code != PlannerError.exit_code:
        print(f"error: {shown(error, keep=NEWLINE)}", file=sys.stderr)
        return error.exit_code
    if os.environ.get("PLANNER_DEBUG") == "1":
        traceback.print_exception(error)
    last = shown(traceback.format_exception_only(error)[-1].strip())
    print(f"error: this is a bug of planner, please report it: {last}", file=sys.stderr)
    print("set PLANNER_DEBUG=1 for the whole traceback", file=sys.stderr)
    return PlannerError.exit_code
