"""Options that show a plan: a page, a trace, charts in the terminal."""

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from hardware.documents import is_folder, is_there
from planner.cli.output import show, write_whole
from planner.cli.phases import Phase
from planner.errors import BadInputError
from planner.report.heading import heading
from planner.specs.result import RankedPlan

ReportTo = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE.html",
        help="Write figures and tables as one page that needs no network.",
        show_default=False,
    ),
]
TraceTo = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        metavar="FILE.json",
        help="Write one step as a trace for Perfetto or chrome://tracing.",
        show_default=False,
    ),
]
Plot = Annotated[
    bool,
    typer.Option("--plot", help="Print the main charts, small, below the report."),
]


def check_writable(**options: Path | None) -> None:
    """Refuse a file that cannot be written, before anything is worked out.

    Args:
        options: Name of an option to the file it is given, or None. [path]

    Raises:
        BadInputError: A folder is in its place, or its folder takes no new file.
    """
    for option, path in options.items():
        if path is not None and (reason := _obstacle(path)):
            raise BadInputError(
                f"cannot be written: {reason}",
                file=str(path),
                field=f"--{option}",
                allowed="a file in a folder that takes new files",
            )
    given = [path.resolve() for path in options.values() if path is not None]
    if len(set(given)) < len(given):
        raise BadInputError(
            "two outputs cannot go to one file",
            field=" and ".join(f"--{name}" for name, path in options.items() if path),
            value=str(given[0]),
        )


def _obstacle(path: Path) -> str:
    """Why a file cannot be written, empty where nothing stands against it."""
    if is_folder(path):
        return "it is a folder"
    if is_there(path) and not path.is_file():
        return "" if os.access(path, os.W_OK) else "no permission"
    folder = path.parent
    while not is_there(folder) and folder != folder.parent:
        folder = folder.parent
    if not is_folder(folder):
        return f"{folder} is no folder"
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return f"{folder}: {error.strerror or error}"


def write_report(path: Path | None, page: Callable[[], object]) -> None:
    """Write a page, where one is asked for.

    Args:
        path: Where to, or None. [path]
        page: Makes it. [-]

    Raises:
        BadInputError: It cannot be written.
    """
    if path is not None:
        # plotly and jinja take longer to import than most answers to print.
        from planner.report.pages import Page, page_html  # noqa: PLC0415

        made = page()
        assert isinstance(made, Page)
        write_whole(path, page_html(made))


def show_steps(
    phases: Sequence[Phase],
    plans: Sequence[RankedPlan],
    trace_to: Path | None,
    *,
    plot: bool,
) -> None:
    """Write one step as a trace, and print the charts, where they are asked for.

    Args:
        phases: Of the job; one of no name where it has none. [-]
        plans: A plan of each. [-]
        trace_to: Where the trace goes; a later phase's is FILE-NAME. [path]
        plot: Whether charts are printed. [-]

    Raises:
        BadInputError: A trace cannot be written.
    """
    if trace_to is None and not plot:
        return
    from planner.report.plots import plots  # noqa: PLC0415
    from planner.report.timeline import timeline  # noqa: PLC0415
    from planner.report.trace import trace_json  # noqa: PLC0415

    for place, (phase, plan) in enumerate(zip(phases, plans, strict=True)):
        workload = phase.job.workload_of(plan)
        step = timeline(workload, plan.layout)
        if trace_to is not None:
            later = trace_to.with_stem(f"{trace_to.stem}-{phase.name}")
            file = later if place else trace_to
            write_whole(file, trace_json(step, str(heading(workload))))
        if plot:
            show(plots(plan.estimate, step, phase.name))
