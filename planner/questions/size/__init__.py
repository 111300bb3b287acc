"""`planner.size`: the model that time or money trains best."""

from typing import TYPE_CHECKING

from pydantic import PrivateAttr

from planner.planning.sizing.ask import asked
from planner.questions.inputs.given import (
    CalibrationLike,
    Changes,
    FilePath,
    assignments,
    calibration_given,
    catalog_given,
    measured_in,
    within,
)
from planner.questions.inputs.limits import MEMORY
from planner.questions.inputs.progress import OnProgress
from planner.questions.outputs.answer import Answer, Rows
from planner.questions.size.search import Sized, SizeModel
from planner.specs.answer import size as answers

if TYPE_CHECKING:
    from planner.document.blocks import Document


class Size(answers.SizeAnswer, Answer):
    """Parameters and tokens that a budget trains best, and the nearest model."""

    _flow: Sized = PrivateAttr()

    def table(self) -> Rows:
        """List the best size and, with serving, those beside it.

        Returns:
            Parameters, tokens, loss, work, time and cost. [-], shape (sizes,)
        """
        sizes = {"best": self, "alone": self.alone, "as_good": self.as_good}
        names = [name for name in answers.Trained.model_fields if name != "flops"]
        return [
            {"size": size, **{name: getattr(one, name) for name in names}}
            | one.flops.model_dump()
            for size, one in sizes.items()
            if one is not None
        ]

    def _page(self) -> "Document":
        from planner.report.size import size_document, with_plan  # noqa: PLC0415

        flow = self._flow.flow
        return with_plan(size_document(self, flow.result), flow.page(0.0))


def size(
    on: str,
    *,
    days: float | None = None,
    budget: float | str | None = None,
    serve_tokens: float | str | None = None,
    law: str | None = None,
    framework: str | None = None,
    network: str | None = None,
    set: Changes | None = None,  # noqa: A002  # as on the command line
    time_limit: float = 120.0,
    memory_limit: str = MEMORY,
    hardware: FilePath | None = None,
    calibration: CalibrationLike | None = None,
    on_progress: OnProgress | None = None,
) -> Size:
    """Find the parameters and tokens that days or money train best.

    Args:
        on: GPUs in any spelling, as `512xh100`, or a cluster. [text]
        days: Longest run. [d]
        budget: Most money, in USD or as `2 MUSD`. [text]
        serve_tokens: Tokens to be served over the model's life, as `2T`. [token]
        law: Law of the loss by name; None for the usual one. [text]
        framework: Framework by name; None for that of pretraining. [text]
        network: Network between nodes, as `25 GbE`. [text]
        set: Fields of the nearest model's job to replace, by dotted path. [-]
        time_limit: Longest time. [s]
        memory_limit: Most memory of this process and its workers. [text]
        hardware: Folder of hardware laid over ours. [path]
        calibration: What the user measured. [-]
        on_progress: Called about ten times a second with the state of a search. [-]

    Returns:
        The size, and the catalogue's nearest model with its plan. [-]

    Raises:
        BadInputError: There is no limit, or a limit or a name is wrong.
        InfeasibleError: No model of the catalogue fits.
        TimeLimitError: The time ended before the first plan.
    """
    within("time_limit", time_limit, 0.0)
    catalog = catalog_given(hardware)
    ask = asked(
        on,
        catalog,
        days=days,
        budget=budget,
        serve_tokens=serve_tokens,
        law=law,
        framework=framework,
        network=network,
        assignments=assignments(set),
        calibration=calibration_given(calibration, catalog),
        measured_in=measured_in(calibration),
    )
    found = SizeModel(ask).within(time_limit, memory_limit, on_progress)
    return Size.of(found.answer, found)
