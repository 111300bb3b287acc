"""`planner.explain`: why nothing fits, or why the best layout wins."""

import time
from typing import TYPE_CHECKING

from pydantic import PrivateAttr

from planner.questions.flow.explain import Reasoned, reasoned
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
from planner.questions.inputs.limits import MEMORY, memory_bytes
from planner.questions.outputs.answer import Answer, Rows
from planner.questions.plan import Robust
from planner.search.stop import Stop, under
from planner.specs.answer import explanation

if TYPE_CHECKING:
    from planner.document.blocks import Document


class Explained(explanation.Explained, Answer):
    """Limits that clash and changes that help, or what binds the best plan."""

    _flow: Reasoned = PrivateAttr()

    def table(self) -> Rows:
        """List the changes that help where nothing fits, else the sensitivities.

        Returns:
            Changes with their effects. [-]
        """
        changes = self.sensitivities if self.feasible else self.relaxations
        return [change.model_dump(mode="json") for change in changes]

    def _page(self) -> "Document":
        return self._flow.page()


def explain(
    job: JobLike,
    *,
    layout: LayoutLike | None = None,
    set: Changes | None = None,  # noqa: A002  # as on the command line
    time_limit: float = 60.0,
    memory_limit: str = MEMORY,
    robust: Robust = "on",
    hardware: FilePath | None = None,
    calibration: CalibrationLike | None = None,
) -> Explained:
    """Say which limits clash and what helps, or what binds the best plan.

    Args:
        job: A file or the name of a known job, its fields, or a job. [-]
        layout: Layout to judge, in place of the job's. [-]
        set: Fields to replace, by dotted path. [-]
        time_limit: Longest time for all searches. [s]
        memory_limit: Most memory of this process and its workers. [text]
        robust: `on` to limit the risk of running out of memory. [text]
        hardware: Folder of hardware laid over ours. [path]
        calibration: What the user measured. [-]

    Returns:
        Reasons; `status` says if no layout is legal or none fits. [-]

    Raises:
        BadInputError: A file, a field or a name is wrong, or the layout is not legal.
    """
    within("time_limit", time_limit, 0.0)
    stop = Stop(time.monotonic() + time_limit, memory_bytes(memory_limit))
    catalog = catalog_given(hardware)
    read = looked_up(job, set, catalog, calibration, layout)
    with under(stop):
        flow = reasoned(read, time_limit=stop.left, robust=robust == "on")
    return Explained.of(flow.answer, flow)
