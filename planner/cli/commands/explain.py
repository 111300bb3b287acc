"""`planner explain`: why a job cannot fit, or why its best layout wins."""

from typing import Annotated

import typer

from planner.cli.guard import guarded
from planner.cli.options import JsonTo, Robust
from planner.cli.output import check_writable, deliver
from planner.cli.pictures import ReportTo, write_report
from planner.cli.screens import SHOWN, again
from planner.cli.sources import Source, sourced, with_assumed
from planner.cli.stopping import MemoryLimit, this_run
from planner.document.terminal import report
from planner.errors import InfeasibleError, TimeLimitError
from planner.planning.explanation import as_error
from planner.questions.explain import Explain
from planner.questions.inputs.limits import MEMORY
from planner.specs.answer.explanation import Explained

LayoutText = Annotated[
    str | None,
    typer.Option(
        "--layout",
        metavar="TP=8,PP=16,...",
        help="A layout to judge, in place of the spec's.",
        show_default=False,
    ),
]
TimeLimit = Annotated[
    float,
    typer.Option("--time-limit", min=0, metavar="S", help="Seconds for all searches."),
]


@guarded
@sourced
def explain(
    source: Source,
    *,
    context: typer.Context,
    layout: LayoutText = None,
    time_limit: TimeLimit = 60.0,
    memory_limit: MemoryLimit = MEMORY,
    robust: Robust = "on",
    json_to: JsonTo = None,
    report_to: ReportTo = None,
) -> None:
    """Print which limits clash and what helps, or what binds the best plan.

    Args:
        source: The job. [-]
        context: Context of the command. [-]
        layout: Layout to judge, in its short form. [text]
        time_limit: Longest time in all, from the start of the process. [s]
        memory_limit: Most memory of the process and its workers. [text]
        robust: `on` to limit the risk of running out of memory. [text]
        json_to: File for JSON, or `-` for stdout. [-]
        report_to: File for the page. [path]
    """
    check_writable(json=json_to, report=report_to, save=source.save)
    asked = source.read(layout)
    job = asked.job()
    stop = this_run().limited(time_limit, memory_limit)
    found = Explain(job, robust == "on").answer(stop)
    answer = found.answer
    text = answer.model_dump_json(by_alias=True, indent=2)
    if answer.contradiction is not None:
        # What is refused leaves no file behind.
        json_to, report_to = "-" if json_to == "-" else None, None
    shown = with_assumed(report(found.document()), asked.assumed)
    deliver(shown, text, json_to)
    command = again(context, "explain", SHOWN - {"layout"})
    write_report(report_to, found.page, command)
    _leave(answer, time_limit, job.file)


def _leave(answer: Explained, time_limit: float, file: str) -> None:
    """End with the exit code that `planner plan` would have."""
    if answer.contradiction is not None:
        raise as_error(answer.contradiction, file)
    if answer.status == "infeasible":
        raise InfeasibleError("proven: no legal layout fits the memory of the GPUs")
    if answer.status == "unknown":
        raise TimeLimitError(
            f"no plan within {time_limit:g} s, and none ruled out; "
            "give a longer --time-limit or limit the space, as --set search.tp=8"
        )
