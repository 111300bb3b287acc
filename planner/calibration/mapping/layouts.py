"""The layout of a measured row, complete: rules fill what the row leaves open."""

import re
from dataclasses import dataclass

from planner.calibration.mapping.software import StackRule
from planner.calibration.notes.recompute import stages_of
from planner.calibration.notes.rules import rules
from planner.calibration.rows.rows import Row
from planner.calibration.rows.unsupported import UnsupportedError
from planner.calibration.rows.vocabulary import RecomputeWords
from planner.specs.layouts.context import CpKind
from planner.specs.layouts.layout import (
    Offload,
    PartialLayout,
    even_layers,
)

ZERO_OF = {
    "none": 0,
    "ddp": 0,
    "distributed-optimizer": 1,
    "zero1": 1,
    "zero2": 2,
    "zero3": 3,
    "fsdp": 3,
    "fsdp2": 3,
    "megatron-fsdp": 3,
    "hsdp": 3,
}
"""ZeRO stage of a word of sharding, parameters gathered again in backward."""


_ROUNDED = 0.03
"""Relative distance of a batch from a batch that divides, at most. [1]"""


@dataclass(frozen=True)
class Placed:
    """A complete layout."""

    layout: PartialLayout
    flags: tuple[str, ...]
    """Assumptions that the row needed. [text]"""


@dataclass(frozen=True)
class _Batch:
    """Micro-batch and gradient accumulation of a batch."""

    micro: int
    accum: int
    flags: tuple[str, ...]


def layout_of(row: Row, layers: int, rule: StackRule, node: int) -> Placed:
    """The layout that a row ran.

    Raises:
        UnsupportedError: The batch does not divide, or stages do not add up.
    """
    lay = row.layout
    dp = lay.dp or row.hardware.gpus // (lay.tp * lay.pp * lay.cp)
    batch = _batch(row, dp)
    vpp, deep = _chunks(row, layers)
    counts = _counts(row, layers, lay.pp * vpp)
    zero, shard, sharded = _sharding(row, rule, dp * lay.cp, node)
    kind, other = _cp_kind(row, rule)
    sp, silent = _sequence_parallel(row, rule)
    layout = PartialLayout(
        tp=lay.tp,
        sp=sp,
        pp=lay.pp,
        vpp=vpp,
        cp=lay.cp,
        cp_kind=kind,
        ep=lay.ep or 1,
        etp=_expert_tensor(row, rule),
        dp=dp,
        dp_shard=shard,
        zero_stage=zero,
        micro_batch=batch.micro,
        grad_accum=batch.accum,
        schedule="interleaved" if vpp > 1 else "1f1b",
        order=_order(row, rule),
        offload=_offload(row, layers),
        stages=stages_of(counts, row.normalised.recompute, lay.pp),
    )
    return Placed(layout, (*batch.flags, *deep, *sharded, *silent, *other))


def interleaved(
    placed: PartialLayout, vpp: int, words: RecomputeWords
) -> PartialLayout:
    """A layout with the layers evenly on another number of virtual stages."""
    assert isinstance(placed.stages, tuple)
    pp, layers = placed.pp or 1, sum(stage.layers for stage in placed.stages)
    changed = {
        "vpp": vpp,
        "schedule": "interleaved" if vpp > 1 else "1f1b",
        "stages": stages_of(even_layers(layers, pp * vpp), words, pp),
    }
    return placed.model_copy(update=changed)


def recomputing(placed: PartialLayout, words: RecomputeWords) -> PartialLayout:
    """A layout with another recomputation."""
    assert isinstance(placed.stages, tuple)
    counts = [stage.layers for stage in placed.stages]
    return placed.model_copy(
        update={"stages": stages_of(counts, words, placed.pp or 1)}
    )


