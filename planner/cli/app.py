"""The `planner` command: options, and the list of commands."""

import gc
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from io import FileIO, TextIOWrapper
from keyword import iskeyword
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from planner import __version__
from planner.cli.guard import tell
from planner.cli.output import discard_stdout
from planner.cli.stopping import begin_with_process

_EPILOG = (
    "Exit codes: 0 success, 1 a bug of planner, 2 bad input, 3 proven infeasible, "
    "4 time limit or memory limit before any plan, 5 the target cannot express the "
    "plan, 130 Ctrl-C, 143 SIGTERM."
)
COMMANDS = {
    "plan": "Find the fastest layout of a job, and prove it.",
    "predict": "Price one given layout of a job.",
    "explain": "Say why a job cannot fit, or why its best layout wins.",
    "memory": "Say whether a job fits, and what is the most that does.",
    "sweep": "Plan a job for each combination of values of some fields.",
    "tune": "Measure the plans that tie in short runs, and say what to run next.",
    "diff": "Compare two plans or jobs, term by term.",
    "size": "Find the parameters and tokens that days or money train best.",
    "compare": "Compare clusters for a job, or a purchase, by time and cost.",
    "emit": "Write the launch files of a plan.",
    "import": "Read launch files back into a job.",
    "calibrate": "Fit a stack's constants to your measured rows.",
    "validate": "Predict measured runs, and report the errors.",
    "profile": "Measure this machine's GPUs, for --calibration.",
    "catalog": "Show what is known, with sources.",
    "serve": "Plan, compare and explain in a browser, from this machine.",
}
"""Command to help text; the function and the file have the command's name."""
YOUNG = 500_000
"""New objects before the garbage collector looks at them; Python's default is 700. [1]

A command makes many objects that last, and next to no rings, so looks find nothing.
"""


class _Stderr(FileIO):
    """Messages, read or not: a reader that has gone changes neither work nor code."""

    def write(self, text: Any) -> int:
        """Write a message, which counts as written where nobody reads it.

        Args:
            text: The message. [B]

        Returns:
            Bytes that were taken. [B]
        """
        try:
            return super().write(text)
        except OSError:
            return len(text)


class _Command(TyperCommand):
    """A command that refuses a second value of an option, which the parser drops."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line, each option once unless it repeats."""
        *_, order = self.make_parser(ctx).parse_args(args=list(args))
        single = [its for its in order if not getattr(its, "multiple", True)]
        for param in single:
            if single.count(param) > 1:
                ctx.fail(f"Option '{param.opts[0]}' is given twice.")
        return super().parse_args(ctx, args)


class _OnDemand(Mapping[str, Any]):
    """Commands by name, each imported when it is asked for.

    The solver and the fits take longer to import than most commands take to run.
    """

    def __getitem__(self, name: str) -> Any:
        # A keyword cannot name a module or a function.
        its = f"{name}_" if iskeyword(name) else name
        function = getattr(import_module(f"planner.cli.commands.{its}"), its)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name, cls=_Command, help=COMMANDS[name])(function)
        return typer.main.get_command(alone)

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS

    def get(self, name: str, default: Any = None) -> Any:
        """One command, imported."""
        return self[name] if name in COMMANDS else default

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


@contextmanager
def _unread() -> Iterator[None]:
    """Leave with 0 where the reader of stdout has gone; click leaves with 1."""
    try:
        yield
    except BrokenPipeError as error:
        discard_stdout()
        raise typer.Exit from error


class _Group(TyperGroup):
    """The whole command: its commands are imported on demand."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        commands: Any = _OnDemand()
        self.commands = commands

    def make_context(self, *args: Any, **more: Any) -> Any:
        """Read the options before the command; help that nobody reads is no error."""
        with _unread():
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; its help that nobody reads is no error."""
        with _unread():
            return super().invoke(ctx)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(
    name="planner",
    cls=_Group,
    help="Plans how to lay out an LLM training run on a cluster, with a proof.",
    epilog=_EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"planner {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Options before the command."""
    del version


def main() -> None:
    """Run the command line, and leave with its exit code."""
    gc.set_threshold(YOUNG)
    begin_with_process()
    # A stream that the caller closed is no stream at all here.
    sys.stdout = sys.stdout or TextIOWrapper(FileIO(os.devnull, "w"))
    messages = sys.stderr.fileno() if sys.stderr else os.open(os.devnull, os.O_WRONLY)
    unheard = _Stderr(messages, "w", closefd=False)
    sys.stderr = TextIOWrapper(unheard, line_buffering=True)
    for stream in (sys.stdout, sys.stderr):
        # A bar or a dash that the terminal cannot show is no reason to fail.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="planner")
    except (KeyboardInterrupt, OSError) as error:
        # Outside a command: while one is imported, or help is printed.
        sys.exit(tell(error))
