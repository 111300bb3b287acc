"""A layout: how a model lies on a mesh of GPUs, complete or in part."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from planner.hardware.reading.numbers import NO_SWITCH, Float
from planner.specs.layouts.context import CpKind
from planner.specs.layouts.formats import CommDtype, GivenFormats
from planner.specs.training import MOST_SEQUENCES

Schedule = Literal[
    "gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe-v", "dualpipe"
]
Order = Literal["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"]
MOST_RANKS = 1 << 24
"""Ranks of one axis, more than any cluster has. [1]"""
MOST_LAYERS = 1 << 16
"""Layers of a virtual stage, or such stages, more than any model has. [1]"""
Degree = Field(default=1, ge=1, le=MOST_RANKS, strict=True)
Count = Field(default=1, ge=1, le=MOST_SEQUENCES, strict=True)
GivenDegree = Annotated[int, Field(ge=1, le=MOST_RANKS, strict=True)] | None
"""A degree that a user may leave open. [1]"""
GivenCount = Annotated[int, Field(ge=1, le=MOST_SEQUENCES, strict=True)] | None
"""A number of sequences or micro-batches that a user may leave open. [1]"""


Layer = Annotated[int, Field(ge=0, le=MOST_LAYERS), NO_SWITCH]
"""A layer of a virtual stage, from 0. [1]"""


class RecomputeRange(BaseModel):
    """Layers ``start`` to ``stop - 1`` of a virtual stage share one kind."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    start: Layer = Field(alias="from")
    stop: Layer = Field(alias="to")
    kind: str

    @model_validator(mode="after")
    def _not_backwards(self) -> Self:
        if self.stop < self.start:
            raise ValueError(f"from {self.start} lies after to {self.stop}")
        return self


class StageOffload(BaseModel):
    """Offload of one virtual stage alone to host memory: nothing. [1].

    No framework moves what one stage holds and leaves the others as they are;
    ``layout.offload`` is of all of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    gradients: float = Field(default=0.0, ge=0.0, le=0.0)
    activations: float = Field(default=0.0, ge=0.0, le=0.0)


class Stage(BaseModel):
    """One virtual stage: its layers and what of them is recomputed.

    Zero layers is legal where the stage holds the embedding or the head.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    layers: int = Field(ge=0, le=MOST_LAYERS, strict=True)
    recompute: tuple[RecomputeRange, ...] = ()
    offload: StageOffload = StageOffload()

    @model_validator(mode="after")
    def _ranges_tile(self) -> Self:
        at = 0
        for part in self.recompute:
            if part.start != at:
                raise ValueError(f"recompute ranges leave a hole at layer {at}")
            at = part.stop
        if self.recompute and at != self.layers:
            raise ValueError(f"recompute ranges end at {at}, not at {self.layers}")
        return self


class PoolStages(BaseModel):
    """Pipeline ranks that one pool of a mixed fleet hosts, and its degrees."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pool: str
    """Name of the pool in the cluster."""
    stages: tuple[int, ...] = Field(min_length=1)
    """Pipeline ranks. [1]"""
    tp: GivenDegree = None
    """Degrees of the pool; absent in a given layout: the layout's. [1]"""
    dp: GivenDegree = None


