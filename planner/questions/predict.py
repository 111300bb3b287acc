"""`planner.predict`: time and memory of one given layout."""

from typing import TYPE_CHECKING

from pydantic import PrivateAttr

from planner.questions.flow.predict import Priced, priced
from planner.questions.inputs.given import (
    CalibrationLike,
    Changes,
    FilePath,
    JobLike,
    LayoutLike,
    catalog_given,
    looked_up,
    within,
)
from planner.questions.outputs.answer import Answer, Rows
from planner.questions.outputs.rows import plan_row
from planner.search.stop import after, under
from planner.specs.answer import prediction

if TYPE_CHECKING:
    from planner.document.blocks import Document


class Prediction(prediction.Prediction, Answer):
    """One priced layout, or one for each phase."""

    _flow: Priced = PrivateAttr()

    def table(self) -> Rows:
        """List the layout of each phase.

        Returns:
            Layout, time, memory and verdict. [-], shape (phases,)
        """
        return [
            {"phase": phase.name, **plan_row(plan)} for phase, plan in self._flow.pairs
        ]

    def _page(self) -> "Document":
        return self._flow.page()


def predict(
    job: JobLike,
    *,
    layout: LayoutLike | None = None,
    set: Changes | None = None,  # noqa: A002  # as on the command line
    hardware: FilePath | None = None,
    calibration: CalibrationLike | None = None,
    time_limit: float = 60.0,
) -> Prediction:
    """Price one layout; what it leaves open is filled in.

    Args:
        job: A file or the name of a known job, its fields, or a job. [-]
        layout: Layout in place of the job's. [-]
        set: Fields to replace, by dotted path. [-]
        hardware: Folder of hardware laid over ours. [path]
        calibration: What the user measured. [-]
        time_limit: Longest time to choose what the layout leaves open. [s]

    Returns:
        The completed layout, its time and memory. [-]

    Raises:
        BadInputError: No layout is given, or the layout is not legal.
    """
    within("time_limit", time_limit, 0.0)
    catalog = catalog_given(hardware)
    read = looked_up(job, set, catalog, calibration, layout)
    with under(after(time_limit)):
        flow = priced(read)
    return Prediction.of(flow.answer, flow)
