"""Limits of a training framework, which the search never leaves."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

RecomputeScope = Literal["plan", "virtual-stage"]
ONE_CHUNK = frozenset({"1f1b", "gpipe", "zb-h1"})
"""Schedules of one chunk a rank. [text]"""


@dataclass(frozen=True)
class Limits:
    """Features that a framework can express; the search never leaves them."""

    zero_stages: tuple[int, ...]
    default_zero_stage: int
    """ZeRO stage of a layout that names none; the next field is for pipelines. [1]"""
    default_zero_stage_pipelined: int
    schedules: tuple[str, ...]
    cp_kinds: tuple[str, ...]
    orders: tuple[str, ...]
    recompute: tuple[str, ...]
    """Kinds of recompute of the default space; see also ``recompute_modules``."""
    recompute_scope: RecomputeScope
    hybrid_sharding: bool
    sequence_parallel: tuple[bool, ...]
    """Legal values of ``sp`` where tp > 1; tp = 1 always has it off."""
    expert_tensor: bool
    """True where etp may differ from 1."""
    experts_need_sp: bool
    source: str
    recomputes_split: bool = True
    """True where a schedule that splits the backward may recompute activations."""
    pipeline: bool = True
    """True where pp may differ from 1."""
    expert_parallel: bool = True
    """True where ep may differ from 1."""
    context_parallel: bool = True
    """True where cp may differ from 1."""
    hpz: bool = False
    """True where hpz may differ from 1 at ZeRO 3: a second copy of the weights, divided
    over so many neighbouring ranks."""
    shards_need_ranks: bool = False
    """ZeRO 2 and 3 exist only where more than one rank shares the states."""
    split_replicas_need_shards: bool = False
    """Replicas of a model that tp or cp splits must share states among each other;
    cp itself needs ZeRO 2 or 3."""
    precisions: tuple[str, ...] = ("bf16", "fp16")
    """Compute formats that a search may choose from."""
    ulysses_copies_keys: bool = False
    """Ulysses may deal to more ranks than there are heads of keys, which it copies."""
    splits_scans: bool = False
    """Tensor and context ranks share out the heads of layers with a scan; else such a
    model has neither."""
    pool_degrees: Literal["same", "own"] = "same"
    """Degrees tp and dp of a mixed fleet: the same on all pools, or each pool's own."""
    offload: frozenset[str] = frozenset()
    """Categories that may lie in host memory, with + between those that only move
    together; any union of them can be chosen."""
    offload_least_zero: dict[str, int] = field(default_factory=dict)
    """ZeRO stage that a category needs beyond being sharded, to be offloaded. [1]"""
    offload_in_parts: dict[str, int] = field(default_factory=dict)
    """Categories of which any share can be offloaded, not only all, by the ZeRO stage
    that a share needs. [1]"""
    offloads_activations_alone: bool = False
    """Activations are offloaded only without a pipeline and without recompute."""
    apart: tuple[tuple[str, str], ...] = ()
    """Choices that exist each alone, never both, in the words of :func:`chosen`."""

    recompute_modules: tuple[str, ...] = ()
    """Combinations of the recipe's modules that may be recomputed. [text]"""

    recompute_recipes: tuple[str, ...] = ()
    """Combinations of the default space, which published recipes have. [text]"""

    recompute_blocks: bool = False
    """True where the first layers of every virtual stage alone may be recomputed in
    full, the same number on each."""

    @property
    def several_chunks(self) -> bool:
        """True where a rank may have several virtual stages."""
        return self.pipeline and bool(set(self.schedules) - ONE_CHUNK)

    def default_zero(self, *, pp: int, ranks: int) -> int:
        """ZeRO stage of a layout that names none."""
        if self.shards_need_ranks and ranks == 1:
            return 0
        usual = self.default_zero_stage_pipelined if pp > 1 else self.default_zero_stage
        return usual if usual in self.zero_stages else max(self.zero_stages)

    def offload_least(self, name: str, share: float) -> int:
        """ZeRO stage that the framework needs to offload a share of a category.

        Returns:
            The stage; a share below 1 may need a higher stage. [1]
        """
        part = self.offload_in_parts.get(name, 0) if share < 1 else 0
        return max(self.offload_least_zero.get(name, 0), part)

    def clash(self, choices: Collection[str]) -> str | None:
        """Two choices that the framework does not have together, if any.

        Args:
            choices: Choices of a layout, as :func:`chosen` names them. [text]

        Returns:
            The rule that names both; None where all go together. [text]
        """
        for one, other in self.apart:
            if one in choices and other in choices:
                return f"the framework has no {one} with {other}"
        return None

    def shards(
        self, *, zero: int, tp: int, cp: int, shard: int, replicas: int
    ) -> str | None:
        """Rule that the ranks that share states break, if any.

        Returns:
            The broken rule, or None. [text]
        """
        if self.shards_need_ranks and zero > 1 and shard == 1:
            return "ZeRO 2 and 3 need two ranks that share states"
        if not self.split_replicas_need_shards:
            return None
        if cp > 1 and zero < 2:
            return "cp needs ZeRO 2 or 3"
        alone = zero < 2 or shard == cp
        if max(tp, cp) > 1 and replicas > 1 and alone:
            return "replicas that tp or cp splits need shards"
        return None


def chosen(
    *,
    degrees: dict[str, int],
    zero: int | None = None,
    offload: bool = False,
) -> frozenset[str]:
    """Choices of a layout, in the words of :attr:`Limits.apart`.

    Args:
        degrees: Axes by name; those above 1 count. [1]
        zero: ZeRO stage; None where it is not chosen yet. [1]
        offload: True where anything lies on the host.
    """
    found = {axis for axis, degree in degrees.items() if degree > 1}
    words = {f"ZeRO {zero}": zero is not None, "offload": offload}
    return frozenset(found | {word for word, holds in words.items() if holds})
