"""The purchase file: a job, what may be bought or rented for it, and the question."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from planner.hardware.fleets import MOST_NODES
from planner.hardware.reading.money import PriceField
from planner.hardware.reading.names import Line, Name
from planner.hardware.reading.quantities import Seconds, Usd

ChangeName = Literal["memory", "nic", "domain", "oversubscription"]
"""Parts that one step of better hardware may change."""


def _positive(value: object) -> object:
    if isinstance(value, str) and value.split()[:1] in (["0"], ["0.0"]):
        raise ValueError(f"{value} buys nothing; give more than 0")
    return value


class CandidateSpec(BaseModel):
    """A cluster that the job may run on, and what it costs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name = ""
    """Name in the answer; absent: the cluster's name."""
    cluster: Line | dict[str, object]
    """A name in configs/clusters, a path, or inline fields."""
    nodes: Annotated[int, Field(gt=0, le=MOST_NODES)] | None = None
    """Nodes, fixed; absent: what the budget or the deadline asks for, else the
    cluster's own. [1]"""
    most_nodes: Annotated[int, Field(gt=0, le=MOST_NODES)] | None = None
    """Nodes that can be had at most, where they are not fixed. [1]"""
    price: PriceField | None = None
    """Price of an hour of a GPU or a node, or of owning it; absent: the catalogue's."""
    source: Line = ""
    """Source of the price."""
    framework: str | None = None
    """Framework in place of the job's."""
    stack: dict[str, object] | None = None
    """Stack settings in place of the job's."""


class PurchaseSpec(BaseModel):
    """One job, its candidates, and a budget or a deadline to hold."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    job: Line | dict[str, object]
    """A job file, the name of one, or its fields; its cluster is not read."""
    candidates: tuple[CandidateSpec, ...] = Field(min_length=1)
    budget: Annotated[Usd, BeforeValidator(_positive)] | None = None
    """Money that may be signed for: the price of bought hardware, the rent
    of a run on rented hardware. [USD]"""
    deadline: Annotated[Seconds, BeforeValidator(_positive)] | None = None
    """Time that the run may take. [s]"""
    changes: dict[ChangeName, PriceField] = {}
    """Price of one step of better hardware, where it is known. For every GPU, 16 GB
    more memory or a NIC of twice the rate. Else a scale-up domain twice as wide, or
    half the oversubscription."""