def _batch(row: Row, dp: int) -> _Batch:
    """Micro-batch and accumulation: stated, derived from each other, or 1."""
    lay, total = row.layout, row.job.global_batch
    flags = []
    if total is None:
        total = dp * (lay.micro_batch or 1) * (lay.grad_accum or 1)
        flags.append(f"global batch assumed, {total}")
    micro = lay.micro_batch
    if micro is None:
        micro = max(total // (dp * lay.grad_accum), 1) if lay.grad_accum else 1
    whole = max(round(total / (dp * micro)), 1) * dp * micro
    if abs(whole / total - 1) > _ROUNDED:
        raise UnsupportedError(
            f"layout: a batch of {total} sequences does not divide over dp {dp} "
            f"times micro-batch {micro}"
        )
    if whole != total:
        flags.append(f"batch {whole} priced for {total}, which does not divide")
    accum = whole // (dp * micro)
    if lay.grad_accum not in {None, accum}:
        flags.append(f"accumulation {accum} follows from the batch")
    return _Batch(micro, accum, tuple(flags))


def _chunks(row: Row, layers: int) -> tuple[int, tuple[str, ...]]:
    """Virtual stages per rank; by rule where the row says interleaved alone."""
    lay = row.layout
    if lay.vpp is not None or lay.pp == 1:
        return (lay.vpp or 1 if lay.pp > 1 else 1), ()
    if row.normalised.schedule.kind != "interleaved":
        return 1, ()
    each = rules().interleaving.layers_per_virtual_stage
    depth = max(-(-layers // (lay.pp * each)), 1)
    return depth, (f"interleaving depth assumed, {depth}",)


def _counts(row: Row, layers: int, stages: int) -> tuple[int, ...]:
    """Layers of every virtual stage: stated, or even with short ends.

    An embedding or a head that counts as a layer takes one from its stage.
    """
    words = row.normalised.pipeline
    if len(words.stages) == stages and sum(words.stages) == layers:
        return words.stages
    if words.stages:
        raise UnsupportedError(
            f"layout: stages of {sum(words.stages)} layers in {len(words.stages)} "
            f"virtual stages; the model has {layers}, pp * vpp is {stages}"
        )
    ends = [word in words.count_as_layer for word in ("embedding", "head")]
    if not any(ends):
        return even_layers(layers, stages)
    counts = list(even_layers(layers + sum(ends), stages))
    counts[0] -= ends[0]
    counts[-1] -= ends[1]
    return tuple(counts)


def _sharding(
    row: Row, rule: StackRule, ranks: int, node: int
) -> tuple[int, int | None, tuple[str, ...]]:
    """ZeRO stage, and the ranks that share one copy; None for all."""
    words = row.normalised.sharding
    if words is None:
        kind = _habit(rule) if ranks > 1 else "none"
        return ZERO_OF[kind], None, (f"sharding assumed, {kind}",)
    stage = ZERO_OF[words.kind]
    if stage == 3 and not words.reshard_after_forward:
        stage = 2
    group = words.group or (node if words.kind == "hsdp" else None)
    whole = group is None or group >= ranks or stage == 0
    return stage, None if whole else group, ()


def _habit(rule: StackRule) -> str:
    """Sharding of a stack's states over replicas where a row is silent. [text]."""
    kinds = rules().unstated_sharding.kinds
    return next((kind for kind, own in kinds.items() if rule.stack in own), "none")


def _sequence_parallel(row: Row, rule: StackRule) -> tuple[bool, tuple[str, ...]]:
    """Sequence parallelism: stated, or the stack's habit."""
    lay = row.layout
    if lay.tp == 1:
        return False, ()
    if lay.sp is not None:
        return lay.sp, ()
    habit = rule.stack not in rules().sequence_parallel.without
    return habit, (f"sequence parallelism assumed {'on' if habit else 'off'}",)


def _expert_tensor(row: Row, rule: StackRule) -> int:
    """Tensor degree of the experts: stated, or the stack's habit."""
    lay = row.layout
    if row.model.moe is None:
        return 1
    if lay.etp is not None:
        return lay.etp
    whole = rule.room != "megatron" or rule.stack in rules().expert_tensor.one
    return 1 if whole else lay.tp


def _cp_kind(row: Row, rule: StackRule) -> tuple[CpKind | None, tuple[str, ...]]:
    """Exchange of keys between context ranks, where stated; else the software's.

    More ranks than heads cannot divide the heads: a ring joins such groups.
    """
    lay = row.layout
    text = lay.text("cp_comm") or row.job.framework.lower()
    if "p2p" in text or "ring" in text:
        return "ring", ()
    if re.search(r"a2a|ulysses|all-?to-?all", text):
        if row.model.heads % (lay.tp * lay.cp) == 0:
            return "ulysses", ()
        return "ring", ("ulysses priced as ring: heads do not divide",)
    return ("all-gather" if "gather" in text else rule.cp_kind), ()


def _order(row: Row, rule: StackRule) -> str:
    """Rank order: stated, the stack's, or data parallel inside pipeline."""
    text = row.layout.text("rank_order").replace("_", "-")
    if text:
        inside = text.find("pp") < text.find("dp")
        return "tp-cp-ep-pp-dp" if inside else "tp-cp-ep-dp-pp"
    return rule.order or "tp-cp-ep-dp-pp"


def _offload(row: Row, layers: int) -> Offload | None:
    """Fractions in host memory; offloaded checkpoints are activations."""
    words = row.normalised.offload
    kept = words.activation_layers / layers
    share = max(words.activations, words.checkpoints, min(kept, 1.0))
    optimizer = max(words.optimizer, float(row.normalised.optimizer.on_cpu))
    sharding = row.normalised.sharding
    shards = sharding is not None and ZERO_OF[sharding.kind] > 1
    kept_out = Offload(
        optimizer=optimizer,
        parameters=words.parameters,
        gradients=words.gradients if shards else 0.0,
        activations=share,
    )
    return None if kept_out == Offload() else kept_out
