"""The rules that every layout obeys: one function each, one record per breach."""

import re
from collections.abc import Callable

from planner.cost.workload import Workload
from planner.models.layers.blocks import Mlp, Moe, ScanBlock
from planner.schedules.placement import V_SHAPED, placement
from planner.specs.layouts.context import cp_family
from planner.specs.layouts.layout import Layout, Stage
from planner.verify.breach import Breach, Breaches, Broken
from planner.verify.fleet import ranks
from planner.verify.limits import (
    axis_limits,
    format_limits,
    number_limit,
    setting_limits,
)
from planner.verify.offload import offload_breaches
from planner.verify.recompute import recompute_breaches
from planner.verify.writable import writer_breaches

WHOLE_HEADS = frozenset({"ring", "all-gather", "gathered-ring"})
"""Kinds of context parallelism that deal no heads out. [text]"""
DEALT = re.compile(r"ulysses(\d+)\+ring")
"""Kinds that deal heads out in groups of so many ranks."""


def rule_violations(workload: Workload, layout: Layout) -> list[Breach]:
    """Rules of model, framework, cluster and user that a layout breaks.

    Returns:
        One record per broken rule; what several pools break alike, once. [-]
    """
    views = [layout.on_pool(pool) for pool in layout.pools] or [layout]
    of_ranks = (*ranks(workload, layout), *number_limit(workload, layout, "gpus"))
    every = [Breach.of(layout, *broken) for broken in of_ranks]
    for view in views:
        broken = (said for rule in RULES for said in rule(workload, view))
        every += [Breach.of(view, *said) for said in broken]
        every += [said for rule in WITH_VALUES for said in rule(workload, view)]
    first: dict[tuple[str, str], Breach] = {}
    for breach in every:
        first.setdefault((breach.field, breach.sentence), breach)
    return list(first.values())


def _tensor(workload: Workload, layout: Layout) -> Broken:
    """Heads, KV heads and inner widths divide over the tensor ranks."""
    tp = layout.tp
    for kind in workload.kinds:
        heads = kind.attention.heads
        groups = getattr(kind.attention, "kv_heads", heads)
        dense = kind.ffn if isinstance(kind.ffn, Mlp) else kind.ffn.shared
        if heads % tp:
            yield "tp", f"tp {tp} does not divide the {heads} heads of {kind.name}"
        elif groups % tp and tp % groups:
            yield (
                "tp",
                f"tp {tp} neither divides nor is a multiple of the {groups} KV "
                f"heads of {kind.name}",
            )
        if dense.ffn % tp:
            words = f"tp {tp} does not divide the ffn width {dense.ffn} of {kind.name}"
            yield "tp", words


def _sequence(workload: Workload, layout: Layout) -> Broken:
    """Zig-zag chunks and tensor splits divide the sequence."""
    tp, cp, length = layout.tp, layout.cp, workload.training.seq_len
    chunks = tp * (2 * cp if cp > 1 else 1)
    if length % chunks:
        words = f"a sequence of {length} tokens does not split into {chunks} chunks"
        yield "cp" if cp > 1 else "tp", words


def _context(workload: Workload, layout: Layout) -> Broken:
    """Every kind keeps its heads, or deals them out in groups that divide."""
    cp, kind = layout.cp, layout.cp_kind
    if cp == 1 or kind in WHOLE_HEADS:
        return
    groups = DEALT.fullmatch(kind)
    dealt = int(groups[1]) if groups else cp
    if groups and (cp % dealt or dealt == cp):
        words = f"{kind} needs groups of {dealt} that divide cp {cp}, and two or more"
        yield "cp_kind", words
    if not groups and kind != "ulysses":
        yield "cp_kind", f"no rule is known for context ranks of kind {kind}"
    else:
        yield from _dealt(workload, layout, dealt)


