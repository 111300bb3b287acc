"""`planner plan`: search, print the best plan with its proof."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from planner import __version__
from planner.cli.contradictions import refuse_contradiction
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
from planner.cli.output import check_new, check_writable, deliver
from planner.cli.phases import Phase, phases_of, with_runs
from planner.cli.pictures import (
    Plot,
    ReportTo,
    TraceTo,
    show_steps,
    write_report,
)
from planner.cli.progress import search_progress
from planner.cli.stopping import MEMORY, MemoryLimit, this_run
from planner.errors import InfeasibleError, TimeLimitError
from planner.job.resolve import about
from planner.planning.optimize import optimize
from planner.report import heading, infeasible_report, phases_report, result_report
from planner.report.charts.search import SearchState
from planner.search.stop import INTERRUPTED, OUT_OF_MEMORY, Stop
from planner.specs.answer.result import Plan, Result

if TYPE_CHECKING:
    from planner.report.pages import Page

Top = Annotated[
    int, typer.Option("--top", min=1, metavar="N", help="Plans to show, best first.")
]
TimeLimit = Annotated[
    float,
    typer.Option(
        "--time-limit",
        min=0,
        metavar="S",
        help="Seconds for everything, from the start of the command.",
    ),
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

FRONT_TIME = 30.0
"""Most time to search the fronts of a page. [s]"""


@guarded
def plan(
    spec: Spec,
    *,
    assignments: Assignments = None,
    top: Top = 4,
    time_limit: TimeLimit = 120.0,
    memory_limit: MemoryLimit = MEMORY,
    robust: Robust = "off",
    json_to: JsonTo = None,
    report_to: ReportTo = None,
    trace_to: TraceTo = None,
    plot: Plot = False,
    out: Out = None,
    hardware: Hardware = None,
    calibration: Calibration = None,
) -> None:
    """Search the layouts of a job and print the best, why it won and the proof.

    Args:
        spec: The job. [-]
        assignments: Fields to replace. [text]
        top: Plans to show. [1]
        time_limit: Longest time in all, from the start of the process. [s]
        memory_limit: Most memory of the process and its workers. [text]
        robust: `on` if a tied plan may stand before the fastest. [text]
        json_to: File for JSON, or `-` for stdout. [-]
        report_to: File for the page. [path]
        trace_to: File for the trace of a step. [path]
        plot: True to print charts. [-]
        out: Folder for plan.json and launch files; a later phase's plan is
            plan-NAME.json. [-]
        hardware: Folder of hardware laid over ours. [-]
        calibration: File of what the user measured. [-]

    Raises:
        BadInputError: The limits leave no legal layout.
        InfeasibleError: No layout fits the memory.
        TimeLimitError: No layout was found in time.
        UnsupportedPlanError: Launch files are asked for, and cannot say the plan.
    """
    stop = this_run().limited(time_limit, memory_limit)
    if out is not None:
        check_new(out)
    check_writable(json=json_to, report=report_to, trace=trace_to)
    lay_over(hardware)
    job = load(spec, assignments, calibration)
    phases = phases_of(job)
    for phase in phases:
        refuse_contradiction(phase.job)
        if out is not None:
            _require_written(phase.job)
    trails: list[list[SearchState]] = [[] for _ in phases]
    parts = stop.shared(len(phases))
    found = [
        _search(phase.job, top, part, robust=robust == "on", trail=trail)
        for phase, trail, part in zip(phases, trails, parts, strict=True)
    ]
    result = with_runs(phases, found)
    json_text = result.model_dump_json(by_alias=True, indent=2)
    deliver(_report(phases, result), json_text, json_to)
    write_report(report_to, lambda: _page(phases, result, trails))
    for one in found:
        _require_plan(one, stop, time_limit)
    best = [one.plans[0] for one in found]
    show_steps(phases, best, trace_to, plot=plot and json_to != "-")
    if out is not None:
        _write_plans(out, phases[0].job, result)


def _report(phases: Sequence[Phase], result: Result) -> RenderableType:
    """One report, or one report for each phase with the whole run."""
    if not result.phases:
        return _report_of(phases[0].job, result)
    pairs = zip(phases, result.phases, strict=True)
    parts = [(phase.name, _report_of(phase.job, its.result)) for phase, its in pairs]
    return phases_report(parts, result.run)


def _report_of(job: Job, result: Result) -> RenderableType:
    best = result.plans[0] if result.plans else None
    title = heading(job.workload_of(best))
    return (result_report if best else infeasible_report)(result, title)


def _require_written(job: Job) -> None:
    """Refuse a job whose launch files cannot be written."""
    from planner.launch import require_written  # noqa: PLC0415  # with --out alone

    require_written(job.workloads, job.file)


def _write_plans(out: Path, job: Job, result: Result) -> None:
    """Write the plan, or the first phase's, with launch files; other plans by name."""
    from planner.launch import emit_own, plan_file, write_folder  # noqa: PLC0415
    from planner.launch.emit import plan_text  # noqa: PLC0415

    workload = job.workload_of(result.plans[0])
    files = emit_own(plan_file(_best(result), workload, job.file, job.calibration))
    later = tuple(
        plan_text(f"plan-{phase.name}.json", _best(phase.result))
        for phase in result.phases[1:]
    )
    write_folder(out, (*files, *later), force=False)


def _search(
    job: Job, top: int, stop: Stop, *, robust: bool, trail: list[SearchState]
) -> Result:
    """The answer of the search, with the spec and its warnings put in."""
    with about(job.file), search_progress(trail) as progress:
        found = optimize(
            job.workloads,
            top=top,
            robust=robust,
            progress=progress,
            stop=stop,
        )
    best = found.plans[0] if found.plans else None
    warnings = (*job.warnings, *found.warnings)
    return found.model_copy(update={"spec": job.resolved(best), "warnings": warnings})


def _page(
    phases: Sequence[Phase],
    result: Result,
    trails: Sequence[Sequence[SearchState]],
) -> object:
    """The page of the answer, or one page for the answers of all phases."""
    from planner.report.pages import phased_page  # noqa: PLC0415

    answers = [part.result for part in result.phases] or [result]
    parts = [
        (phase.name, _page_of(phase.job, answer, trail))
        for phase, answer, trail in zip(phases, answers, trails, strict=True)
    ]
    return phased_page(parts, result.run)


def _page_of(job: Job, result: Result, trail: Sequence[SearchState]) -> "Page":
    """The page of one answer, after a search of the fronts."""
    from planner.explanation.fronts import fronts  # noqa: PLC0415
    from planner.report.pages import Extras, plan_page  # noqa: PLC0415

    best = result.plans[0] if result.plans else None
    workload = job.workload_of(best)
    extras = Extras(trail)
    if best is not None:
        seconds = min(FRONT_TIME, this_run().spare)
        extras = Extras(trail, *fronts(job, result.plans, seconds))
    return plan_page(result, workload, heading(workload), extras)


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
        f"out; give more {option} or limit the space under search:"
    )


def _best(result: Result) -> Plan:
    """The best plan on its own, as an emitter takes it."""
    best = result.plans[0]
    versions = {name: version(name) for name in ("ortools", "numpy")}
    return Plan(
        spec=result.spec,
        layout=best.layout,
        estimate=best.estimate,
        versions={"planner": __version__, **versions},
    )
