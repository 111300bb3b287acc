"""`planner predict`: price one given layout, no search over it."""

from dataclasses import replace
from typing import Annotated

import typer
from rich.console import RenderableType

from planner.api.flow.predict import Priced, cautions, priced
from planner.cli.guard import guarded
from planner.cli.options import TO_PRICE, JsonTo, TimeLimit
from planner.cli.output import check_writable, deliver
from planner.cli.pictures import (
    Plot,
    ReportTo,
    TraceTo,
    show_steps,
    write_report,
)
from planner.cli.screens import (
    LIMITS,
    SHOWN,
    Detail,
    Quiet,
    Verbose,
    again,
    detail,
)
from planner.cli.sources import Source, sourced, with_assumed
from planner.cli.stopping import this_run
from planner.cli.verdicts import Failing, fail_over, failing_risk
from planner.report import heading, phases_report, prediction_report, quiet_report
from planner.report.screen import PhaseAnswer, screen

LayoutText = Annotated[
    str | None,
    typer.Option(
        "--layout",
        metavar="TP=8,PP=16,...",
        help="The layout, in place of the spec's layout block.",
        show_default=False,
    ),
]


@guarded
@sourced
def predict(
    source: Source,
    *,
    context: typer.Context,
    layout: LayoutText = None,
    time_limit: TimeLimit = TO_PRICE,
    json_to: JsonTo = None,
    report_to: ReportTo = None,
    trace_to: TraceTo = None,
    plot: Plot = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    fail_on: Failing = None,
) -> None:
    """Print time and memory of one layout; what it leaves open is filled in.

    Args:
        source: The job. [-]
        context: Context of the command. [-]
        layout: Layout in its short form. [text]
        time_limit: Longest time in all, from the start of the process. [s]
        json_to: File for JSON, or `-` for stdout. [-]
        report_to: File for the page. [path]
        trace_to: File for the trace of a step. [path]
        plot: True to print charts. [-]
        verbose: True to print everything. [-]
        quiet: True to print the layout alone. [-]
        fail_on: Risk that makes the exit code 3. [text]

    Raises:
        BadInputError: No layout is given, or the layout is not legal.
        TimeLimitError: The layout was not priced in time.
        Exit: With 3, for a risk over that of `--fail-on`.
    """
    shown, risk = detail(verbose=verbose, quiet=quiet), failing_risk(fail_on)
    check_writable(json=json_to, report=report_to, trace=trace_to, save=source.save)
    asked = source.read(layout)
    with this_run().searching(time_limit):
        found = priced(asked.job())
    json_text = found.answer.model_dump_json(by_alias=True, indent=2)
    command = _next(context, found)
    deliver(_shown(shown, found, command, asked.assumed), json_text, json_to)
    write_report(report_to, lambda: replace(found.page(), command=command))
    show_steps(found.phases, found.plans, trace_to, plot=plot and json_to != "-")
    fail_over(risk, [plan.estimate.memory for plan in found.plans])


def _next(context: typer.Context, found: Priced) -> str:
    """The command that finds a better layout, or says why there is none to find."""
    if found.can_be_searched:
        line = again(context, "plan", SHOWN | LIMITS)
        return f"{line}  # searches for a better layout"
    return (
        f"{again(context, 'explain', SHOWN | LIMITS)}  # says why none can be planned"
    )


def _shown(
    shown: Detail, found: Priced, command: str, assumed: tuple[str, ...]
) -> RenderableType:
    """The answer as it is printed: the layouts alone, one screen or all of it."""
    if shown == Detail.QUIET:
        return quiet_report(found.plans)
    if shown == Detail.VERBOSE:
        return with_assumed(_report(found), assumed)
    told = []
    for phase, plan in found.pairs:
        title = heading(phase.job.workload_of(plan))
        told.append(PhaseAnswer(phase.name, title, plan, cautions(phase, plan)))
    return screen(told, found.run, command, assumed)


def _report(found: Priced) -> RenderableType:
    """One report, or one report for each phase with the whole run."""
    several = len(found.phases) > 1
    parts = [
        (
            phase.name,
            prediction_report(
                plan,
                heading(phase.job.workload_of(plan)),
                cautions(phase, plan),
                None if several else found.run,
            ),
        )
        for phase, plan in found.pairs
    ]
    return phases_report(parts, found.run) if several else parts[0][1]
