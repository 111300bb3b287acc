"""Parts of a cluster: nodes, tiers of fabric, nodes out of service, pools."""

from itertools import pairwise
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from planner.hardware.reading.names import Name
from planner.hardware.reading.numbers import (
    NO_SWITCH,
    Float,
    NonNegativeInt,
    PositiveInt,
)
from planner.hardware.reading.quantities import BytesPerSecond, Watts
from planner.hardware.specs import Sourced


class TierSpec(BaseModel):
    """One tier of the scale-out fabric: how many GPUs share one switch group.

    A group's uplinks carry gpus * NIC share / oversubscription in each direction, so
    the ratio is to the line rate of the GPUs below, not to the tier beneath.

    Attributes:
        name: For example `rack`, `pod`. [-]
        gpus: GPUs below one switch group, the largest where they differ. [1]
        oversubscription: Down rate to up rate of its uplinks; 1 is non-blocking. [1]
        units: Nodes of each group where they differ, in the order of the nodes; of
            the outermost tier alone. [1]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    gpus: PositiveInt
    oversubscription: Float = Field(allow_inf_nan=False)
    units: tuple[PositiveInt, ...] = ()

    @model_validator(mode="after")
    def _check_oversubscription(self) -> Self:
        """Spare uplinks do not speed a job up, so a ratio under 1 is a slip."""
        if self.oversubscription < 1:
            raise ValueError(
                f"tier {self.name}: oversubscription is down:up, at least 1; "
                f"given {self.oversubscription} (7:1 is 7)",
            )
        return self


class JoinSpec(BaseModel):
    """Connection between the pools of a mixed fleet.

    Attributes:
        bandwidth: One direction, per GPU that sends to another pool; by default the
            NIC share of the slower pool, which bounds it in any case. [B/s]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bandwidth: BytesPerSecond | None = None


MOST_NODES = 1_000_000
"""Nodes of the largest cluster that is looked at. [1]"""
OF_NODES = ("gpus_per_node", "nic", "nics_per_node", "power_limit")
"""Fields of a cluster that replace its node's. [text]"""


