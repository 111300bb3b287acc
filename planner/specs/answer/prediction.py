"""The answer of `planner predict`: one priced layout."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.specs.answer.estimate import Estimate
from planner.specs.answer.run import Run
from planner.specs.layouts.layout import Layout


class PhasePrediction(BaseModel):
    """The priced layout of one phase."""

    model_config = ConfigDict(frozen=True)

    name: str
    layout: Layout
    estimate: Estimate
    gap: float = 0.0


class Prediction(BaseModel):
    """One priced layout, schema ``planner/prediction@1``."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_name: Literal["planner/prediction@1"] = Field(
        default="planner/prediction@1", alias="schema"
    )
    layout: Layout
    estimate: Estimate
    gap: float = 0.0
    """Most by which other stages, recompute or rank order may be faster, where the
    layout leaves them open; 0 where those here are proven the best. [1]"""
    warnings: tuple[str, ...] = ()
    run: Run | None = None
    """The whole run, of all phases together; none where no tokens are known."""
    phases: tuple[PhasePrediction, ...] = ()
    """Priced layout of each phase, the first as above; empty for a run of one phase."""
