"""`planner predict`: price one given layout, no search over it."""

from typing import Annotated

import typer
from pydantic import BaseModel
from rich.console import RenderableType

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
from planner.cost.why.ask import check_name
from planner.document.terminal import report
from planner.errors import BadInputError
from planner.questions.predict import Predict, Priced
from planner.report.screen import quiet_lines, screen
from planner.report.why import why_report

LayoutText = Annotated[
    str | None,
    typer.Option(
        "--layout",
        metavar="TP=8,PP=16,...",
        help="The layout, in place of the spec's layout block.",
        show_default=False,
    ),
]

WhyName = Annotated[
    str | None,
    typer.Option(
        "--why",
        metavar="NAME",
        help="Print the terms of a number, with formulas and sources: step_time, "
        "memory, a cause of the step, or a part of either.",
        show_default=False,
    ),
]
Depth = Annotated[
    int,
    typer.Option("--depth", min=1, metavar="N", help="Levels that --why prints."),
]


@guarded
@sourced
def predict(
    source: Source,
    *,
    context: typer.Context,
    layout: LayoutText = None,
    why_name: WhyName = None,
    depth: Depth = 3,
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
        why_name: Number whose terms are printed in place of the answer. [text]
        depth: Levels of the terms. [1]
        time_limit: Longest time in all, from the start of the process. [s]
        json_to: File for JSON, or `-` for stdout. [-]
        report_to: File for the page. [path]
        trace_to: File for the trace of a step. [path]
        plot: True to print charts. [-]
        verbose: True to print everything. [-]
        quiet: True to print the layout alone. [-]
        fail_on: Risk that makes the exit code 3. [text]

    Raises:
        BadInputError: No layout is given, the layout is not legal, or no number has
            the name of `--why`.
        TimeLimitError: The layout was not priced in time.
        Exit: With 3, for a risk over that of `--fail-on`.
    """
    shown, risk = detail(verbose=verbose, quiet=quiet), failing_risk(fail_on)
    if why_name is not None:
        _check_why(why_name, shown)
    check_writable(json=json_to, report=report_to, trace=trace_to, save=source.save)
    asked = source.read(layout)
    stop = this_run().limited(time_limit)
    found = Predict(asked.job()).answer(stop)
    command = _next(context, found)
    if why_name is None:
        deliver(
            _shown(shown, found, command, asked.assumed), _json(found.answer), json_to
        )
    else:
        terms = found.why(why_name)
        deliver(why_report(terms, depth), _json(terms), json_to)
    write_report(report_to, found.page, command)
    show_steps(found.phases, found.plans, trace_to, plot=plot and json_to != "-")
    fail_over(risk, [plan.estimate.memory for plan in found.plans])


def _check_why(name: str, shown: Detail) -> None:
    """Refuse terms of no number, and terms beside another amount of the answer."""
    check_name(name)
    if shown != Detail.SCREEN:
        raise BadInputError(
            "terms are printed in place of the answer",
            field="--why",
            value=name,
            allowed="--why without --verbose and --quiet",
        )


def _json(answer: BaseModel) -> str:
    """The answer as JSON. [text]."""
    return answer.model_dump_json(by_alias=True, indent=2)


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
        return quiet_lines(found.plans)
    if shown == Detail.VERBOSE:
        return with_assumed(report(found.document()), assumed)
    return screen(found.answers, found.run, command, assumed)
