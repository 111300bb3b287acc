"""`planner explain`: why a job cannot fit, or why its best layout wins."""

from typing import Annotated

import typer

from planner.cli.guard import guarded
from planner.cli.jobs import Job, load
from planner.cli.options import (
    Assignments,
    Calibration,
    Hardware,
    JsonTo,
    Robust,
    Spec,
    lay_over,
)
from planner.cli.output import check_writable, deliver
from planner.cli.pictures import ReportTo, write_report
from planner.cli.stopping import MEMORY, MemoryLimit, this_run
from planner.cost.workload import Workload
from planner.errors import InfeasibleError, TimeLimitError
from planner.explanation import as_error
from planner.explanation import explain as reasons
from planner.job.resolve import about
from planner.report import heading
from planner.report.explain import explanation_report
from planner.specs.answer.explanation import Explained
from planner.specs.layouts.layout import PartialLayout
from planner.specs.reading.read import read_layout

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
def explain(
    spec: Spec,
    *,
    layout: LayoutText = None,
    assignments: Assignments = None,
    time_limit: TimeLimit = 60.0,
    memory_limit: MemoryLimit = MEMORY,
    robust: Robust = "off",
    json_to: JsonTo = None,
    report_to: ReportTo = None,
    hardware: Hardware = None,
    calibration: Calibration = None,
) -> None:
    """Print which limits clash and what helps, or what binds the best plan.

    Args:
        spec: The job. [-]
        layout: Layout to judge, in its short form. [text]
        assignments: Fields to replace. [text]
        time_limit: Longest time in all, from the start of the process. [s]
        memory_limit: Most memory of the process and its workers. [text]
        robust: `on` if a tied plan may stand before the fastest. [text]
        json_to: File for JSON, or `-` for stdout. [-]
        report_to: File for the page. [path]
        hardware: Folder of hardware laid over ours. [-]
        calibration: File of what the user measured. [-]

    Raises:
        InfeasibleError: No layout fits the memory.
        TimeLimitError: No layout was found in time.
        BadInputError: No layout is legal, or the given layout is not.
    """
    check_writable(json=json_to, report=report_to)
    lay_over(hardware)
    job = load(spec, assignments, calibration)
    given = job.spec.layout if layout is None else read_layout(layout)
    with this_run().searching(time_limit, memory_limit) as stop:
        answer = _explained(job, given, stop.left, robust=robust == "on")
    workload = job.workload_of(answer.best)
    text = answer.model_dump_json(by_alias=True, indent=2)
    if answer.contradiction is not None:
        # What is refused leaves no file behind.
        json_to, report_to = "-" if json_to == "-" else None, None
    deliver(explanation_report(answer, heading(workload)), text, json_to)
    write_report(report_to, lambda: _page(answer, workload))
    _leave(answer, time_limit, job.file)


def _explained(
    job: Job, given: PartialLayout, time_limit: float, *, robust: bool
) -> Explained:
    """The answer, with the job's own warnings put in."""
    with about(job.file):
        found = reasons(job, given, time_limit=time_limit, robust=robust)
    warnings = (*job.warnings, *found.warnings)
    return found.model_copy(update={"warnings": warnings})


def _page(answer: Explained, workload: Workload) -> object:
    from planner.report.pages import explanation_page  # noqa: PLC0415

    return explanation_page(answer, workload, heading(workload))


def _leave(answer: Explained, time_limit: float, file: str) -> None:
    """End with the exit code that `planner plan` would have."""
    if answer.contradiction is not None:
        raise as_error(answer.contradiction, file)
    if answer.status == "infeasible":
        raise InfeasibleError("proven: no legal layout fits the memory of the GPUs")
    if answer.status == "unknown":
        raise TimeLimitError(
            f"no plan within {time_limit:g} s, and none ruled out; "
            "give a longer --time-limit or limit the space under search:"
        )
