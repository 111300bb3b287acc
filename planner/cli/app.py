"""The `planner` command: its options, and the list of what it can do."""

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from planner import __version__
from planner.cli.catalog import catalog
from planner.cli.plan import plan
from planner.cli.predict import predict
from planner.cli.profile import profile

_EPILOG = (
    "Exit codes: 0 success, 1 a bug of planner, 2 bad input, 3 proven infeasible, "
    "4 time limit before any plan, 5 the target cannot express the plan."
)

app = typer.Typer(
    name="planner",
    help="Plans how to lay out an LLM training run on a cluster, with a proof.",
    epilog=_EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("plan", help="Find the fastest layout of a job, and prove it.")(plan)
app.command("predict", help="Price one given layout of a job.")(predict)
app.command("profile", help="Measure this machine's GPUs, for --calibration.")(profile)
app.command("catalog", help="Show what is known, with sources.")(catalog)


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
    for stream in (sys.stdout, sys.stderr):
        # A bar or a dash that the terminal cannot show is no reason to fail.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    app(prog_name="planner")
