"""Sources of the values of a software stack, and ranges of those that are assumed."""

from collections.abc import Iterator, Mapping
from typing import Any, Self, TypeGuard

from pydantic import BaseModel, ConfigDict, Field, model_validator

Given = Mapping[str, Any]


class Assumed(BaseModel):
    """A value that nobody has published, with the range that it may lie in.

    Attributes:
        times: Factor of the range: from the value over ``times`` to the value times
            ``times``. [1]
        low: Lower end of the range, in the unit of the value. [-]
        high: Upper end of the range. [-]
        others: Words that may hold in place of the value. [-]
        why: Reason for value and range. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    times: float | None = Field(default=None, gt=1, allow_inf_nan=False)
    low: float | None = Field(default=None, allow_inf_nan=False)
    high: float | None = Field(default=None, allow_inf_nan=False)
    others: tuple[object, ...] = ()
    why: str = Field(min_length=1)

    @model_validator(mode="after")
    def _one_range(self) -> Self:
        ends = [self.low, self.high].count(None)
        ranges = [self.times is not None, ends == 0, bool(self.others)]
        if ranges.count(True) != 1 or ends == 1:
            raise ValueError("one range: times, low with high, or others")
        return self

    def bounds(self, value: object) -> tuple[float, float] | None:
        """Ends of the range around a value.

        Returns:
            Lower and upper end; none where words stand in place of numbers. [-]
        """
        if self.low is not None and self.high is not None:
            return self.low, self.high
        if self.times is None or not _is_number(value):
            return None
        return value / self.times, value * self.times

    def fault(self, value: object) -> str:
        """Reason why a value is not within the range.

        Returns:
            Words; empty where the range holds the value. [text]
        """
        if self.others:
            return f"{value} is among the others" if value in self.others else ""
        ends = self.bounds(value)
        if ends is None or not _is_number(value):
            return f"{value} is no number: others, not a range"
        return "" if ends[0] <= value <= ends[1] else f"{value} is outside its range"

    def told(self, value: object) -> str:
        """The range in words."""
        ends = self.bounds(value)
        words = (
            " or ".join(map(str, self.others))
            if ends is None
            else f"{ends[0]:.4g} to {ends[1]:.4g}"
        )
        return f"assumed, {words}: {self.why}"


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


class Sourced(BaseModel):
    """Blocks beside the values of a YAML file: where each value comes from.

    A key names one value or several, with commas between them.

    Attributes:
        sources: Publication, place in the code, or derivation of a value. [text]
        assumed: Range and reason of a value without a source. [-]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sources: dict[str, str] = {}
    assumed: dict[str, Assumed] = {}

    @property
    def by_name(self) -> dict[str, str | Assumed]:
        """Source or assumption of every value that is named. [-]."""
        return dict(self._named())

    def _named(self) -> Iterator[tuple[str, str | Assumed]]:
        blocks: tuple[Mapping[str, str | Assumed], ...] = (self.sources, self.assumed)
        for keys, said in (pair for block in blocks for pair in block.items()):
            yield from ((name.strip(), said) for name in keys.split(","))

    def faults(self, values: Given) -> list[str]:
        """Values without a source, and sources without a value.

        Returns:
            One sentence for each fault; empty where every value has one source or one
            assumption whose range holds the value. [text]
        """
        every = [name for name, _ in self._named()]
        said = self.by_name
        twice = sorted({name for name in every if every.count(name) > 1})
        return [
            *(f"{name}: neither a source nor assumed" for name in values.keys() - said),
            *(f"{name}: no such value" for name in said.keys() - values.keys()),
            *(f"{name}: more than one source" for name in twice),
            *(f"{name}: {why}" for name, why in _outside(said, values)),
        ]

    def told(self, name: str, value: object) -> str:
        """Source or range of a value in words.

        Returns:
            Words; empty where nothing is said of the value. [text]
        """
        said = self.by_name.get(name, "")
        return said.told(value) if isinstance(said, Assumed) else " ".join(said.split())


def _outside(
    said: Mapping[str, str | Assumed], values: Given
) -> Iterator[tuple[str, str]]:
    for name, each in said.items():
        if not (isinstance(each, Assumed) and name in values):
            continue
        if why := each.fault(values[name]):
            yield name, why
