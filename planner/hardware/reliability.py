"""Facts: interruptions of runs, and times of checkpoints and restarts."""

from typing import Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from planner.hardware.reading.files import Catalog, remembered
from planner.hardware.reading.numbers import PositiveInt
from planner.hardware.reading.quantities import BytesPerSecond, Seconds

_FOLDER = "reliability"
Value = TypeVar("Value")


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Planned(_Strict, Generic[Value]):
    """A number with its source.

    Attributes:
        value: In the base unit of its field. [-]
        source: Source of the number. [-]
    """

    value: Value
    source: str = Field(min_length=1)


class Observation(_Strict):
    """Interruptions of one run or fleet.

    Attributes:
        name: Name of the observation. [-]
        gpu: Name of the GPU. [-]
        gpus: Number of GPUs. [1]
        days: Time of the observation. [d]
        interruptions: Unplanned interruptions. [1]
        hardware: Unplanned interruptions by hardware, where told. [1]
        planned: Planned interruptions, where told. [1]
        effective_share_above: Bound of the share of time that trained. [1]
        unverified: The numbers were not looked up. [-]
        source: Source of the numbers. [-]
    """

    name: str
    gpu: str
    gpus: PositiveInt
    days: float = Field(gt=0)
    interruptions: PositiveInt
    hardware: PositiveInt | None = None
    planned: PositiveInt | None = None
    effective_share_above: float | None = None
    unverified: bool = False
    source: str = Field(min_length=1)

    @property
    def gpu_hours(self) -> float:
        """Time of one GPU between interruptions of its run. [GPU-h]."""
        return self.gpus * self.days * 24 / self.interruptions


class Interruptions(_Strict):
    """Observed interruptions, and names of those that a plan assumes.

    Attributes:
        default: Name of the observation that a plan assumes. [-]
        range: Names of the worst and the best fleet of such size. [-]
        observations: All observations. [-]
    """

    default: str
    range: tuple[str, str]
    observations: tuple[Observation, ...]

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        """The default and the range are among the observations."""
        for name in (self.default, *self.range):
            self.named(name)
        return self

    def named(self, name: str) -> Observation:
        """One observation."""
        for observation in self.observations:
            if observation.name == name:
                return observation
        raise ValueError(f"no observation is called {name}")


class Checkpoints(_Strict):
    """Times and rates of checkpoints and restarts.

    Attributes:
        asynchronous_stall: Time that a run waits for a checkpoint written in the
            background, the copy apart. [s]
        copy_rate: From a GPU to its host. [B/s]
        write_rate_per_gpu: To storage, each GPU's part of all. [B/s]
        restart: From an interruption to the load of a checkpoint. [s]
    """

    asynchronous_stall: Planned[Seconds]
    copy_rate: Planned[BytesPerSecond]
    write_rate_per_gpu: Planned[BytesPerSecond]
    restart: Planned[Seconds]


@remembered
def interruptions(catalog: Catalog) -> Interruptions:
    """Observed interruptions."""
    return catalog.lookup(_FOLDER, "interruptions", Interruptions)


@remembered
def checkpoints(catalog: Catalog) -> Checkpoints:
    """Times and rates of checkpoints and restarts."""
    return catalog.lookup(_FOLDER, "checkpoints", Checkpoints)


def check_file(name: str, catalog: Catalog) -> object:
    """Content of one of the two files."""
    reader = interruptions if name == "interruptions" else checkpoints
    return reader(catalog)
