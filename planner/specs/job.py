"""The spec file of a job: what the user writes, and nothing derived."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import PydanticKnownError

from planner.specs.inference import InferenceSpec
from planner.specs.layout import PartialLayout
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec

FrameworkName = Literal["megatron", "torchtitan", "accelerate", "deepspeed", "any"]


class JobSpec(BaseModel):
    """One training or inference job on one cluster, as read from YAML.

    ``model`` and ``cluster`` stay as written (a name, a path, or inline
    fields); they are looked up when the job is resolved.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str | dict[str, object]
    cluster: str | dict[str, object]
    inference: InferenceSpec | None = None
    """Generating text, in place of training; `planner memory` alone prices it."""
    training: TrainingSpec | None = Field(default=None, validate_default=True)
    """One optimizer step; absent exactly where inference is given."""
    framework: str = "megatron"
    stack: dict[str, object] = {}
    objective: Literal["throughput"] = "throughput"
    search: SearchSpec = SearchSpec()
    layout: PartialLayout = Field(default=PartialLayout())

    @field_validator("inference", mode="before")
    @classmethod
    def _empty_is_absent(cls, value: object) -> object:
        return None if value == {} else value

    @field_validator("training")
    @classmethod
    def _one_of_both(
        cls, value: TrainingSpec | None, info: ValidationInfo
    ) -> TrainingSpec | None:
        # A broken inference block is told of itself.
        inference = info.data.get("inference", "broken")
        if value is None and inference is None:
            raise PydanticKnownError("missing")
        if value is not None and isinstance(inference, InferenceSpec):
            raise ValueError("a job trains or infers, not both; take one block out")
        return value
