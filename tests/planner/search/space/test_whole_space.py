"""The full space of a tiny cluster is every legal mesh, listed by other means."""

from collections.abc import Iterator
from itertools import product

import pytest
from strategies import framework, small_job
from tiny_models import TINY_MIXTRAL

from planner.cost.meshes import ORDERS
from planner.cost.pricing import Pricing
from planner.models.layers.blocks import Moe
from planner.search.space import context_kinds as context
from planner.search.space.space import enumerate_space
from planner.specs.layouts.context import CP_KINDS, PLAIN
from planner.specs.search import SearchSpec

Row = tuple[int, ...]
GPUS, SEQUENCES = 8, 8
DEGREES = (1, 2, 4, 8)
COPIES = [(zero, 1) for zero in range(4)] + [(3, hpz) for hpz in (2, 4, 8)]
"""ZeRO stages, and ranks that share a second copy of its weights. [1]"""
EXPERTS, HEADS, KEYS = 4, 8, 4
MOE = TINY_MIXTRAL | {
    "num_local_experts": EXPERTS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KEYS,
    "num_hidden_layers": 5,
}
DENSE = {k: MOE[k] for k in ("num_attention_heads", "num_key_value_heads")}
LENGTH = 64


def whole_job(name: str, *, routed: bool) -> Pricing:
    search = SearchSpec(space="full")
    config = MOE if routed else DENSE | {"num_hidden_layers": 5}
    return small_job(
        search, name=name, config=config, seq_len=LENGTH, sequences=SEQUENCES
    )


def every_row() -> Iterator[Row]:
    """All combinations of any values that fill GPUs and batch, sense or not."""
    mixed = (CP_KINDS.index(f"ulysses{u}+ring") for u in (2, 4))
    kinds = [*range(len(PLAIN)), *mixed]
    for tp, pp, cp, dp in product(DEGREES, repeat=4):
        if tp * pp * cp * dp != GPUS:
            continue
        micros = [m for m in DEGREES if SEQUENCES % (dp * m) == 0]
        inner = product((0, 1), kinds, DEGREES, DEGREES)
        outer = list(product(DEGREES, COPIES, micros, (0, 1)))
        for (sp, kind, ep, etp), of in product(inner, outer):
            shard, (zero, hpz), micro, order = of
            accum = SEQUENCES // (dp * micro)
            degrees = (tp, sp, pp, cp, kind, ep, etp, dp)
            yield (*degrees, shard, zero, hpz, micro, accum, order)


def is_legal(pricing: Pricing, row: Row) -> bool:
    """The identities of a layout, one after the other, and what its room has."""
    tp, sp, pp, cp, kind, ep, etp, dp, shard, zero, hpz, _, _, order = row
    limits, ranks = pricing.framework.limits, dp * cp
    return (
        LENGTH % (2 * cp * tp if cp > 1 else tp) == 0
        and (KEYS % tp == 0 or tp % KEYS == 0)
        and (pp == 1 or (limits.pipeline and pp <= pricing.model.layers + 2))
        and bool(sp) in (limits.sequence_parallel if tp > 1 else (False,))
        and is_exchanged(pricing, tp, cp, CP_KINDS[kind])
        and is_shared(pricing, row)
        and goes_together(pricing, row)
        and zero in limits.zero_stages
        and ranks % shard == 0
        and shard % cp == 0
        and (shard == ranks or (zero > 0 and limits.hybrid_sharding))
        and ranks % hpz == 0
        and (hpz == 1 or limits.hpz)
        and are_experts(pricing, (tp, sp, cp, ep, etp, dp))
        and ORDERS[order] in limits.orders
        and (order == 0 or (pp > 1 and dp > 1 and is_inside(pricing, row)))
    )


def is_inside(pricing: Pricing, row: Row) -> bool:
    """Stages between data ranks leave experts on the tensor and context ranks."""
    tp, _, _, cp, _, ep, etp, *_ = row
    return not pricing.model.expert_parameters or ep * etp == tp * cp


