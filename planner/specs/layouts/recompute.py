"""Modules of a layer that a framework recomputes one by one, and their names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict

Where = Literal["any", "latent", "routed", "dense"]
"""Layers in which something holds: all of them, or those whose attention is latent,
whose feed-forward half routes tokens, or whose feed-forward half is dense."""
Operator = Literal["rotation", "activation", "expert_activation", "permute"]
"""A memory-bound operator of a layer, other than its norms."""
Exchange = Literal["ffn", "experts"]
"""Collectives of one half: over tensor ranks, over the ranks of the experts."""

JOINER = "+"
"""Separator of the modules in a combination's name. [text]"""
BLOCK_JOINER = ":"
"""Separator of a kind and the layers of a virtual stage that have it. [text]"""
BLOCK_KINDS = ("full", "none")
"""Kinds of the first layers of a virtual stage under a block, and of the others."""


class RecomputeModule(BaseModel):
    """Tensors of a layer dropped, and work run again, where one module is recomputed.

    Dropped tensors exist again while the backward of their half of the layer runs. A
    dropped output of a norm runs that norm again.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    drops: dict[str, Where]
    """Saved tensors that are not kept, and the layers in which they are not."""
    gemms: tuple[str, ...] = ()
    """Products that run again, by name. [text]"""
    operators: tuple[Operator, ...] = ()
    """Memory-bound operators that run again. [text]"""
    exchanges: tuple[Exchange, ...] = ()
    """Collectives that run again. [text]"""
    core: bool = False
    """The attention core runs again."""
    not_under_fp8: tuple[str, ...] = ()
    """Scaling recipes of fp8 that refuse the module. [text]"""
    contains: tuple[str, ...] = ()
    """Modules inside this one: to name them beside it changes nothing. [text]"""
    also: str | None = None
    """Name of the older setting that recomputes this module alone. [text]"""
    source: str


@dataclass(frozen=True)
class RecomputeKind:
    """Tensors that one kind of activation recompute keeps, and work that it runs again.

    Fractions are of the forward pass of one layer.
    """

    name: str
    keeps: dict[str, float] = field(default_factory=dict)
    """Share of a saved tensor that stays in memory, by name. [1]"""
    keeps_others: float = 0.0
    """Share that stays of every saved tensor without a name in ``keeps``. [1]"""
    gemms: dict[str, float] = field(default_factory=dict)
    """Share of a GEMM's forward run again, by name; ``*`` for all others. [1]"""
    core: float = 0.0
    """Share of the attention core run again. [1]"""
    memory_ops: float = 0.0
    """Share of the memory-bound operators run again. [1]"""
    collectives: float = 0.0
    """Share of the forward collectives inside the layer run again. [1]"""
    rebuilds_layer: bool = False
    """The whole layer's activations exist again during its backward."""
    drops_key: bool = False
    """The key projection is neither kept nor free: it runs again."""
    keeps_output: bool = False
    """The output of the last GEMM stays, full width on every tensor rank."""
    stops_early: bool = False
    """The layer's last GEMM, and the collective behind it, do not run again where
    nothing keeps what they make."""
    modules: tuple[RecomputeModule, ...] = ()
    """Modules of a combination: they drop, rebuild and run again more than ``gemms``
    and ``core``, which already include the modules' share."""

    def kept(self, tensor: str) -> float:
        """Share of a saved tensor that stays where no module drops it. [1]."""
        return self.keeps.get(tensor, self.keeps_others)


def block_of(name: str) -> int:
    """Layers of every virtual stage that a kind such as `full:2` recomputes.

    Returns:
        Number of layers; 0 for a kind that is no block. [1]
    """
    kind, _, size = name.partition(BLOCK_JOINER)
    whole = size.isascii() and size.isdigit() and str(int(size)) == size
    return int(size) if kind == BLOCK_KINDS[0] and whole else 0


def block_name(size: int) -> str:
    """The kind that recomputes the first layers of every virtual stage in full."""
    return f"{BLOCK_KINDS[0]}{BLOCK_JOINER}{size}"


def parts_of_kind(name: str) -> tuple[str, ...]:
    """Modules that a combination such as `layernorm+moe_act` names."""
    return tuple(name.split(JOINER))


def combination(
    modules: Mapping[str, RecomputeModule], name: str
) -> dict[str, RecomputeModule] | None:
    """The modules of a combination, where the name is its only spelling.

    A name has each module once, in the order of the framework's list, none inside
    another. A module alone that an older setting names has that name only.
    """
    parts = parts_of_kind(name)
    chosen = {part: modules[part] for part in modules if part in parts}
    inside = {part for module in chosen.values() for part in module.contains}
    if tuple(chosen) != parts or inside & set(chosen):
        return None
    alone = len(parts) == 1 and chosen[name].also is not None
    return None if alone else chosen


def combinations_of(modules: Mapping[str, RecomputeModule]) -> tuple[str, ...]:
    """Names of every combination, fewer modules first."""
    names: list[tuple[str, ...]] = [()]
    for part in modules:
        names += [(*name, part) for name in names]
    ordered = sorted((JOINER.join(name) for name in names if name), key=_size)
    return tuple(name for name in ordered if combination(modules, name))


def _size(name: str) -> int:
    return len(parts_of_kind(name))
