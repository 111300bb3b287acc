"""The flow of `planner memory`: from a job to what it holds, and the most that fits."""

from dataclasses import dataclass

from planner.capacity.capacity import inference_memory, training_memory
from planner.errors import BadInputError
from planner.job.loading import Job, workload_of_one
from planner.job.resolve import about, look_up
from planner.report.heading import Heading, heading
from planner.specs.answer.memory import InferenceMemory, TrainingMemory
from planner.specs.inference import InferenceSpec


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


def held(job: Job) -> Training | Serving:
    """Memory of a job, of training or of inference.

    Args:
        job: The job as read. [-]

    Returns:
        The answer. [-]

    Raises:
        BadInputError: The layout is not legal, or a name is not known.
    """
    if job.spec.inference is not None:
        return _serving(job, job.spec.inference)
    return _training(job)


def _training(job: Job) -> Training:
    workload = workload_of_one(job)
    with about(job.file):
        answer = training_memory(workload, job.spec.layout, job.warnings)
    return Training(answer, heading(workload))


def _serving(job: Job, inference: InferenceSpec) -> Serving:
    spec, file = job.spec, job.file
    if spec.layout.given():
        raise BadInputError(
            "an inference job has no layout",
            file=file,
            field="layout",
            allowed="inference.tp",
        )
    model, cluster = look_up(spec, file=file, base=job.base, catalog=job.catalog)
    with about(file):
        answer = inference_memory(model, cluster, inference)
    return Serving(answer, model.name, cluster.gpu.name)