def _dealt(workload: Workload, layout: Layout, dealt: int) -> Broken:
    """Ulysses shares out whole heads, of queries and of keys."""
    kind, ranks = layout.cp_kind, layout.tp * dealt
    copies = workload.framework.limits.ulysses_copies_keys
    for layer in workload.kinds:
        heads = layer.attention.heads
        keys = getattr(layer.attention, "kv_heads", heads)
        if heads % ranks:
            words = f"{kind} needs {heads} heads to divide by tp * {dealt} = {ranks}"
            yield "cp_kind", words
        elif keys % ranks and not (copies and ranks % keys == 0):
            yield (
                "cp_kind",
                f"{kind} needs {keys} heads of keys to divide by tp * {dealt} = "
                f"{ranks}",
            )


def _scans(workload: Workload, layout: Layout) -> Broken:
    """Ranks share out whole heads of scans, and no compressed keys, or there is one."""
    if layout.cp > 1:
        for kind in workload.kinds:
            if not kind.attention.splits_sequence:
                words = f"cp {layout.cp} cannot share out {kind.name}'s compressed keys"
                yield "cp", words
    ranks, name = layout.tp * layout.cp, workload.framework.name
    split = "cp" if layout.cp > 1 else "tp"
    for kind in workload.kinds:
        if not isinstance(kind.attention, ScanBlock) or ranks == 1:
            continue
        if not workload.framework.limits.splits_scans:
            words = f"{name} splits no scan over tp * cp = {ranks}, as {kind.name} has"
            yield split, words
        elif not kind.attention.shared_out(layout.tp, layout.cp):
            heads = kind.attention.heads
            yield (
                split,
                f"tp * cp = {ranks} cannot share out the {heads} heads of {kind.name}",
            )


def _batch(workload: Workload, layout: Layout) -> Broken:
    """The micro-batches of all replicas are the batch."""
    dp, micro, accum = layout.dp, layout.micro_batch, layout.grad_accum
    if micro % workload.training.together:
        words = f"micro_batch = {micro} is no whole number of pairs, of two sequences"
        yield "micro_batch", words
    total = dp * micro * accum
    if total != workload.sequences:
        yield (
            "grad_accum",
            f"dp * micro_batch * grad_accum = {dp} * {micro} * {accum} = {total} is "
            f"not the batch of {workload.sequences} sequences",
        )


def _sharding(workload: Workload, layout: Layout) -> Broken:
    """Shard groups hold whole context groups and divide the data ranks."""
    shard, ranks = layout.dp_shard, layout.dp * layout.cp
    if ranks % shard:
        yield "dp_shard", f"dp_shard {shard} does not divide dp * cp = {ranks}"
    elif shard % layout.cp:
        yield "dp_shard", f"dp_shard {shard} is not a multiple of cp {layout.cp}"
    elif shard < ranks and layout.zero_stage == 0:
        words = f"dp_shard {shard} under dp * cp = {ranks} shards nothing at ZeRO 0"
        yield "dp_shard", words
    elif shard < ranks and not workload.framework.limits.hybrid_sharding:
        words = f"{workload.framework.name} shards over all {ranks} ranks, not {shard}"
        yield "dp_shard", words


def _second_copy(_: Workload, layout: Layout) -> Broken:
    """A second copy of the weights is ZeRO 3's, in equal groups of data ranks."""
    hpz, ranks, zero = layout.hpz, layout.dp * layout.cp, layout.zero_stage
    if ranks % hpz:
        yield "hpz", f"hpz {hpz} does not divide dp * cp = {ranks}"
    if hpz > 1 and zero != 3:
        words = f"hpz {hpz} copies the weights that ZeRO 3 shards, not ZeRO {zero}'s"
        yield "hpz", words


def _whole_replicas(workload: Workload, layout: Layout) -> Broken:
    """Shard groups and split replicas have the ranks that the framework demands."""
    limits, zero = workload.framework.limits, layout.zero_stage
    name = workload.framework.name
    if limits.shards_need_ranks and zero >= 2 and layout.dp_shard == 1:
        words = f"{name} has ZeRO {zero} only where two or more ranks share the states"
        yield "dp_shard", words
    if not limits.split_replicas_need_shards:
        return
    if layout.cp > 1 and zero < 2:
        words = f"{name} has cp {layout.cp} at ZeRO 2 and 3 only, not {zero}"
        yield "zero_stage", words
    copies = layout.dp if zero < 2 else layout.dp * layout.cp // layout.dp_shard
    sharded = zero >= 2 and layout.dp_shard > layout.cp
    if copies > 1 and layout.tp * layout.cp > 1 and not sharded:
        words = f"{name} shards the replicas of a model that tp or cp splits"
        yield "zero_stage" if zero < 2 else "dp_shard", words