class ClusterSpec(Sourced):
    """Nodes of one kind and the tiers of the fabric between them, or pools of such.

    Attributes:
        node: Name of the node. [-]
        nodes: Number of nodes. [1]
        tiers: From the leaf outward; above the last one a non-blocking core. [-]
        rail_optimised: NIC i of every node of a leaf unit meets one switch. [-]
        partial: A job may use part of a node. [-]
        gpus_per_node: GPUs of each node that the cluster has, where it has part of
            every node: NICs, host memory and drives are shared in proportion. [1]
        nic: Name of the scale-out link of one NIC, in place of the node's. [-]
        nics_per_node: NICs for training traffic, in place of the node's. [1]
        power_limit: Most power that each GPU is let draw, in place of the node's. [W]
        out_of_service: Nodes that run nothing: the last so many, or those listed,
            counted from 0. [1]
        pools: Of a mixed fleet, clusters of one kind of node each. `node` is then the
            first pool's and `nodes` counts all pools; the rest is each pool's own. [-]
        join: Connection between the pools. [-]
    """

    node: str
    nodes: Annotated[int, Field(gt=0, le=MOST_NODES), NO_SWITCH]
    out_of_service: NonNegativeInt | tuple[NonNegativeInt, ...] = ()
    tiers: tuple[TierSpec, ...] = ()
    rail_optimised: bool = False
    partial: bool = False
    gpus_per_node: PositiveInt | None = None
    nic: str | None = None
    nics_per_node: PositiveInt | None = None
    power_limit: Watts | None = None
    pools: tuple["ClusterSpec", ...] = ()
    join: JoinSpec = JoinSpec()

    @model_validator(mode="before")
    @classmethod
    def _sum_pools(cls, data: Any) -> Any:
        """A pool is named as its node unless it says otherwise; all nodes count."""
        entries = data.get("pools") if isinstance(data, dict) else None
        if not isinstance(entries, list | tuple) or not entries:
            return data
        plain = [p.model_dump() if isinstance(p, ClusterSpec) else p for p in entries]
        if not all(isinstance(pool, dict) for pool in plain):
            return data
        pools = [{"name": pool.get("node", "pool"), **pool} for pool in plain]
        sums = {"node": pools[0].get("node"), "nodes": _nodes_of(pools)}
        return {**sums, **data, "pools": pools}

    @model_validator(mode="after")
    def _check_pools(self) -> Self:
        """Pools are two or more, of different names, and hold all that there is."""
        if not self.pools:
            return self
        names = [pool.name for pool in self.pools]
        if len(set(names)) < len(names) or len(names) == 1:
            raise ValueError(
                f"{self.name}: pools are named {names}; a mixed fleet has two or more, "
                "each with a name of its own",
            )
        sums = self.pools[0].node, sum(pool.nodes for pool in self.pools)
        own = self.tiers or self.dead or any(pool.pools for pool in self.pools)
        changed = any(getattr(self, name) is not None for name in OF_NODES)
        if own or changed or sums != (self.node, self.nodes):
            raise ValueError(
                f"{self.name}: node, nodes, tiers, out_of_service and the fields of "
                "nodes belong in each of the pools, which have no pools themselves",
            )
        return self

    @model_validator(mode="after")
    def _check_tiers_grow(self) -> Self:
        """Each tier holds several whole units of the tier below."""
        for inner, outer in pairwise(self.tiers):
            if outer.gpus <= inner.gpus or outer.gpus % inner.gpus:
                raise ValueError(
                    f"{self.name}: tiers go from the leaf outward, each a multiple "
                    f"of the one before; {outer.name} has {outer.gpus} GPUs, "
                    f"{inner.name} has {inner.gpus}",
                )
        return self

    @model_validator(mode="after")
    def _check_units_add_up(self) -> Self:
        """Only the outermost tier has units of its own sizes, which hold all nodes."""
        for tier in self.tiers:
            if tier.units and tier is not self.tiers[-1]:
                raise ValueError(
                    f"{self.name}: tier {tier.name} has units of different sizes; only "
                    f"the outermost tier, {self.tiers[-1].name}, may",
                )
            if tier.units and sum(tier.units) != self.nodes:
                raise ValueError(
                    f"{self.name}: tier {tier.name}: units of {list(tier.units)} nodes "
                    f"are {sum(tier.units)} in all; nodes is {self.nodes}",
                )
        return self

    @model_validator(mode="after")
    def _check_some_node_is_in_service(self) -> Self:
        """Nodes out of service are nodes of the cluster, each once, and not all."""
        counts = self.out_of_service
        listed = () if isinstance(counts, int) else counts
        strange = [node for node in listed if node >= self.nodes]
        if strange or len(set(listed)) < len(listed):
            raise ValueError(
                f"{self.name}: out_of_service lists {list(listed)}; nodes are 0 to "
                f"{self.nodes - 1}, each once",
            )
        if self.in_service < 1:
            raise ValueError(
                f"{self.name}: out_of_service takes {self.nodes - self.in_service} "
                f"nodes of {self.nodes}; at most {self.nodes - 1} can be missing",
            )
        return self

    @model_serializer(mode="wrap")
    def _without_silent_fields(
        self,
        handler: SerializerFunctionWrapHandler,
    ) -> dict[str, Any]:
        """Leave out fields of nodes that say nothing."""
        fields: dict[str, Any] = handler(self)
        silent = {name for name in OF_NODES if fields.get(name) is None}
        return {name: value for name, value in fields.items() if name not in silent}

    @property
    def in_service(self) -> int:
        """Nodes [1] that run jobs."""
        if self.pools:
            return sum(pool.in_service for pool in self.pools)
        counts = self.out_of_service
        return self.nodes - (counts if isinstance(counts, int) else len(counts))

    @property
    def dead(self) -> tuple[int, ...]:
        """Indices [1] of the nodes out of service, ascending."""
        counts = self.out_of_service
        if isinstance(counts, int):
            return tuple(range(self.nodes - counts, self.nodes))
        return tuple(sorted(counts))


def _nodes_of(pools: list[dict[str, Any]]) -> int:
    """Nodes [1] of all pools, as far as they are numbers."""
    return sum(n for pool in pools if isinstance(n := pool.get("nodes"), int))
