"""`planner plan`: search, print the best plan with its proof."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from planner.cli.guard import guarded
from planner.cli.options import JsonTo, Robust, TimeLimit
from planner.cli.output import check_new, check_writable, deliver
from planner.cli.pictures import (
    Plot,
    ReportTo,
    TraceTo,
    show_steps,
    write_report,
)
from planner.cli.progress import search_progress
from planner.cli.screens import (
    LIMITS,
    OF_A_SEARCH,
    SHOWN,
    Detail,
    Quiet,
    Verbose,
    again,
    detail,
)
from planner.cli.sources import Source, sourced, with_assumed
from planner.cli.spread import FallBack, Scheduler
from planner.cli.stopping import MemoryLimit, this_run
from planner.cli.verdicts import Failing, fail_over, failing_risk
from planner.cost.workload import Workload
from planner.document.terminal import report
from planner.errors import InfeasibleError, TimeLimitError, UnsupportedPlanError
from planner.job.loading import Job
from planner.planning.comparison.parts import on_cluster
from planner.questions.inputs.limits import MEMORY
from planner.questions.plan import Plan, Planned
from planner.report.screen import quiet_lines, screen
from planner.search.stop import INTERRUPTED, OUT_OF_MEMORY, Stop
from planner.specs.answer.result import Result

if TYPE_CHECKING:
    from planner.launch.brief import LaunchFile

Top = Annotated[
    int, typer.Option("--top", min=1, metavar="N", help="Plans to show, best first.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="New folder for plan.json and the launch files of its framework.",
        show_default=False,
    ),
]
Ran = Annotated[
    bool,
    typer.Option(
        "--ran",
        help="The layout of the spec ran: its memory fits, and that of layouts like it "
        "is the better known. The same as --set layout.ran=true.",
    ),
]

TIME_LIMIT = 120.0
"""Most time of a search that gives no other limit. [s]"""


@guarded
@sourced
def plan(
    source: Source,
    *,
    context: typer.Context,
    top: Top = 4,
    time_limit: TimeLimit = TIME_LIMIT,
    memory_limit: MemoryLimit = MEMORY,
    robust: Robust = "on",
    scheduler: Scheduler = None,
    fall_back: FallBack = False,
    json_to: JsonTo = None,
    report_to: ReportTo = None,
    trace_to: TraceTo = None,
    plot: Plot = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    out: Out = None,
    fail_on: Failing = None,
    ran: Ran = False,
) -> None:
    """Search the layouts of a job and print the best, why it won and the proof.

    Args:
        source: The job. [-]
        context: Context of the command. [-]
        top: Plans to show. [1]
        time_limit: Longest time in all, from the start of the process. [s]
        memory_limit: Most memory of the process and its workers. [text]
        robust: `on` to limit the risk of running out of memory. [text]
        scheduler: Address of the scheduler of a Dask cluster. [text]
        fall_back: Plan here where the scheduler cannot be reached. [-]
        json_to: File for JSON, or `-` for stdout. [-]
        report_to: File for the page. [path]
        trace_to: File for the trace of a step. [path]
        plot: True to print charts. [-]
        verbose: True to print everything. [-]
        quiet: True to print the layout alone. [-]
        out: Folder for plan.json and launch files; a later phase's plan is
            plan-NAME.json. [-]
        fail_on: Risk that makes the exit code 3, without launch files. [text]
        ran: True where the layout of the spec ran. [-]

    Raises:
        BadInputError: The limits leave no legal layout.
        InfeasibleError: No layout fits the memory.
        TimeLimitError: No layout was found in time.
        UnsupportedPlanError: Launch files are asked for, and cannot say the plan.
        Exit: With 3, for a risk over that of `--fail-on`.
    """
    shown, risk = detail(verbose=verbose, quiet=quiet), failing_risk(fail_on)
    stop = this_run().limited(time_limit, memory_limit)
    if out is not None:
        check_new(out)
    check_writable(json=json_to, report=report_to, trace=trace_to, save=source.save)
    asked = (source.assigning("layout.ran=true") if ran else source).read()
    question = Plan(asked.job(), top, robust == "on", written=out is not None)
    there = on_cluster(scheduler, fall_back=fall_back, note=_note)
    with search_progress() as told, there:
        found = question.answer(stop, told)
    result, phases = found.result, found.phases
    json_text = result.model_dump_json(by_alias=True, indent=2)
    files, refused = _files(found) if out is not None else ((), None)
    command = _next(context, phases[0].job, found, out if files else None, refused)
    deliver(_shown(shown, found, command, asked.assumed), json_text, json_to)
    write_report(report_to, lambda: found.page(this_run().spare), command)
    for one in found.results:
        _require_plan(one, stop, time_limit)
    best = [one.plans[0] for one in found.results]
    show_steps(phases, best, trace_to, plot=plot and json_to != "-")
    if refused is not None:
        raise refused
    fail_over(risk, [one.estimate.memory for one in best])
    if out is not None:
        _write(out, files)


def _note(text: str) -> None:
    typer.echo(f"note: {text}", err=True)


def _shown(
    shown: Detail, found: Planned, command: str, assumed: tuple[str, ...]
) -> RenderableType:
    """The answer as it is printed: the layouts alone, one screen or all of it."""
    if shown == Detail.QUIET:
        return quiet_lines([best for one in found.results for best in one.plans[:1]])
    if shown == Detail.VERBOSE:
        return with_assumed(report(found.document()), assumed)
    return screen(found.answers, found.result.run, command, assumed)


def _next(
    context: typer.Context,
    job: Job,
    found: Planned,
    out: Path | None,
    refused: UnsupportedPlanError | None,
) -> str:
    """The command that starts the run, writes its files, or says what would fit."""
    result = found.result
    explain = again(context, "explain", SHOWN | OF_A_SEARCH | LIMITS)
    if any(answer.status == "unknown" for answer in found.results):
        longer = max(10 * context.params["time_limit"], TIME_LIMIT)
        limit = ("--time-limit", f"{longer:g}")
        return again(context, "plan", SHOWN | {"time_limit"}, *limit)
    if not all(answer.plans for answer in found.results):
        return f"{explain}  # says what would help"
    if out is not None:
        where = shlex.quote(str(out))
        return f"cd {where} && ./launch.sh  # README.md there says what comes before"
    workload = job.workload_of(result.plans[0])
    if refused or not _is_written(workload):
        return f"{explain}  # says why not another plan"
    quick = result.status == "optimal" and result.search.seconds < TIME_LIMIT / 2
    without = SHOWN | LIMITS if quick else SHOWN
    line = again(context, "plan", without, "--out", "run")
    return f"{line}  # writes launch files"


def _is_written(workload: Workload) -> bool:
    """Tell if the plans of a job have launch files, without writing them."""
    return bool(workload.framework.writers) and not workload.training.batch_ramp


def _files(
    found: Planned,
) -> tuple[tuple["LaunchFile", ...], UnsupportedPlanError | None]:
    """Launch files of the plan, or the reason why no target can express it.

    Of several phases the first has launch files, the others a plan by name. Without a
    plan there is neither.
    """
    if not all(one.plans for one in found.results):
        return (), None
    try:
        return found.launch_files(), None
    except UnsupportedPlanError as error:
        return (), error


def _write(out: Path, files: Sequence["LaunchFile"]) -> None:
    from planner.launch import write_folder  # noqa: PLC0415

    write_folder(out, files, force=False)


def _require_plan(result: Result, stop: Stop, time_limit: float) -> None:
    """Leave with the exit code of a search that found nothing."""
    if result.status == "infeasible":
        raise InfeasibleError("proven: no legal layout fits the memory of the GPUs")
    if result.plans:
        return
    ends = {
        INTERRUPTED: "no plan before the signal",
        OUT_OF_MEMORY: f"no plan within {stop.memory / 2**30:.2g} GiB",
    }
    option = "--memory-limit" if stop.why == OUT_OF_MEMORY else "--time-limit"
    raise TimeLimitError(
        f"{ends.get(stop.why, f'no plan within {time_limit:g} s')}, and none ruled "
        f"out; give more {option} or limit the space, as --set search.tp=8"
    )