def _framework(workload: Workload, layout: Layout) -> Broken:
    """The framework supports every choice."""
    limits = workload.framework.limits
    choices: list[tuple[str, object, tuple[object, ...]]] = [
        ("zero_stage", layout.zero_stage, limits.zero_stages),
        ("schedule", layout.schedule, limits.schedules),
        ("order", layout.order, limits.orders),
        ("sp", layout.sp, limits.sequence_parallel if layout.tp > 1 else (False,)),
    ]
    if layout.cp > 1 and limits.context_parallel:
        choices.append(("cp_kind", cp_family(layout.cp_kind), limits.cp_kinds))
    for name, has in (
        ("etp", limits.expert_tensor),
        ("ep", limits.expert_parallel),
        ("pp", limits.pipeline),
        ("cp", limits.context_parallel),
        ("hpz", limits.hpz),
    ):
        if not has:
            choices.append((name, getattr(layout, name), (1,)))
    for name, given, allowed in choices:
        if given not in allowed:
            shown = ", ".join(map(str, allowed))
            yield (
                name,
                f"{workload.framework.on_stack} at tp {layout.tp} has {name} {shown}, "
                f"not {given}",
                shown,
            )


def _together(workload: Workload, layout: Layout) -> Broken:
    """Choices that the framework supports only apart are not made together."""
    its, offload = layout, layout.offload
    moved = (offload.optimizer, offload.parameters, offload.gradients)
    given = {
        "tp": its.tp > 1,
        "pp": its.pp > 1,
        "cp": its.cp > 1,
        "ep": its.ep > 1,
        f"ZeRO {its.zero_stage}": True,
        "hpz": its.hpz > 1,
        "offload": any((*moved, offload.activations)),
    }
    axes = ("tp", "pp", "cp", "ep", "hpz")
    shown = {axis: f"{axis} {getattr(its, axis)}" for axis in axes}
    shown |= {f"ZeRO {its.zero_stage}": f"zero_stage {its.zero_stage}"}
    for one, other in workload.framework.limits.apart:
        if given.get(one) and given.get(other):
            both = f"{shown.get(one, one)} with {shown.get(other, other)}"
            field = other if other in (*axes, "offload") else "zero_stage"
            yield field, f"{workload.framework.name} has no {both}"


def _interleaving(_: Workload, layout: Layout) -> Broken:
    """Chunks need a pipeline, whole groups of micro-batches and the schedule."""
    pp, vpp, accum = layout.pp, layout.vpp, layout.grad_accum
    if layout.schedule in V_SHAPED:
        yield from _v_shaped(layout)
        return
    if vpp == 1:
        if layout.schedule == "interleaved":
            yield "vpp", "the schedule interleaved needs vpp > 1, here vpp is 1"
        return
    if layout.schedule != "interleaved":
        words = f"vpp {vpp} needs the schedule interleaved, not {layout.schedule}"
        yield "schedule", words
    if pp == 1:
        yield "vpp", f"vpp {vpp} interleaves over pp > 1, here pp is 1"
    elif accum % pp:
        yield (
            "grad_accum",
            f"vpp {vpp} needs grad_accum % pp == 0, not {accum} % {pp} = {accum % pp}",
        )


def _v_shaped(layout: Layout) -> Broken:
    """A V has two chunks a rank, and micro-batches that fill it."""
    name, pp, accum = layout.schedule, layout.pp, layout.grad_accum
    if layout.vpp != 2:
        yield "vpp", f"{name} has two chunks a rank, not vpp {layout.vpp}"
    if name == "dualpipe" and (pp % 2 or accum % 2):
        words = f"dualpipe needs even pp and grad_accum, not {pp} and {accum}"
        yield "pp" if pp % 2 else "grad_accum", words
    if name != "zb-v" and accum < 2 * pp:
        yield "grad_accum", f"{name} needs grad_accum >= 2 pp = {2 * pp}, not {accum}"


