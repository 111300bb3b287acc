"""The search block of a spec: which part of the space is looked at."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictInt, model_validator


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

AXES = ("tp", "pp", "vpp", "cp", "ep", "etp", "dp", "dp_shard", "micro_batch")


class SearchSpec(BaseModel):
    """Limits on the space; an absent limit leaves the axis free."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    space: Literal["default", "full"] = "default"
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
    sp: bool | None = None
    schedule: TextLimit = None
    order: TextLimit = None
    recompute: TextLimit = None
    cp_kind: TextLimit = None
    offload: Literal[False] | None = None

    def allows(self, axis: str, value: int) -> bool:
        """Whether *value* lies within the limit on *axis*.

        Args:
            axis: Name of a numeric field of this block. [text]
            value: Degree, stage or size. [1]

        Returns:
            True when there is no limit or the value obeys it.
        """
        limit = getattr(self, axis)
        if limit is None:
            return True
        if isinstance(limit, Span):
            return limit.min <= value and (limit.max is None or value <= limit.max)
        return value in (limit if isinstance(limit, tuple) else (limit,))

    def allows_text(self, axis: str, value: str) -> bool:
        """Whether the word *value* is among those that *axis* is limited to.

        Args:
            axis: Name of a worded field of this block. [text]
            value: A schedule, order, recompute kind or kind of cp. [text]

        Returns:
            True when there is no limit or the word is named in it.
        """
        limit = getattr(self, axis)
        if limit is None:
            return True
        return value in (limit if isinstance(limit, tuple) else (limit,))

    def limits(self) -> dict[str, object]:
        """Limits that the user set, by axis."""
        given = self.model_dump(mode="json", exclude_none=True)
        given.pop("space")
        return given
