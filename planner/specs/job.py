"""The spec file of a job: what the user writes, and nothing derived."""

from typing import Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticKnownError

from planner.hardware.reading.names import Line, plain_name
from planner.specs.economics import EconomicsSpec
from planner.specs.inference import InferenceSpec
from planner.specs.layouts.layout import PartialLayout
from planner.specs.phases import PhaseSpec
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec

FrameworkName = Literal["megatron", "torchtitan", "accelerate", "deepspeed", "any"]


class JobSpec(BaseModel):
    """One training or inference job on one cluster, as read from YAML.

    ``model`` and ``cluster`` stay as written (a name, a path, or inline
    fields); they are looked up when the job is resolved.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Line | dict[str, object]
    """A name in configs/models, a path to a config.json, or the fields of one."""
    cluster: Line | dict[str, object]
    """A name in configs/clusters, a path, or inline fields."""
    inference: InferenceSpec | None = None
    """Generating text, in place of training; `planner memory` alone prices it."""
    training: TrainingSpec | None = Field(default=None, validate_default=True)
    """One optimizer step; absent exactly where inference is given."""
    framework: str = "megatron"
    """A framework by name; `any`: the best of all, each under limits of its own."""
    stack: dict[str, object] = {}
    """Named stack, settings of the framework, and fields of the profile."""
    objective: Literal["throughput", "cost", "energy", "memory"] = "throughput"
    """Quantity that `planner plan` and `planner sweep` search for, with a proof."""
    search: SearchSpec = SearchSpec()
    """Limits on the space, and what a search may choose beside the layout."""
    layout: PartialLayout = Field(default=PartialLayout())
    """One layout, for `planner predict` and `planner explain`."""
    economics: EconomicsSpec = EconomicsSpec()
    """Prices, power and failures that replace the catalog's, for the whole run."""
    phases: tuple[PhaseSpec, ...] = ()
    """Parts of one run that differ in sequence length and batch, each with a plan of
    its own; the training block says what they share."""

    @field_validator("model", "cluster")
    @classmethod
    def _plainly_named(cls, value: str | dict[str, object]) -> str | dict[str, object]:
        """Refuse a name that files and scripts cannot hold."""
        if isinstance(value, dict) and value.get("name") is not None:
            try:
                plain_name(str(value["name"]))
            except ValueError as error:
                raise ValueError(f"name: {error}") from error
        return value

    @field_validator("inference", mode="before")
    @classmethod
    def _empty_is_absent(cls, value: object) -> object:
        return None if value == {} else value

    @field_validator("training")
    @classmethod
    def _one_of_both(
        cls, value: TrainingSpec | None, info: ValidationInfo
    ) -> TrainingSpec | None:
        # A broken inference block has an error of its own.
        inference = info.data.get("inference", "broken")
        if value is None and inference is None:
            raise PydanticKnownError("missing")
        if value is not None and isinstance(inference, InferenceSpec):
            raise ValueError("a job trains or infers, not both; take one block out")
        return value

    @field_validator("phases")
    @classmethod
    def _differ(
        cls, value: tuple[PhaseSpec, ...], info: ValidationInfo
    ) -> tuple[PhaseSpec, ...]:
        """Check that phases are two or more, differ in name, and hold all tokens."""
        if not value:
            return value
        names = [phase.name for phase in value]
        if len(value) == 1 or len(set(names)) < len(names):
            raise ValueError(
                f"phases are named {', '.join(names)}; a run has two or more, each "
                "with a name of its own"
            )
        training = info.data.get("training")
        if training is None or not isinstance(training, TrainingSpec):
            raise ValueError("phases go with a training block")
        if training.tokens is not None or training.compute is not None:
            raise ValueError(
                "each phase has its tokens; take tokens and compute out of training"
            )
        for phase in value:
            try:
                phase.of(training)
            except ValidationError as error:
                first = error.errors()[0]["msg"].removeprefix("Value error, ")
                raise ValueError(f"phase {phase.name}: {first}") from error
        return value

    def in_phases(self) -> tuple[tuple[str, "JobSpec"], ...]:
        """One job for each phase.

        Returns:
            Name of each phase, empty for a run without phases, and its job. [-]
        """
        if not self.phases or self.training is None:
            return (("", self),)
        return tuple(
            (
                phase.name,
                self.model_copy(
                    update={
                        "training": phase.of(self.training),
                        "layout": phase.layout or self.layout,
                        "phases": (),
                    }
                ),
            )
            for phase in self.phases
        )
