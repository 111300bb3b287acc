"""The search block of a spec: which part of the space is looked at."""

from typing import Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

from planner.specs.answer.estimate import RESUME
from planner.specs.layouts.axes import AXIS, NUMBERS
from planner.specs.layouts.context import cp_family
from planner.specs.layouts.formats import FORMAT_AXES, GradientFormat, ParameterFormat
from planner.specs.layouts.offload import parts_of, word_for
from planner.specs.training import Method, Optimizer, Precision, TrainingSpec


class Span(BaseModel):
    """A closed range of degrees."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min: int = Field(default=1, ge=1, strict=True)
    max: int | None = Field(default=None, ge=1, strict=True)

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.max is not None and self.max < self.min:
            raise ValueError(f"min {self.min} exceeds max {self.max}")
        return self


IntLimit = StrictInt | tuple[StrictInt, ...] | Span | None
TextLimit = str | tuple[str, ...] | None
OffloadChoice = StrictBool | str | tuple[str, ...] | None

SETTINGS = ("method", "optimizer", "precision")
"""Fields of the training block that a search may choose."""


def listed(limit: IntLimit) -> tuple[int, ...]:
    """Values that a limit names one by one."""
    if isinstance(limit, Span):
        return (limit.min,) if limit.min == limit.max else ()
    if limit is None:
        return ()
    return limit if isinstance(limit, tuple) else (limit,)


def _from(least: int, limit: IntLimit) -> IntLimit:
    """A limit whose values are not below the least that exists."""
    if limit == ():
        raise ValueError("an empty list leaves nothing to choose from")
    if any(value < least for value in listed(limit)):
        raise ValueError(f"values are whole numbers from {least}")
    return limit


class SearchSpec(BaseModel):
    """Limits on the space; an absent limit leaves the axis free.

    ``offload``, the settings and the formats on the wire widen it instead: absent,
    nothing is offloaded, the training block stays as given, and gradients and
    parameters travel in the framework's own formats; the full space also has others.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    space: Literal["default", "full"] = "default"
    memory_risk: float = Field(default=0.05, gt=0, lt=1, strict=True)
    """Most probability of running out of memory that a robust plan may have. [1]"""
    memory_moments: Literal["training", "all"] = "training"
    """Moments that a plan has to fit: those of training, or the resume from a
    checkpoint, too."""
    gpus: IntLimit = None
    """GPUs that a layout may use, the others being idle; absent: all in service where
    some layout fills them."""
    tp: IntLimit = None
    pp: IntLimit = None
    vpp: IntLimit = None
    cp: IntLimit = None
    ep: IntLimit = None
    etp: IntLimit = None
    dp: IntLimit = None
    dp_shard: IntLimit = None
    micro_batch: IntLimit = None
    zero_stage: IntLimit = None
    hpz: IntLimit = None
    sp: bool | None = None
    schedule: TextLimit = None
    order: TextLimit = None
    recompute: TextLimit = None
    cp_kind: TextLimit = None
    offload: OffloadChoice = None
    """Categories that may lie in host memory: false none, true all that the framework
    can, or a list of `none` and categories with + between them."""
    method: Method | tuple[Method, ...] | None = None
    """Methods to choose from; absent: the training block's."""
    optimizer: Optimizer | tuple[Optimizer, ...] | None = None
    """Optimizers to choose from; absent: the training block's."""

    precision: Precision | tuple[Precision, ...] | None = None
    """Compute formats to choose from; absent: the training block's."""
    gradient_dtype: GradientFormat | tuple[GradientFormat, ...] | None = None
    """Formats that gradients may be reduced in; absent: the framework's own, in the
    full space any that it has."""
    parameter_dtype: ParameterFormat | tuple[ParameterFormat, ...] | None = None
    """Formats that parameters may be gathered in; absent: the framework's own, in the
    full space the narrowest."""

    @field_validator(*(axis.name for axis in NUMBERS))
    @classmethod
    def _legal_numbers(cls, value: IntLimit, info: ValidationInfo) -> IntLimit:
        axis = AXIS[str(info.field_name)]
        legal = axis.values
        if legal and any(number > legal[-1] for number in listed(value)):
            raise ValueError(f"the {axis.told} stages are {axis.least} to {legal[-1]}")
        return _from(axis.least, value)

    @model_validator(mode="after")
    def _sequence_parallel_needs_tensor(self) -> Self:
        if self.sp and self.tp is not None and set(listed(self.tp)) == {1}:
            raise ValueError(
                "sp = true and tp = 1 cannot hold together: sequence parallelism "
                "splits over the tensor ranks; tp = 2 or more, or sp: false"
            )
        return self

    @field_validator("offload")
    @classmethod
    def _known_offloads(cls, value: OffloadChoice) -> OffloadChoice:
        if isinstance(value, str):
            return word_for(parts_of(value))
        if isinstance(value, tuple):
            return tuple(word_for(parts_of(word)) for word in value)
        return value

    @field_validator("offload", *SETTINGS, *FORMAT_AXES)
    @classmethod
    def _not_empty(cls, value: object) -> object:
        if value == ():
            raise ValueError("an empty list leaves nothing to choose from")
        return value

    def binds(self, moment: str) -> bool:
        """Tell if a plan has to fit a moment.

        Returns:
            False for the resume where training alone counts. [-]
        """
        return self.memory_moments == "all" or moment != RESUME

    def choices(self, setting: str) -> tuple[str, ...]:
        """Values of a setting that the user lists, in their order."""
        given = getattr(self, setting)
        if isinstance(given, bool) or given is None:
            return ()
        return tuple(dict.fromkeys((given,) if isinstance(given, str) else given))

    def settings_of(self, training: TrainingSpec) -> dict[str, str]:
        """The settings of a training block that this search chose."""
        return {
            name: str(getattr(training, name))
            for name in SETTINGS
            if self.choices(name)
        }

    def allows(self, axis: str, value: int) -> bool:
        """Tell if *value* lies within the limit on *axis*."""
        limit = getattr(self, axis)
        if limit is None:
            return True
        if isinstance(limit, Span):
            return limit.min <= value and (limit.max is None or value <= limit.max)
        return value in (limit if isinstance(limit, tuple) else (limit,))

    def largest(self, axis: str) -> int | None:
        """The largest value that the limit on *axis* names.

        Returns:
            The value; None without a limit, or with a limit that is open above. [1]
        """
        limit = getattr(self, axis)
        if isinstance(limit, Span):
            return limit.max
        return max(limit, default=None) if isinstance(limit, tuple) else limit

    def allows_text(self, axis: str, value: str) -> bool:
        """Tell if the word *value* is among the words that *axis* is limited to."""
        return getattr(self, axis) is None or value in self.words(axis)

    def words(self, axis: str) -> tuple[str, ...]:
        """The words that *axis* is limited to."""
        limit = getattr(self, axis)
        if limit is None:
            return ()
        return limit if isinstance(limit, tuple) else (limit,)

    def allows_context(self, kind: str) -> bool:
        """Tell if a kind of cp is allowed, by its own name or its family's.

        Args:
            kind: A kind, such as ``ring`` or ``ulysses4+ring``. [text]
        """
        names = (kind, cp_family(kind))
        return any(self.allows_text("cp_kind", name) for name in names)

    def unlimited(self) -> Self:
        """The block without limits on the axes, and with those on memory."""
        kept = {"space", "memory_risk", "memory_moments"}
        return type(self)(**self.model_dump(include=kept))

    def limits(self) -> dict[str, object]:
        """Limits that the user set, by axis, without fields that widen the space."""
        own = {"space", "memory_risk", "memory_moments", "offload"}
        widening = {*own, *SETTINGS, *FORMAT_AXES}
        return self.model_dump(mode="json", exclude_none=True, exclude=widening)


def limit_words(axis: str, value: object) -> str:
    """A limit of the search block as a user would say it.

    Returns:
        For example `tp <= 8`, `pp = 2 or 4`, `recompute none`. [text]
    """
    if isinstance(value, dict):
        low, high = value.get("min", 1), value.get("max")
        parts = [f"{axis} >= {low}"] if low > 1 else []
        parts += [f"{axis} <= {high}"] if high is not None else []
        return " and ".join(parts) or axis
    listed = value if isinstance(value, list | tuple) else [value]
    words = " or ".join(str(each).lower() for each in listed)
    is_word = any(isinstance(each, str) for each in listed)
    return f"{axis} {words}" if is_word else f"{axis} = {words}"
