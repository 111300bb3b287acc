"""`planner sweep`: a plan for each combination of values of some fields."""

from typing import Annotated

import typer

from planner.cli.guard import guarded
from planner.cli.options import JsonTo, Robust
from planner.cli.output import check_writable, deliver
from planner.cli.pictures import ReportTo, write_report
from planner.cli.progress import candidate_progress
from planner.cli.screens import SHOWN, again
from planner.cli.sources import Source, sourced, with_assumed
from planner.cli.spread import FallBack, Resume, Scheduler
from planner.cli.stopping import MemoryLimit
from planner.document.terminal import report
from planner.errors import InfeasibleError, TimeLimitError
from planner.questions.compare import refuse_lost, runner
from planner.questions.inputs.limits import MEMORY
from planner.questions.sweep import SweepOver, fields_over
from planner.report.sweep import sweep_document
from planner.specs.answer.sweep import SweepAnswer

OverTexts = Annotated[
    list[str],
    typer.Option(
        "--over",
        metavar="PATH=V1,V2",
        help="A field of the job and its values; repeatable, for all combinations.",
        show_default=False,
    ),
]
TimeLimit = Annotated[
    float,
    typer.Option(
        "--time-limit", min=0, metavar="S", help="Seconds to search each combination."
    ),
]


@guarded
@sourced
def sweep(
    source: Source,
    *,
    context: typer.Context,
    over: OverTexts,
    time_limit: TimeLimit = 60.0,
    memory_limit: MemoryLimit = MEMORY,
    robust: Robust = "on",
    scheduler: Scheduler = None,
    fall_back: FallBack = False,
    resume: Resume = None,
    json_to: JsonTo = None,
    report_to: ReportTo = None,
) -> None:
    """Plan a job for each combination of values: a table and a chart.

    Args:
        source: The job. [-]
        context: Context of the command. [-]
        over: Fields and their values. [text]
        time_limit: Longest search of a combination. [s]
        memory_limit: Most memory of the process and its workers. [text]
        robust: `on` to limit the risk of running out of memory. [text]
        scheduler: Address of the scheduler of a Dask cluster. [text]
        fall_back: Plan here where the scheduler cannot be reached. [-]
        resume: Folder of finished combinations. [-]
        json_to: File for JSON, or `-` for stdout. [-]
        report_to: File for the page. [path]

    Raises:
        BadInputError: A field is wrong, or no combination can be planned.
        InfeasibleError: The job fits in no combination.
        TimeLimitError: No plan was found before the searches ended.
    """
    check_writable(json=json_to, report=report_to, save=source.save)
    fields, asked = fields_over(over), source.read()
    run = runner(
        scheduler,
        fall_back=fall_back,
        note=lambda text: typer.echo(f"note: {text}", err=True),
    )
    job = asked.unasked()
    asked.save()
    question = SweepOver(
        job, fields, run, robust == "on", time_limit, memory_limit, resume
    )
    with candidate_progress() as told:
        answer = question.answer(told)
    text = answer.model_dump_json(by_alias=True, indent=2)
    document = sweep_document(answer)
    deliver(with_assumed(report(document), asked.assumed), text, json_to)
    command = again(context, "sweep", SHOWN)
    write_report(report_to, lambda: document, command)
    refuse_lost(run)
    _require_plan(answer)


def _require_plan(answer: SweepAnswer) -> None:
    """Leave with the exit code of a sweep without a plan."""
    if any(cell.plan for cell in answer.cells):
        return
    if any(cell.status == "unknown" for cell in answer.cells):
        raise TimeLimitError("no plan in time; give more --time-limit")
    raise InfeasibleError("proven: the job fits in no combination")
