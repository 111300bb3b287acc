"""`planner predict`: price one given layout, no search over it."""

from typing import Annotated, Literal

import typer
from pydantic import BaseModel, ConfigDict, Field

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
from planner.cli.output import deliver
from planner.cli.pictures import (
    Plot,
    ReportTo,
    TraceTo,
    check_writable,
    show_step,
    write_report,
)
from planner.cli.verdicts import Failing, fail_on_verdict
from planner.cost.workload import Workload
from planner.predict import predict as price
from planner.report import heading, prediction_report
from planner.resolve import about
from planner.sanity import doubts
from planner.specs.estimate import Estimate
from planner.specs.layout import Layout, PartialLayout
from planner.specs.read import read_layout
from planner.specs.result import RankedPlan


class Prediction(BaseModel):
    """One priced layout, schema ``planner/prediction@1``."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_name: Literal["planner/prediction@1"] = Field(
        default="planner/prediction@1", alias="schema"
    )
    layout: Layout
    estimate: Estimate
    warnings: tuple[str, ...] = ()


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
        json_to: Where JSON goes. [-]
        report_to: Where the page goes. [path]
        trace_to: Where the trace of a step goes. [path]
        plot: Whether charts are printed. [-]
        fail_on: Verdict that makes the exit code 3. [-]
        hardware: Folder of hardware laid over ours. [-]
        calibration: File of what the user measured. [-]

    Raises:
        BadInputError: No layout is given, or it is not legal.
        Exit: With 3, for a verdict of `--fail-on`.
    """
    check_writable(report=report_to, trace=trace_to)
    lay_over(hardware)
    job = load(spec, assignments, calibration)
    given = job.spec.layout if layout is None else read_layout(layout)
    priced = _price(job, given)
    workload = job.workload_of(priced)
    warnings = (*job.warnings, *doubts(workload, priced.estimate))
    report = prediction_report(priced, heading(workload), warnings)
    deliver(report, _json(priced, warnings), json_to)
    write_report(report_to, lambda: _page(priced, workload, warnings))
    show_step(workload, priced, trace_to, plot=plot and json_to != "-")
    fail_on_verdict(priced.estimate.memory.verdict, fail_on)


def _price(job: Job, given: PartialLayout) -> RankedPlan:
    """The layout, completed and priced under the job's one framework."""
    workload = workload_for(job, given)
    with about(job.file):
        return price(workload, given)


def _page(priced: RankedPlan, workload: Workload, warnings: tuple[str, ...]) -> object:
    from planner.report.pages import prediction_page  # noqa: PLC0415

    return prediction_page(priced, workload, heading(workload), warnings)


def _json(priced: RankedPlan, warnings: tuple[str, ...]) -> str:
    answer = Prediction(
        layout=priced.layout, estimate=priced.estimate, warnings=warnings
    )
    return answer.model_dump_json(by_alias=True, indent=2)
