"""`planner plan`: search, print the best plan with its proof."""

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from planner import __version__
from planner.cli.contradictions import case_of, refuse_contradiction
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
from planner.cli.output import check_new, deliver, write_whole
from planner.cli.pictures import (
    Plot,
    ReportTo,
    TraceTo,
    check_writable,
    show_step,
    write_report,
)
from planner.cli.progress import search_progress
from planner.errors import InfeasibleError, TimeLimitError
from planner.optimize import optimize
from planner.report import heading, infeasible_report, result_report
from planner.report.charts.search import Moment
from planner.resolve import about
from planner.specs.result import Plan, Result

Top = Annotated[
    int, typer.Option("--top", min=1, metavar="N", help="Plans to show, best first.")
]
TimeLimit = Annotated[
    float,
    typer.Option("--time-limit", min=0, metavar="S", help="Seconds to search."),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="New folder to write plan.json into.",
        show_default=False,
    ),
]

FRONT_TIME = 30.0
"""Time to search the fronts of a page. [s]"""


@guarded
def plan(
    spec: Spec,
    *,
    assignments: Assignments = None,
    top: Top = 4,
    time_limit: TimeLimit = 120.0,
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
        time_limit: How long to search. [s]
        robust: Whether a tied plan may stand before the fastest. [text]
        json_to: Where JSON goes. [-]
        report_to: Where the page goes. [path]
        trace_to: Where the trace of a step goes. [path]
        plot: Whether charts are printed. [-]
        out: Where plan.json goes. [-]
        hardware: Folder of hardware laid over ours. [-]
        calibration: File of what the user measured. [-]

    Raises:
        BadInputError: The limits leave no legal layout.
        InfeasibleError: No layout fits the memory.
        TimeLimitError: No layout was found in time.
    """
    if out is not None:
        check_new(out)
    check_writable(report=report_to, trace=trace_to)
    lay_over(hardware)
    job = load(spec, assignments, calibration)
    refuse_contradiction(job, calibration)
    trail: list[Moment] = []
    result = _search(job, top, time_limit, robust=robust == "on", trail=trail)
    best = result.plans[0] if result.plans else None
    workload = job.workload_of(best)
    report = result_report if best else infeasible_report
    json_text = result.model_dump_json(by_alias=True, indent=2)
    deliver(report(result, heading(workload)), json_text, json_to)
    write_report(report_to, lambda: _page(job, calibration, result, trail))
    _require_plan(result, time_limit)
    show_step(workload, result.plans[0], trace_to, plot=plot and json_to != "-")
    if out is not None:
        write_whole(out / "plan.json", _plan_json(result))


def _search(
    job: Job, top: int, time_limit: float, *, robust: bool, trail: list[Moment]
) -> Result:
    """The answer of the search, with the spec and its warnings put in."""
    with about(job.file), search_progress(trail) as progress:
        found = optimize(
            job.workloads,
            top=top,
            time_limit=time_limit,
            robust=robust,
            progress=progress,
        )
    best = found.plans[0] if found.plans else None
    warnings = (*job.warnings, *found.warnings)
    return found.model_copy(update={"spec": job.resolved(best), "warnings": warnings})


def _page(
    job: Job, calibration: Path | None, result: Result, trail: list[Moment]
) -> object:
    """The page of the answer; its fronts are searched for it."""
    from planner.explain.fronts import fronts  # noqa: PLC0415
    from planner.report.pages import Extras, plan_page  # noqa: PLC0415

    best = result.plans[0] if result.plans else None
    workload = job.workload_of(best)
    extras = Extras(trail=trail)
    if best is not None:
        case = case_of(job, calibration)
        found = fronts(case, result.plans, FRONT_TIME)
        extras = Extras(trail, *found)
    return plan_page(result, workload, heading(workload), extras)


def _require_plan(result: Result, time_limit: float) -> None:
    """Leave with the exit code of a search that found nothing."""
    if result.status == "infeasible":
        raise InfeasibleError("proven: no legal layout fits the memory of the GPUs")
    if not result.plans:
        raise TimeLimitError(
            f"no plan within {time_limit:g} s, and none ruled out; "
            "give a longer --time-limit or limit the space under search:"
        )


def _plan_json(result: Result) -> str:
    """The best plan on its own, as an emitter reads it."""
    best = result.plans[0]
    versions = {name: version(name) for name in ("ortools", "numpy")}
    return Plan(
        spec=result.spec,
        layout=best.layout,
        estimate=best.estimate,
        versions={"planner": __version__, **versions},
    ).model_dump_json(by_alias=True, indent=2)
