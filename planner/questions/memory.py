"""`planner.memory`: what a job holds in memory, and the most that fits."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import PrivateAttr

from planner.errors import BadInputError
from planner.job.loading import Job, workload_of_one
from planner.job.resolve import about, look_up
from planner.planning.capacity.capacity import inference_memory, training_memory
from planner.questions.inputs.given import (
    CalibrationLike,
    Changes,
    FilePath,
    JobLike,
    LayoutLike,
    catalog_given,
    job_given,
    within,
)
from planner.questions.inputs.progress import OnProgress
from planner.questions.outputs.answer import Answer, Rows
from planner.questions.question import Question
from planner.report.heading import Heading, heading
from planner.search.stop import Stop, under
from planner.specs.answer import memory as answers
from planner.specs.inference import InferenceSpec

if TYPE_CHECKING:
    from planner.document.blocks import Document


@dataclass(frozen=True)
class Memory(Question["Training | Serving"]):
    """`planner memory`: what a job holds in memory, and the most that fits.

    Attributes:
        job: The job as read, of training or of inference. [-]
    """

    job: Job

    def answer(
        self,
        stop: Stop,
        told: OnProgress | None = None,  # noqa: ARG002
    ) -> "Training | Serving":
        """Complete the layout, and add up what it holds.

        Raises:
            BadInputError: The layout is not legal, or a name is not known.
        """
        with under(stop):
            if self.job.spec.inference is not None:
                return _serving(self.job, self.job.spec.inference)
            return _training(self.job)


@dataclass(frozen=True)
class Training:
    """Memory of a training job.

    Attributes:
        answer: The answer as JSON has it. [-]
        title: Heading of the job. [-]
    """

    answer: answers.TrainingMemory
    title: Heading

    def page(self) -> "Document":
        """The page of the answer. [-]."""
        from planner.report.memory import training_document  # noqa: PLC0415

        return training_document(self.answer, self.title)


@dataclass(frozen=True)
class Serving:
    """Memory of an inference job.

    Attributes:
        answer: The answer as JSON has it. [-]
        model: Name of the model. [text]
        gpu: Name of the GPU. [text]
    """

    answer: answers.InferenceMemory
    model: str
    gpu: str

    def page(self) -> "Document":
        """The page of the answer. [-]."""
        from planner.report.memory import serving_document  # noqa: PLC0415

        return serving_document(self.answer, self.model, self.gpu)


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


class TrainingMemory(answers.TrainingMemory, Answer):
    """Memory of a training job by stage and category."""

    _flow: Training = PrivateAttr()

    def table(self) -> Rows:
        """List the stages.

        Returns:
            Memory of each stage by category. [GiB], shape (stages,)
        """
        rows = [s.model_dump(mode="json") for s in self.memory.stages]
        return [{k: v for k, v in row.items() if k != "moments"} for row in rows]

    def _page(self) -> "Document":
        return self._flow.page()


class InferenceMemory(answers.InferenceMemory, Answer):
    """Memory of a GPU that serves a model."""

    _flow: Serving = PrivateAttr()

    def table(self) -> Rows:
        """List the one stage.

        Returns:
            Memory by category. [GiB], shape (1,)
        """
        return [stage.model_dump(mode="json") for stage in self.memory.stages]

    def _page(self) -> "Document":
        return self._flow.page()


def memory(
    job: JobLike,
    *,
    layout: LayoutLike | None = None,
    set: Changes | None = None,  # noqa: A002  # as on the command line
    hardware: FilePath | None = None,
    calibration: CalibrationLike | None = None,
    time_limit: float = 60.0,
) -> TrainingMemory | InferenceMemory:
    """Say what a job holds in memory, and what is the most that fits.

    Args:
        job: A file or the name of a known job, its fields, or a job; of training or
            of inference. [-]
        layout: Layout in place of the job's; without any, the most frugal one. [-]
        set: Fields to replace, by dotted path. [-]
        hardware: Folder of hardware laid over ours. [path]
        calibration: What the user measured. [-]
        time_limit: Longest time to choose what the layout leaves open. [s]

    Returns:
        Memory by stage and category. [GiB]

    Raises:
        BadInputError: The layout is not legal, or a name is not known.
    """
    within("time_limit", time_limit, 0.0)
    read = job_given(job, set, catalog_given(hardware), calibration, layout)
    found = Memory(read).within(time_limit)
    if isinstance(found, Training):
        return TrainingMemory.of(found.answer, found)
    return InferenceMemory.of(found.answer, found)
