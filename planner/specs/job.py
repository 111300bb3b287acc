"""The spec file of a job: what the user writes, and nothing derived."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from planner.specs.layout import PartialLayout
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec

FrameworkName = Literal["megatron", "torchtitan", "accelerate", "any"]


class JobSpec(BaseModel):
    """One training job on one cluster, as read from YAML.

    ``model`` and ``cluster`` stay as written (a name, a path, or inline
    fields); they are looked up when the job is resolved.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str | dict[str, object]
    cluster: str | dict[str, object]
    training: TrainingSpec
    inference: dict[str, object] = {}
    """Stays empty: inference has no price yet."""
    framework: str = "megatron"
    stack: dict[str, object] = {}
    objective: Literal["throughput"] = "throughput"
    search: SearchSpec = SearchSpec()
    layout: PartialLayout = Field(default=PartialLayout())

    @field_validator("inference")
    @classmethod
    def _no_inference(cls, value: dict[str, object]) -> dict[str, object]:
        if value:
            raise ValueError("inference is not priced yet; leave it empty")
        return value
