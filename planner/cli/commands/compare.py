"""`planner compare`: the same job on several clusters, or a purchase file."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer

from hardware.reading.units import parse_quantity
from planner.cli.guard import guarded
from planner.cli.options import Assignments, Calibration, Hardware, JsonTo, lay_over
from planner.cli.output import check_writable, deliver
from planner.cli.pictures import ReportTo, write_report
from planner.cli.progress import candidate_progress
from planner.cli.stopping import MEMORY, MemoryLimit, memory_bytes
from planner.comparison.answer import WORK, Comparison, Effort
from planner.comparison.flow import Runner
from planner.comparison.flow import compare as compared
from planner.comparison.read import Asking, read_sweep
from planner.comparison.store import Store
from planner.comparison.sweep import UnreachableError, on_cores, on_dask
from planner.errors import BadInputError, InfeasibleError, TimeLimitError
from planner.job.calibration_file import read_calibration
from planner.report.comparison import comparison_report
from planner.search.stop import Stop, under

Specs = Annotated[
    list[Path],
    typer.Argument(
        metavar="SPEC...",
        help="Job files, or one purchase file; or names of those that come along.",
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
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Plan on the workers of a Dask cluster, as tcp://host:8786; needs "
        "planner[distributed].",
        show_default=False,
    ),
]
FallBack = Annotated[
    bool,
    typer.Option(
        "--fall-back",
        help="Plan on this machine where the scheduler cannot be reached.",
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="DIR",
        help="Keep finished candidates in this folder, and skip those that are there.",
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
    specs: Specs,
    *,
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
    asking = Asking(
        effort=Effort(work=effort * WORK, time_limit_s=time_limit, tolerance=tolerance),
        until=inf if time_limit is None else time.time() + time_limit,
        assignments=assignments or (),
        budget_usd=_quantity("--budget", budget, "USD"),
        deadline_s=_quantity("--deadline", deadline, "s"),
        calibration=None if calibration is None else read_calibration(calibration),
        hardware=None if hardware is None else hardware.resolve(),
    )
    lay_over(hardware)
    run = _runner(scheduler, fall_back=fall_back)
    sweep, store = read_sweep(specs, asking), Store(resume)
    memory = Stop(memory=memory_bytes(memory_limit))
    with candidate_progress() as told, under(memory):
        answer = compared(sweep, run, store, told=told)
    text = answer.model_dump_json(by_alias=True, indent=2)
    deliver(comparison_report(answer), text, json_to)
    write_report(report_to, lambda: _page(answer))
    _require_plan(answer)


def _page(answer: Comparison) -> object:
    from planner.report.pages import comparison_page  # noqa: PLC0415

    return comparison_page(answer)


def _quantity(option: str, text: str | None, unit: str) -> float | None:
    """A quantity above zero from the command line."""
    if text is None:
        return None
    try:
        value = parse_quantity(text, unit)
    except ValueError as error:
        raise BadInputError(str(error), field=option) from error
    if value <= 0:
        raise BadInputError("has to be more than 0", field=option, value=text)
    return value


def _runner(scheduler: str | None, *, fall_back: bool) -> Runner:
    """Runner on the cores of this machine, or on the workers of a scheduler."""
    if scheduler is None:
        if fall_back:
            raise BadInputError(
                "goes with --scheduler", field="--fall-back", allowed="both, or neither"
            )
        return on_cores
    if fall_back:
        return partial(_or_here, scheduler)
    return partial(_there, scheduler)


def _there(
    address: str, work: Callable[[Any], Any], tasks: Sequence[Any]
) -> Iterator[tuple[int, Any]]:
    return on_dask(work, tasks, address)


def _or_here(
    address: str, work: Callable[[Any], Any], tasks: Sequence[Any]
) -> Iterator[tuple[int, Any]]:
    """Results of the cluster; tasks that it did not hand back run on this machine."""
    done: set[int] = set()
    try:
        for at, result in on_dask(work, tasks, address):
            done.add(at)
            yield at, result
    except UnreachableError as error:
        typer.echo(f"note: {error.message}; planning on this machine", err=True)
        left = [at for at in range(len(tasks)) if at not in done]
        for index, result in on_cores(work, [tasks[at] for at in left]):
            yield left[index], result


def _require_plan(answer: Comparison) -> None:
    """Leave with the exit code of a comparison without a plan."""
    if answer.best:
        return
    if any(one.status == "unknown" or not one.settled for one in answer.candidates):
        limits = "--effort, or a longer --time-limit"
        more = limits if answer.effort.time_limit_s is not None else "--effort"
        raise TimeLimitError(f"{answer.why_best}; give more {more}")
    raise InfeasibleError("proven: the job fits on no candidate")
