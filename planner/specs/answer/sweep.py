"""The answer of `planner sweep`: one plan for each combination of values."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.specs.answer.result import RankedPlan, Status
from planner.specs.answer.run import Run


class Over(BaseModel):
    """One field of the job with the values that it takes in turn."""

    model_config = ConfigDict(frozen=True)

    path: str
    """Dotted path of the field. [text]"""
    values: tuple[Any, ...]
    """Values in the order given. [-]"""

    @property
    def name(self) -> str:
        """Last part of the path. [text]."""
        return self.path.rpartition(".")[2]


class Cell(BaseModel):
    """One combination of values with its best plan."""

    model_config = ConfigDict(frozen=True)

    values: dict[str, Any]
    """Value by dotted path of its field. [-]"""
    status: Status | Literal["refused"]
    """Status of the search; refused where the job cannot be read or planned."""
    reason: str = ""
    """Reason against a plan. [text]"""
    gap: float | None = None
    """Largest share by which another plan may be faster. [1]"""
    plan: RankedPlan | None = None
    """The first plan, of the first phase; None without a plan."""
    run: Run | None = None
    """The whole run, None where no tokens are known."""
    out_of_time: bool = False
    """True where the time limit ended the search."""


class SweepAnswer(BaseModel):
    """All combinations, schema ``planner/sweep@1``."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_name: Literal["planner/sweep@1"] = Field(
        default="planner/sweep@1", alias="schema"
    )
    title: str
    """Model and cluster of the job as it was given. [text]"""
    over: tuple[Over, ...]
    """Fields that vary; the last varies fastest."""
    cells: tuple[Cell, ...]
    """Combinations in the order of the fields and of their values."""
    seconds: float
    """Wall time. [s]"""
