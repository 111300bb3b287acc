"""`planner.memory`: what a job holds in memory, and the most that fits."""

from typing import TYPE_CHECKING

from pydantic import PrivateAttr

from planner.questions.flow.memory import Serving, Training, held
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
from planner.questions.outputs.answer import Answer, Rows
from planner.search.stop import after, under
from planner.specs.answer import memory as answers

if TYPE_CHECKING:
    from planner.document.blocks import Document


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
        from planner.report.pages.memory import training_page  # noqa: PLC0415

        return training_page(self._flow.answer, self._flow.title)


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
        from planner.report.pages.memory import serving_page  # noqa: PLC0415

        return serving_page(self._flow.answer, self._flow.model, self._flow.gpu)


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
    catalog = catalog_given(hardware)
    with under(after(time_limit)):
        flow = held(job_given(job, set, catalog, calibration, layout))
    if isinstance(flow, Training):
        return TrainingMemory.of(flow.answer, flow)
    return InferenceMemory.of(flow.answer, flow)