def is_shared(pricing: Pricing, row: Row) -> bool:
    """accelerate: what is split or sharded has ranks that share states."""
    tp, _, _, cp, _, _, _, dp, shard, zero, *_ = row
    if pricing.framework.name != "accelerate":
        return True
    copies = dp if zero == 0 else dp * cp // shard
    split = tp * cp > 1
    alone = zero == 0 or shard == cp
    return not (
        (tp > 1 and cp > 1)
        or (zero > 1 and shard == 1)
        or (cp > 1 and zero == 0)
        or (split and copies > 1 and alone)
    )


def goes_together(pricing: Pricing, row: Row) -> bool:
    """DeepSpeed: pipelines alone, Ulysses over shards, hpZ under ZeRO-3 alone."""
    tp, _, pp, cp, _, ep, _, _, _, zero, hpz, *_ = row
    if pricing.framework.name != "deepspeed":
        return True
    return (
        (pp == 1 or (zero < 2 and tp * cp * ep == 1))
        and (cp == 1 or (zero > 1 and tp * ep == 1))
        and (hpz == 1 or tp * ep == 1)
    )


def is_exchanged(pricing: Pricing, tp: int, cp: int, kind: str) -> bool:
    """The room has the kind, and its heads divide; one rank has no kind."""
    if cp == 1:
        return kind == "all-gather"
    has = pricing.framework.limits.cp_kinds
    if "+" not in kind:
        dealt = cp if kind == "ulysses" else 1
        return kind in has and (dealt == 1 or are_dealt(pricing, tp * dealt))
    inner = int(kind.removeprefix("ulysses").removesuffix("+ring"))
    fits = 1 < inner < cp and cp % inner == 0
    return "ulysses+ring" in has and fits and are_dealt(pricing, tp * inner)


def are_dealt(pricing: Pricing, ranks: int) -> bool:
    """Whole heads of queries and keys; DeepSpeed copies keys for more ranks."""
    copied = pricing.framework.name == "deepspeed" and ranks % KEYS == 0
    return HEADS % ranks == 0 and (KEYS % ranks == 0 or copied)


def are_experts(pricing: Pricing, row: Row) -> bool:
    """``e x D_e = t c D``; dense models and rooms without experts have one."""
    tp, sp, cp, ep, etp, dp = row
    limits = pricing.framework.limits
    moes = [kind.ffn for kind in pricing.kinds if isinstance(kind.ffn, Moe)]
    if not moes:
        return ep == etp == 1
    return (
        EXPERTS % ep == 0
        and moes[0].ffn % etp == 0
        and tp * cp * dp % (ep * etp) == 0
        and (ep == 1 or limits.expert_parallel)
        and (etp == 1 or limits.expert_tensor)
        and not (limits.experts_need_sp and ep > 1 and tp > 1 and not sp)
    )


ROOMS = [
    (name, routed)
    for name in ("megatron", "torchtitan", "accelerate", "deepspeed")
    for routed in (False, True)
]
FIRST = {("megatron", True), ("torchtitan", True), ("accelerate", False)}
"""Rooms of the first line: experts, shards, and neither pipelines nor experts."""


@pytest.mark.parametrize(
    ("name", "routed"),
    [pytest.param(*r, marks=[pytest.mark.slow] * (r not in FIRST)) for r in ROOMS],
)
def test_the_full_space_has_every_legal_mesh_once(
    name: str,
    routed: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(context, "undominated", lambda rows: list(range(len(rows))))
    workload = whole_job(name, routed=routed)
    columns = vars(enumerate_space(workload).meshes).values()
    found = list(zip(*(column.tolist() for column in columns), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == {row for row in every_row() if is_legal(workload, row)}


def test_shards_and_expert_tensor_ranks_take_every_degree() -> None:
    """Shards of 1 to 8 ranks, and experts over more ranks than the attention's."""
    meshes = enumerate_space(whole_job("megatron", routed=True)).meshes
    flat = (meshes.tp == 1) & (meshes.cp == 1) & (meshes.dp == 8)
    assert set(meshes.dp_shard[flat].tolist()) == {1, 2, 4, 8}
    assert set(meshes.etp[flat].tolist()) == {1, 2, 4, 8}
    assert framework("megatron").limits.hybrid_sharding
