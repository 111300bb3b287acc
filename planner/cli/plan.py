"""`planner plan`: search, print the best plan with its proof."""

import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

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
from planner.cli.output import check_new, deliver
from planner.cli.progress import search_progress
from planner.errors import InfeasibleError, TimeLimitError
from planner.launch import emit_own, read_plan, write_folder
from planner.launch.emit import PLAN
from planner.optimize import optimize
from planner.report import heading, infeasible_report, result_report
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
        help="New folder for plan.json and the launch files of its framework.",
        show_default=False,
    ),
]


@guarded
def plan(
    spec: Spec,
    *,
    assignments: Assignments = None,
    top: Top = 4,
    time_limit: TimeLimit = 120.0,
    robust: Robust = "off",
    json_to: JsonTo = None,
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
        out: Where plan.json and launch files go. [-]
        hardware: Folder of hardware laid over ours. [-]
        calibration: File of what the user measured. [-]

    Raises:
        BadInputError: The limits leave no legal layout.
        InfeasibleError: No layout fits the memory.
        TimeLimitError: No layout was found in time.
    """
    if out is not None:
        check_new(out)
    lay_over(hardware)
    job = load(spec, assignments, calibration)
    refuse_contradiction(job, calibration)
    result = _search(job, top, time_limit, robust=robust == "on")
    best = result.plans[0] if result.plans else None
    title = heading(job.workload_of(best))
    report = result_report if best else infeasible_report
    json_text = result.model_dump_json(by_alias=True, indent=2)
    deliver(report(result, title), json_text, json_to)
    _require_plan(result, time_limit)
    if out is not None:
        _write_launch(out, result)


def _search(job: Job, top: int, time_limit: float, *, robust: bool) -> Result:
    """The answer of the search, with the spec and its warnings put in."""
    with about(job.file), search_progress() as progress:
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


def _require_plan(result: Result, time_limit: float) -> None:
    """Leave with the exit code of a search that found nothing."""
    if result.status == "infeasible":
        raise InfeasibleError("proven: no legal layout fits the memory of the GPUs")
    if not result.plans:
        raise TimeLimitError(
            f"no plan within {time_limit:g} s, and none ruled out; "
            "give a longer --time-limit or limit the space under search:"
        )


def _write_launch(out: Path, result: Result) -> None:
    """The plan with what starts it; alone where its framework lacks words for it."""
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / PLAN
        path.write_text(_plan_json(result), encoding="utf-8")
        files, lacking = emit_own(read_plan(path))
    write_folder(out, files, force=False)
    for gap in lacking:
        print(f"no launch files: {gap.feature} ({gap.field})", file=sys.stderr)


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
