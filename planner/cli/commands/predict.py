"""`planner predict`: price one given layout, no search over it."""

from collections.abc import Sequence
from typing import Annotated, Literal

import typer
from pydantic import BaseModel, ConfigDict, Field
from rich.console import RenderableType

from planner.cli.guard import guarded
from planner.cli.jobs import Job, load, workload_for
from planner.cli.options import (
    Assignments,
    Calibration,
    Hardware,
    JsonTo,
    Spec,
    lay_over,
)
from planner.cli.output import check_writable, deliver
from planner.cli.phases import Phase, phases_of, run_of_plans
from planner.cli.pictures import (
    Plot,
    ReportTo,
    TraceTo,
    show_steps,
    write_report,
)
from planner.cli.verdicts import Failing, fail_on_verdict
from planner.economics import with_run
from planner.job.resolve import about
from planner.planning.sanity import doubts
from planner.prediction.predict import predict as price
from planner.report import heading, phases_report, prediction_report
from planner.specs.answer.estimate import Estimate
from planner.specs.answer.result import RankedPlan
from planner.specs.answer.run import Run
from planner.specs.layouts.layout import Layout, PartialLayout
from planner.specs.reading.read import read_layout
from planner.verify.writable import writer_breaches


class Prediction(BaseModel):
    """One priced layout, schema ``planner/prediction@1``."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_name: Literal["planner/prediction@1"] = Field(
        default="planner/prediction@1", alias="schema"
    )
    layout: Layout
    estimate: Estimate
    warnings: tuple[str, ...] = ()
    run: Run | None = None
    """The whole run, of all phases together; none where no tokens are known."""
    phases: tuple["PhasePrediction", ...] = ()
    """Priced layout of each phase, the first as above; empty for a run of one phase."""


class PhasePrediction(BaseModel):
    """The priced layout of one phase."""

    model_config = ConfigDict(frozen=True)

    name: str
    layout: Layout
    estimate: Estimate


LayoutText = Annotated[
    str | None,
    typer.Option(
        "--layout",
        metavar="TP=8,PP=16,...",
        help="The layout, in place of the spec's layout block.",
        show_default=False,
    ),
]


@guarded
def predict(
    spec: Spec,
    *,
    layout: LayoutText = None,
    assignments: Assignments = None,
    json_to: JsonTo = None,
    report_to: ReportTo = None,
    trace_to: TraceTo = None,
    plot: Plot = False,
    fail_on: Failing = None,
    hardware: Hardware = None,
    calibration: Calibration = None,
) -> None:
    """Print time and memory of one layout; what it leaves open is filled in.

    Args:
        spec: The job. [-]
        layout: Layout in its short form. [text]
        assignments: Fields to replace. [text]
        json_to: File for JSON, or `-` for stdout. [-]
        report_to: File for the page. [path]
        trace_to: File for the trace of a step. [path]
        plot: True to print charts. [-]
        fail_on: Verdict that makes the exit code 3. [-]
        hardware: Folder of hardware laid over ours. [-]
        calibration: File of what the user measured. [-]

    Raises:
        BadInputError: No layout is given, or the layout is not legal.
        Exit: With 3, for a verdict of `--fail-on`.
    """
    check_writable(json=json_to, report=report_to, trace=trace_to)
    lay_over(hardware)
    job = load(spec, assignments, calibration)
    phases = phases_of(job)
    own = None if layout is None else read_layout(layout)
    priced = [_price(phase.job, own or phase.job.spec.layout) for phase in phases]
    run = run_of_plans(phases, priced)
    told = [
        with_run(p, run_of_plans([a], [p])) for a, p in zip(phases, priced, strict=True)
    ]
    deliver(_report(phases, told, run), _json(phases, told, run), json_to)
    write_report(report_to, lambda: _page(phases, told, run))
    show_steps(phases, told, trace_to, plot=plot and json_to != "-")
    for plan in told:
        fail_on_verdict(plan.estimate.memory.verdict, fail_on)


def _price(job: Job, given: PartialLayout) -> RankedPlan:
    """The layout, completed and priced under the job's one framework."""
    workload = workload_for(job, given)
    with about(job.file):
        return price(workload, given)


def _page(
    phases: Sequence[Phase], priced: Sequence[RankedPlan], run: Run | None
) -> object:
    """The page of one layout, or of one layout for each phase."""
    from planner.report.pages import phased_page, prediction_page  # noqa: PLC0415

    parts = []
    for phase, plan in zip(phases, priced, strict=True):
        workload, said = phase.job.workload_of(plan), _warnings(phase, plan)
        page = prediction_page(plan, workload, heading(workload), said)
        parts.append((phase.name, page))
    return phased_page(parts, run)


def _warnings(phase: Phase, priced: RankedPlan) -> tuple[str, ...]:
    """Warnings about settings, estimate and missing launch files of a phase. [text]."""
    job = phase.job
    workload = job.workload_of(priced)
    unwritten = writer_breaches(workload, priced.layout)
    said = (f"no launch files for this layout: {sentence}" for sentence in unwritten)
    return (*job.warnings, *doubts(workload, priced.estimate), *said)


def _report(
    phases: Sequence[Phase], priced: Sequence[RankedPlan], run: Run | None
) -> RenderableType:
    """One report, or one report for each phase with the whole run."""
    several = len(phases) > 1
    parts = [
        (
            phase.name,
            prediction_report(
                plan,
                heading(phase.job.workload_of(plan)),
                _warnings(phase, plan),
                None if several else run,
            ),
        )
        for phase, plan in zip(phases, priced, strict=True)
    ]
    return phases_report(parts, run) if several else parts[0][1]


def _json(
    phases: Sequence[Phase], priced: Sequence[RankedPlan], run: Run | None
) -> str:
    first = priced[0]
    parts = tuple(
        PhasePrediction(name=phase.name, layout=plan.layout, estimate=plan.estimate)
        for phase, plan in zip(phases, priced, strict=True)
        if phase.name
    )
    answer = Prediction(
        layout=first.layout,
        estimate=first.estimate,
        warnings=_warnings(phases[0], first),
        run=run,
        phases=parts,
    )
    return answer.model_dump_json(by_alias=True, indent=2)
