"""The layout of a spec beside the answer of a search, and the plain one."""

from pydantic import BaseModel, ConfigDict

from planner.specs.answer.difference import TermChange
from planner.specs.answer.estimate import Estimate
from planner.specs.layouts.layout import Layout


class Beside(BaseModel):
    """A layout beside the first plan, which stands as A in every difference."""

    model_config = ConfigDict(frozen=True)

    layout: Layout
    estimate: Estimate
    slower: float
    """Step over the first plan's step, minus 1. [1]"""
    expected: float
    """Expected difference: what measured pairs kept of the predicted one. [1]"""
    likely: float
    """Probability that the first plan is faster. [1]"""
    differs: str
    """Parts of the layout that differ from the first plan's. [text]"""
    why: str
    """Causes that make it slower or faster. [text]"""
    time_s: tuple[TermChange, ...]
    """Causes of the step that differ, the largest difference first. [s]"""
    memory_gib: tuple[TermChange, ...]
    """Categories of the fullest rank that differ. [GiB]"""


class Yours(BaseModel):
    """Two layouts that the search did not choose."""

    model_config = ConfigDict(frozen=True)

    given: Beside | None
    """The spec's layout, completed, beside the first plan, or beside itself where there
    is none; none where it cannot be priced."""
    plain: Beside | None
    """The simplest layout: the first of the framework's defaults that fits; none where
    none was found."""
    is_answer: bool
    """True where no plan of the search was faster than the spec's layout, which then
    stands first."""
    refused: str = ""
    """Reason why the spec's layout may not be the answer; empty where it may. [text]"""
    position: int | None = None
    """Its place among the listed plans by step, 1 where none is faster. [1]"""
    ran: bool = False
    """True where the spec says that its layout ran, which is its risk of 0."""