class Offload(BaseModel):
    """Fractions of the state kept in host memory, or on its drives. [1]."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: Literal["cpu", "nvme"] = "cpu"
    """Place of optimizer states and parameters: the host's memory, or its local
    drives; gradients and activations go to memory."""

    optimizer: Float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of the optimizer states, which the host's processors then update."""
    parameters: Float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of the sharded parameters; ZeRO-3 only."""
    gradients: Float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of the sharded gradients."""
    activations: Float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of the activations kept for backward: k of L layers are k / L."""

    @model_validator(mode="after")
    def _drives_hold_something(self) -> Self:
        """Refuse drives that hold neither optimizer states nor parameters."""
        if self.device == "nvme" and not self.optimizer + self.parameters:
            raise ValueError(
                "device nvme takes optimizer states and parameters; give a part of "
                "either, or device cpu"
            )
        return self


class Layout(BaseModel):
    """A complete layout: every axis has its degree, every stage its layers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tp: int = Degree
    sp: bool = False
    pp: int = Degree
    vpp: int = Degree
    cp: int = Degree
    cp_kind: CpKind = "all-gather"
    ep: int = Degree
    etp: int = Degree
    dp: int = Degree
    dp_shard: int = Degree
    zero_stage: int = Field(default=0, ge=0, le=3, strict=True)
    hpz: int = Degree
    micro_batch: int = Count
    grad_accum: int = Count
    schedule: Schedule = "1f1b"
    order: Order = "tp-cp-ep-dp-pp"
    comm_dtype: CommDtype = CommDtype()
    offload: Offload = Offload()
    stages: tuple[Stage, ...] = ()
    pools: tuple[PoolStages, ...] = ()

    @model_validator(mode="after")
    def _stages_can_be_listed(self) -> Self:
        _refuse_endless(self.pp, self.vpp)
        return self

    @property
    def gpus(self) -> int:
        """Ranks of the layout: ``tp * pp * cp * dp``, or the sum over pools. [1]."""
        if not self.pools:
            return self.tp * self.pp * self.cp * self.dp
        return sum(map(self.gpus_on, self.pools))

    def gpus_on(self, pool: PoolStages) -> int:
        """Ranks on one pool of the layout.

        Returns:
            ``tp * dp`` of the pool times cp times its stages. [1]
        """
        own = (pool.tp or self.tp) * (pool.dp or self.dp)
        return own * self.cp * len(pool.stages)

    def on_pool(self, pool: PoolStages) -> "Layout":
        """The layout with the degrees that hold on one of its pools.

        A step has as many micro-batches on every pool, so fewer replicas have larger
        micro-batches. States are divided over an equal share of the data ranks.
        """
        tp, dp = pool.tp or self.tp, pool.dp or self.dp
        change = {
            "tp": tp,
            "sp": self.sp and tp > 1,
            "dp": dp,
            "dp_shard": max(self.dp_shard * dp // self.dp, 1),
            "micro_batch": max(self.micro_batch * self.dp // dp, 1),
            "pools": (),
        }
        return self.model_copy(update=change)

    @property
    def stated_formats(self) -> CommDtype | None:
        """Formats on the wire; None, for the framework's own, where none are named."""
        return self.comm_dtype if "comm_dtype" in self.model_fields_set else None

    @property
    def layers_per_stage(self) -> tuple[int, ...]:
        """Layers of every virtual stage in model order. [1], shape (pp * vpp,)."""
        return tuple(stage.layers for stage in self.stages)

    def sort_key(self) -> tuple[object, ...]:
        """Fields in their order of declaration: the last tie-break of a search."""
        data = self.model_dump(mode="json", exclude={"stages", "comm_dtype", "pools"})
        del data["offload"]
        return (*data.values(), tuple(-count for count in self.layers_per_stage))


class PartialLayout(BaseModel):
    """The part of a layout that a user fixed; what is absent gets filled in."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tp: GivenDegree = None
    sp: bool | None = None
    pp: GivenDegree = None
    vpp: GivenDegree = None
    cp: GivenDegree = None
    cp_kind: CpKind | None = None
    ep: GivenDegree = None
    etp: GivenDegree = None
    dp: GivenDegree = None
    dp_shard: GivenDegree = None
    zero_stage: int | None = Field(default=None, ge=0, le=3, strict=True)
    hpz: GivenDegree = None
    micro_batch: GivenCount = None
    grad_accum: GivenCount = None
    schedule: Schedule | None = None
    order: Order | None = None
    comm_dtype: GivenFormats | None = None
    offload: Offload | None = None
    recompute: str | None = None
    """One kind for every layer; a short form of the entries of ``stages``."""
    stages: tuple[Stage, ...] | Literal["even"] | None = None
    pools: tuple[PoolStages, ...] = ()
    ran: bool | None = None
    """True of a layout that ran on this machine: evidence that its memory fits."""

    @model_validator(mode="after")
    def _stages_can_be_listed(self) -> Self:
        _refuse_endless(self.pp or 1, self.vpp or 1)
        return self

    def given(self) -> dict[str, object]:
        """Fields that the user set, by name; whether it ran is none of them."""
        return {
            name: value
            for name in type(self).model_fields
            if (value := getattr(self, name)) is not None
            and value != ()
            and name != "ran"
        }


def _refuse_endless(pp: int, vpp: int) -> None:
    if pp * vpp > MOST_LAYERS:
        raise ValueError(
            f"pp {pp} times vpp {vpp} are {pp * vpp:,} virtual stages; at most "
            f"{MOST_LAYERS:,} are listed"
        )


def even_layers(layers: int, stages: int) -> tuple[int, ...]:
    """Equal counts, the short stages last first, then first, and inwards.

    Returns:
        Layers of every virtual stage in model order. [1], shape (stages,)
    """
    full = -(-layers // stages)
    counts = [full] * stages
    inwards = [
        index
        for pair in zip(reversed(range(stages)), range(stages), strict=True)
        for index in pair
    ]
    for index in inwards[: full * stages - layers]:
        counts[index] -= 1
    return tuple(counts)