def _stages(workload: Workload, layout: Layout) -> Broken:
    """Every layer is on one stage; only the ends' stages may be empty."""
    layers, given = workload.model.layers, layout.layers_per_stage
    stages = placement(layout.schedule, layout.pp, layout.vpp).depth
    if len(given) != stages:
        needed = "pp" if layout.schedule == "dualpipe" else "pp * vpp"
        words = f"{len(given)} stages are given, {needed} = {stages} are needed"
        yield "stages", words
    if sum(given) != layers:
        yield "stages", f"the stages hold {sum(given)} layers, the model has {layers}"
    for index, count in enumerate(given):
        if count < (0 if len(given) > 1 and index in (0, len(given) - 1) else 1):
            words = f"virtual stage {index} of {len(given)} holds {count} layers"
            yield "stages", words
    for index, stage in enumerate(layout.stages):
        yield from _ranges(index, stage)


def _ranges(index: int, stage: Stage) -> Broken:
    """Recompute ranges follow each other from the first layer to the last."""
    bounds = [0, *(edge for r in stage.recompute for edge in (r.start, r.stop))]
    tiled = all(a == b for a, b in zip(bounds[::2], bounds[1::2], strict=False))
    ends = bounds[-1] == stage.layers or not stage.recompute
    if not (tiled and ends and bounds == sorted(bounds)):
        spans = ", ".join(f"{r.start}-{r.stop}" for r in stage.recompute)
        where = f"{stage.layers} layers of virtual stage {index}"
        yield "stages.recompute", f"recompute ranges {spans} do not tile {where}"


def _experts(workload: Workload, layout: Layout) -> Broken:
    """Experts divide over expert ranks, which lie inside the ranks of a stage."""
    moes = [kind.ffn for kind in workload.kinds if isinstance(kind.ffn, Moe)]
    ep, etp = layout.ep, layout.etp
    if not moes:
        if ep * etp > 1:
            words = f"ep {ep} and etp {etp} on a model without experts"
            yield "ep" if ep > 1 else "etp", words
        return
    for moe in moes:
        if moe.experts % ep:
            yield "ep", f"ep {ep} does not divide {moe.experts} experts"
        if moe.ffn % etp:
            yield "etp", f"etp {etp} does not divide the expert width {moe.ffn}"
    yield from _expert_ranks(layout)
    need = workload.framework.limits.experts_need_sp and min(ep, layout.tp) > 1
    if need and not layout.sp:
        yield "sp", f"ep {ep} with tp {layout.tp} needs sp"


def _expert_ranks(layout: Layout) -> Broken:
    """Expert groups tile a stage's ranks, or its tensor and context ranks."""
    held = layout.ep * layout.etp
    inner = layout.tp * layout.cp
    if inner * layout.dp % held:
        words = f"ep * etp = {held} does not divide tp * cp * dp = {inner * layout.dp}"
        yield "ep" if layout.ep > 1 else "etp", words
    elif layout.order == "tp-cp-ep-pp-dp" and layout.pp > 1 and held != inner:
        words = f"order {layout.order} needs ep * etp = {held} to be tp * cp = {inner}"
        yield "order", words


RULES: tuple[Callable[[Workload, Layout], Broken], ...] = (
    _tensor,
    _sequence,
    _context,
    _scans,
    _batch,
    _sharding,
    _second_copy,
    _whole_replicas,
    _framework,
    _together,
    recompute_breaches,
    _interleaving,
    _stages,
    _experts,
    axis_limits,
    offload_breaches,
)
"""Rules about a field of the layout, in the order of the reported sentences."""
WITH_VALUES: tuple[Callable[[Workload, Layout], Breaches], ...] = (
    setting_limits,
    format_limits,
    writer_breaches,
)
"""Rules whose records have values of their own, told after the others."""
