"""The tree of terms of a number: value, formula with its numbers, sources."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Term(BaseModel):
    """One term of a number; its parts, where it has any, add up to it."""

    model_config = ConfigDict(frozen=True)

    name: str
    title: str
    value: float
    """Contribution to the number asked for, in `unit`."""
    unit: Literal["s", "GiB"] = "s"
    calls: float = 1.0
    """Times that the formula counts in the value. [1]"""
    formula: str = ""
    """Formula of one call; empty where the parts say it. [text]"""
    numbers: dict[str, float] = Field(default_factory=dict)
    """Symbols of the formula, in units of seconds, bytes and FLOPs. [-]"""
    source: tuple[str, ...] = ()
    """Files of the catalog with field and source of each fact. [text]"""
    stack: dict[str, str] = Field(default_factory=dict)
    """Switches and constants of the stack that the value depends on. [text]"""
    parts: tuple["Term", ...] = ()

    def times(self, factor: float) -> "Term":
        """Scale the term with all its parts."""
        parts = tuple(part.times(factor) for part in self.parts)
        scaled = {"value": self.value * factor, "calls": self.calls * factor}
        return self.model_copy(update=scaled | {"parts": parts})

    @classmethod
    def of_parts(cls, name: str, title: str, parts: "list[Term]") -> "Term":
        """Sum some terms under a name."""
        kept = tuple(part for part in parts if part.value)
        unit = parts[0].unit if parts else "s"
        total = sum(part.value for part in kept)
        return cls(name=name, title=title, value=total, unit=unit, parts=kept)


class PhaseTerm(BaseModel):
    """The term of one phase of a run."""

    model_config = ConfigDict(frozen=True)

    phase: str
    """Name of the phase; empty for a run of one phase. [text]"""
    term: Term


class Why(BaseModel):
    """The terms of a number of a prediction, schema ``planner/why@1``."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_name: Literal["planner/why@1"] = Field(
        default="planner/why@1", alias="schema"
    )
    terms: tuple[PhaseTerm, ...]
