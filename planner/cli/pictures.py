"""Options that show a plan: a page, a trace, charts in the terminal."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.output import show
from planner.planning.economics.phases import Phase
from planner.questions.outputs.files import write_whole
from planner.report.heading import heading
from planner.specs.answer.result import RankedPlan

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


def write_report(
    path: Path | None, page: Callable[[], object], command: str = ""
) -> None:
    """Write a page, where a file is given for it.

    Args:
        path: File of the page, or None. [path]
        page: Function that makes the page. [-]
        command: Command on the page, for a shell; empty for the page's own. [text]
    """
    if path is not None:
        # plotly and jinja take longer to import than most answers to print.
        from planner.document.blocks import Document  # noqa: PLC0415
        from planner.report.pages import page_html  # noqa: PLC0415

        made = page()
        assert isinstance(made, Document)
        told = replace(made, command=command) if command else made
        write_whole(path, page_html(told))


def show_steps(
    phases: Sequence[Phase],
    plans: Sequence[RankedPlan],
    trace_to: Path | None,
    *,
    plot: bool,
) -> None:
    """Write one step as a trace, and print the charts, where they are asked for.

    Args:
        phases: Phases of the job; one without a name where the job has none. [-]
        plans: A plan of each phase. [-]
        trace_to: File for the trace; a later phase's trace is FILE-NAME. [path]
        plot: True to print charts. [-]
    """
    if trace_to is None and not plot:
        return
    from planner.report.charts.plots import plots  # noqa: PLC0415
    from planner.report.charts.timeline import timeline  # noqa: PLC0415
    from planner.report.charts.trace import trace_json  # noqa: PLC0415

    for place, (phase, plan) in enumerate(zip(phases, plans, strict=True)):
        workload = phase.job.workload_of(plan)
        step = timeline(workload, plan.layout)
        if trace_to is not None:
            later = trace_to.with_stem(f"{trace_to.stem}-{phase.name}")
            file = later if place else trace_to
            write_whole(file, trace_json(step, str(heading(workload))))
        if plot:
            show(plots(plan.estimate, step, phase.name))
