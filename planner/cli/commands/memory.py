"""`planner memory`: memory alone, of training and of inference."""

from pathlib import Path
from typing import Annotated

import typer

from planner.capacity.capacity import inference_memory, training_memory
from planner.cli.guard import guarded
from planner.cli.jobs import from_spec, workload_of_one
from planner.cli.options import (
    Assignments,
    Calibration,
    Hardware,
    JsonTo,
    Spec,
    lay_over,
)
from planner.cli.output import deliver
from planner.cli.verdicts import Failing, fail_on_verdict
from planner.errors import BadInputError
from planner.job.resolve import about, look_up
from planner.report import heading
from planner.report.memory import inference_memory_report, training_memory_report
from planner.specs.answer.estimate import Verdict
from planner.specs.inference import InferenceSpec
from planner.specs.job import JobSpec
from planner.specs.reading.read import locate, read_layout, read_spec

LayoutText = Annotated[
    str | None,
    typer.Option(
        "--layout",
        metavar="TP=8,PP=16,...",
        help="The layout, in place of the spec's; without any, the most frugal one.",
        show_default=False,
    ),
]


@guarded
def memory(
    spec: Spec,
    *,
    layout: LayoutText = None,
    assignments: Assignments = None,
    json_to: JsonTo = None,
    fail_on: Failing = None,
    hardware: Hardware = None,
    calibration: Calibration = None,
) -> None:
    """Print what a job holds in memory, and the most that fits.

    Args:
        spec: The job, of training or of inference. [-]
        layout: Layout in its short form. [text]
        assignments: Fields to replace. [text]
        json_to: File for JSON, or `-` for stdout. [-]
        fail_on: Verdict that makes the exit code 3. [-]
        hardware: Folder of hardware laid over ours. [-]
        calibration: File of what the user measured. [-]

    Raises:
        BadInputError: The layout is not legal, or a name is not known.
        Exit: With 3, for a verdict of `--fail-on`.
    """
    lay_over(hardware)
    job = read_spec(spec, assignments or ())
    if job.inference is None:
        verdict = _train(job, spec, layout, json_to, calibration)
    else:
        verdict = _serve(job, job.inference, spec, layout, json_to)
    fail_on_verdict(verdict, fail_on)


def _train(
    spec: JobSpec,
    path: Path,
    layout: str | None,
    json_to: str | None,
    calibration: Path | None,
) -> Verdict:
    """Answer for a training job."""
    job = from_spec(spec, path, calibration)
    given = spec.layout if layout is None else read_layout(layout)
    workload = workload_of_one(job)
    with about(job.file):
        answer = training_memory(workload, given, job.warnings)
    report = training_memory_report(answer, heading(workload))
    deliver(report, answer.model_dump_json(by_alias=True, indent=2), json_to)
    return answer.memory.verdict


def _serve(
    spec: JobSpec,
    inference: InferenceSpec,
    path: Path,
    layout: str | None,
    json_to: str | None,
) -> Verdict:
    """Answer for an inference job."""
    file = str(path)
    if layout is not None or spec.layout.given():
        raise BadInputError(
            "an inference job has no layout",
            file="--layout" if layout is not None else file,
            field=None if layout is not None else "layout",
            allowed="inference.tp",
        )
    model, cluster = look_up(spec, file=file, base=locate(path).parent)
    with about(file):
        answer = inference_memory(model, cluster, inference)
    report = inference_memory_report(answer, model.name, cluster.gpu.name)
    deliver(report, answer.model_dump_json(by_alias=True, indent=2), json_to)
    return answer.memory.verdict
