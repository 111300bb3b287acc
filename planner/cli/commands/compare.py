"""`planner compare`: the same job on several clusters, or a purchase file."""

from pathlib import Path
from typing import Annotated

import typer

from planner.cli.guard import guarded
from planner.cli.lines import (
    GlobalBatch,
    Line,
    LineFramework,
    LineMethod,
    LineModel,
    On,
    SeqLen,
    Tokens,
)
from planner.cli.options import Assignments, Calibration, Hardware, JsonTo
from planner.cli.output import check_writable, deliver
from planner.cli.pictures import ReportTo, write_report
from planner.cli.progress import candidate_progress
from planner.cli.screens import SHOWN, again
from planner.cli.sources import with_assumed
from planner.cli.spread import FallBack, Resume, Scheduler
from planner.cli.stopping import MemoryLimit
from planner.document.terminal import report
from planner.errors import InfeasibleError, TimeLimitError
from planner.job.calibration_file import read_calibration
from planner.planning.comparison.answer import Comparison
from planner.questions.compare import Compare, refuse_lost, runner
from planner.questions.inputs.limits import MEMORY
from planner.questions.inputs.overlay import catalog_with
from planner.report.comparison import comparison_document

Specs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[SPEC]...",
        help="Job files, or one purchase file; or names of those that come along; or "
        "none, with --model and --on.",
        show_default=False,
    ),
]
Deadline = Annotated[
    str | None,
    typer.Option(
        "--deadline",
        metavar="TIME",
        help="Longest run, as '60 d': the smallest cluster of each kind that meets it.",
        show_default=False,
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="MONEY",
        help="Most to sign for, as '100 MUSD': the largest cluster that it pays for.",
        show_default=False,
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        min=0,
        metavar="S",
        help="Seconds for the whole comparison; what is open then is called not "
        "settled. Absent: work ends a search, not time.",
        show_default=False,
    ),
]
Work = Annotated[
    float,
    typer.Option(
        "--effort",
        min=0.01,
        metavar="TIMES",
        help="Work for each candidate, of the usual; it is counted, so that answers "
        "do not depend on how busy a machine is.",
    ),
]
Tolerance = Annotated[
    float,
    typer.Option(
        "--tolerance",
        min=0,
        max=0.5,
        metavar="SHARE",
        help="A search ends when no plan can be faster by more; 0 proves each best.",
    ),
]


@guarded
def compare(
    specs: Specs = None,
    *,
    context: typer.Context,
    model: LineModel = None,
    on: On = None,
    method: LineMethod = None,
    seq_len: SeqLen = None,
    global_batch: GlobalBatch = None,
    framework: LineFramework = None,
    tokens: Tokens = None,
    deadline: Deadline = None,
    budget: Budget = None,
    assignments: Assignments = None,
    time_limit: TimeLimit = None,
    memory_limit: MemoryLimit = MEMORY,
    effort: Work = 1.0,
    tolerance: Tolerance = 0.07,
    scheduler: Scheduler = None,
    fall_back: FallBack = False,
    resume: Resume = None,
    json_to: JsonTo = None,
    report_to: ReportTo = None,
    hardware: Hardware = None,
    calibration: Calibration = None,
) -> None:
    """Compare clusters for a job: time, cost, energy, and what to sign for.

    Args:
        specs: Jobs, or one purchase file. [-]
        context: Context of the command. [-]
        model: Model of a job without a file. [text]
        on: GPUs of each candidate. [text]
        method: Method of training. [text]
        seq_len: Tokens of a sequence. [token]
        global_batch: Sequences of a step. [sequence]
        framework: Framework by name, or `any`. [text]
        tokens: Tokens of the run. [token]
        deadline: Longest run. [text]
        budget: Most money. [text]
        assignments: Fields of the job to replace. [text]
        time_limit: Longest time of the whole comparison. [s]
        memory_limit: Most memory of the process and its workers. [text]
        effort: Work for each candidate, of the usual. [1]
        tolerance: Largest share by which another plan may be faster. [1]
        scheduler: Address of the scheduler of a Dask cluster. [text]
        fall_back: Plan here where the scheduler cannot be reached. [-]
        resume: Folder of finished candidates. [-]
        json_to: File for JSON, or `-` for stdout. [-]
        report_to: File for the page. [path]
        hardware: Folder of hardware laid over ours. [-]
        calibration: File of what the user measured. [-]

    Raises:
        BadInputError: A file or option is wrong, nothing meets the deadline, or the
            budget pays for nothing.
        InfeasibleError: The job fits on no candidate.
        TimeLimitError: No plan was found, or none is settled, when the search ended.
    """
    check_writable(json=json_to, report=report_to)
    catalog = catalog_with(hardware)
    line = Line(model, on, method, seq_len, global_batch, framework, tokens)
    given, assumed = line.given(specs or [], catalog)
    run = runner(scheduler, fall_back=fall_back, note=_note)
    own = None if calibration is None else read_calibration(calibration, catalog)
    question = Compare(
        given,
        run,
        catalog,
        own,
        assignments or (),
        deadline,
        budget,
        time_limit,
        memory_limit,
        effort,
        tolerance,
        resume,
    )
    with candidate_progress() as told:
        answer = question.answer(told)
    text = answer.model_dump_json(by_alias=True, indent=2)
    document = comparison_document(answer)
    deliver(with_assumed(report(document), assumed), text, json_to)
    command = again(context, "compare", SHOWN)
    write_report(report_to, lambda: document, command)
    refuse_lost(run)
    _require_plan(answer)


def _note(text: str) -> None:
    typer.echo(f"note: {text}", err=True)


def _require_plan(answer: Comparison) -> None:
    """Leave with the exit code of a comparison without a plan."""
    if answer.best:
        return
    if any(one.status == "unknown" or not one.settled for one in answer.candidates):
        limits = "--effort, or a longer --time-limit"
        more = limits if answer.effort.time_limit_s is not None else "--effort"
        raise TimeLimitError(f"{answer.why_best}; give more {more}")
    raise InfeasibleError("proven: the job fits on no candidate")
