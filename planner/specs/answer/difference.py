"""The answer of `planner diff`: where two plans differ, and by how much."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.specs.answer.estimate import Verdict
from planner.specs.layouts.layout import Layout


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class Side(_Frozen):
    """One of two plans."""

    name: str
    """File or name as it was given. [text]"""
    kind: Literal["plan", "job"]
    """A plan that was read, or a job that was planned."""
    title: str
    """Model, GPUs and framework. [text]"""
    layout: Layout
    verdict: Verdict


class FieldChange(_Frozen):
    """A field with two values; None stands for an absent field."""

    field: str
    """Dotted path. [text]"""
    a: Any
    b: Any


class TermChange(_Frozen):
    """A figure of both plans."""

    term: str
    words: str
    """Name of the term in a report. [text]"""
    a: float
    b: float
    difference: float
    """Figure of B minus that of A."""


class Difference(_Frozen):
    """The whole answer, schema ``planner/diff@1``."""

    schema_name: Literal["planner/diff@1"] = Field(
        default="planner/diff@1", alias="schema"
    )
    a: Side
    b: Side
    spec: tuple[FieldChange, ...]
    """Fields of the job that differ, names looked up."""
    layout: tuple[FieldChange, ...]
    """Parts of the layout that differ, in words."""
    step_time_s: TermChange
    """Step. [s]"""
    tokens_per_s: TermChange
    """Throughput of all GPUs. [token/s]"""
    time_s: tuple[TermChange, ...]
    """Causes of the step that differ, the largest difference first; the differences add
    up to the step's. [s]"""
    device_gib: TermChange
    """Device peak of the fullest rank. [GiB]"""
    memory_gib: tuple[TermChange, ...]
    """Categories of the fullest rank that differ, the largest difference first; the
    differences add up to the peak's. [GiB]"""
    why: str
    """Causes that make B slower or faster, as `explain` names them. [text]"""
