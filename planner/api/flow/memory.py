"""The flow of `planner memory`: from a job to what it holds, and the most that fits."""

from dataclasses import dataclass

from planner.capacity.capacity import inference_memory, training_memory
from planner.errors import BadInputError
from planner.job.loading import Job, workload_of_one
from planner.job.resolve import about, look_up
from planner.report.heading import Heading, heading
from planner.specs.answer.memory import InferenceMemory, TrainingMemory
from planner.specs.inference import InferenceSpec
from planner.specs.layouts.layout import PartialLayout


@dataclass(frozen=True)
class Training:
    """Memory of a training job.

    Attributes:
        answer: The answer as JSON has it. [-]
        title: Heading of the job. [-]
    """

    answer: TrainingMemory
    title: Heading


@dataclass(frozen=True)
class Serving:
    """Memory of an inference job.

    Attributes:
        answer: The answer as JSON has it. [-]
        model: Name of the model. [text]
        gpu: Name of the GPU. [text]
    """

    answer: InferenceMemory
    model: str
    gpu: str


def held(job: Job, own: PartialLayout | None) -> Training | Serving:
    """Memory of a job, of training or of inference.

    Args:
        job: The job as read. [-]
        own: Layout in place of the job's, or None. [-]

    Returns:
        The answer. [-]

    Raises:
        BadInputError: The layout is not legal, or a name is not known.
    """
    if job.spec.inference is not None:
        return _serving(job, job.spec.inference, own)
    return _training(job, own)


def _training(job: Job, own: PartialLayout | None) -> Training:
    given = job.spec.layout if own is None else own
    workload = workload_of_one(job)
    with about(job.file):
        answer = training_memory(workload, given, job.warnings)
    return Training(answer, heading(workload))


def _serving(job: Job, inference: InferenceSpec, own: PartialLayout | None) -> Serving:
    spec, file = job.spec, job.file
    if own is not None or spec.layout.given():
        raise BadInputError(
            "an inference job has no layout",
            file="--layout" if own is not None else file,
            field=None if own is not None else "layout",
            allowed="inference.tp",
        )
    model, cluster = look_up(spec, file=file, base=job.base)
    with about(file):
        answer = inference_memory(model, cluster, inference)
    return Serving(answer, model.name, cluster.gpu.name)
