"""The rules that every layout obeys: one function each, one sentence per breach."""

from collections.abc import Callable, Iterator

from planner.cost.workload import Workload
from planner.models.blocks import Mlp, Moe
from planner.schedules.placement import V_SHAPED, placement
from planner.specs.layout import Layout, Offload, Stage
from planner.specs.search import AXES, SETTINGS

Sentences = Iterator[str]
NO_RECOMPUTE = "none"
"""Kind of the layers of a stage that names no recompute. [text]"""


def rule_violations(workload: Workload, layout: Layout) -> list[str]:
    """A legal layout obeys its model, framework, cluster and its user's limits.

    Args:
        workload: The job.
        layout: A complete layout.

    Returns:
        One sentence per broken rule. [text]
    """
    return [sentence for rule in RULES for sentence in rule(workload, layout)]


def stage_kinds(stage: Stage) -> tuple[str, ...]:
    """Recompute kind of every layer of a virtual stage, in model order.

    Args:
        stage: A virtual stage; without ranges nothing is recomputed.

    Returns:
        Kinds. [text], shape (layers,)
    """
    if not stage.recompute:
        return (NO_RECOMPUTE,) * stage.layers
    spans = ((part.kind,) * (part.stop - part.start) for part in stage.recompute)
    return tuple(kind for span in spans for kind in span)


def _kinds_used(layout: Layout) -> list[str]:
    """Recompute kinds in order of first use."""
    used = (kind for stage in layout.stages for kind in stage_kinds(stage))
    return list(dict.fromkeys(used))


def _ranks(workload: Workload, layout: Layout) -> Sentences:
    """The degrees fill the cluster, and the cluster's nodes."""
    degrees = (layout.tp, layout.pp, layout.cp, layout.dp)
    if layout.gpus != workload.gpus:
        factors = " * ".join(map(str, degrees))
        yield (
            f"tp * pp * cp * dp = {factors} = {layout.gpus} is not the cluster's "
            f"{workload.gpus} GPUs"
        )
    cluster = workload.topology.cluster
    node = cluster.node.gpus_per_node
    if layout.gpus % node and not cluster.spec.partial:
        yield f"{layout.gpus} GPUs are not whole nodes of {node}"


def _tensor(workload: Workload, layout: Layout) -> Sentences:
    """Heads, KV heads and inner widths divide over the tensor ranks."""
    tp = layout.tp
    for kind in workload.kinds:
        heads = kind.attention.heads
        groups = getattr(kind.attention, "kv_heads", heads)
        dense = kind.ffn if isinstance(kind.ffn, Mlp) else kind.ffn.shared
        if heads % tp:
            yield f"tp {tp} does not divide the {heads} heads of {kind.name}"
        elif groups % tp and tp % groups:
            yield (
                f"tp {tp} neither divides nor is a multiple of the {groups} KV "
                f"heads of {kind.name}"
            )
        if dense.ffn % tp:
            yield f"tp {tp} does not divide the ffn width {dense.ffn} of {kind.name}"


def _sequence(workload: Workload, layout: Layout) -> Sentences:
    """Zig-zag chunks and tensor splits divide the sequence; Ulysses the heads."""
    tp, cp, length = layout.tp, layout.cp, workload.training.seq_len
    chunks = tp * (2 * cp if cp > 1 else 1)
    if length % chunks:
        yield f"a sequence of {length} tokens does not split into {chunks} chunks"
    if cp == 1 or layout.cp_kind != "ulysses":
        return
    for kind in workload.kinds:
        heads = kind.attention.heads
        if heads % (tp * cp):
            yield f"ulysses needs {heads} heads to divide by tp * cp = {tp * cp}"


def _batch(workload: Workload, layout: Layout) -> Sentences:
    """The micro-batches of all replicas are the batch."""
    dp, micro, accum = layout.dp, layout.micro_batch, layout.grad_accum
    total = dp * micro * accum
    if total != workload.sequences:
        yield (
            f"dp * micro_batch * grad_accum = {dp} * {micro} * {accum} = {total} is "
            f"not the batch of {workload.sequences} sequences"
        )


def _sharding(workload: Workload, layout: Layout) -> Sentences:
    """Shard groups hold whole context groups and divide the data ranks."""
    shard, ranks = layout.dp_shard, layout.dp * layout.cp
    if ranks % shard:
        yield f"dp_shard {shard} does not divide dp * cp = {ranks}"
    elif shard % layout.cp:
        yield f"dp_shard {shard} is not a multiple of cp {layout.cp}"
    elif shard < ranks and layout.zero_stage == 0:
        yield f"dp_shard {shard} under dp * cp = {ranks} shards nothing at ZeRO 0"
    elif shard < ranks and not workload.framework.limits.hybrid_sharding:
        yield f"{workload.framework.name} shards over all {ranks} ranks, not {shard}"


def _whole_replicas(workload: Workload, layout: Layout) -> Sentences:
    """Where the framework wants it, what is sharded or split has ranks to share it."""
    limits, zero = workload.framework.limits, layout.zero_stage
    name = workload.framework.name
    if limits.shards_need_ranks and zero >= 2 and layout.dp_shard == 1:
        yield f"{name} has ZeRO {zero} only where two or more ranks share the states"
    if not limits.split_replicas_need_shards:
        return
    if layout.cp > 1 and zero < 2:
        yield f"{name} has cp {layout.cp} at ZeRO 2 and 3 only, not {zero}"
    copies = layout.dp if zero < 2 else layout.dp * layout.cp // layout.dp_shard
    sharded = zero >= 2 and layout.dp_shard > layout.cp
    if copies > 1 and layout.tp * layout.cp > 1 and not sharded:
        yield f"{name} shards the replicas of a model that tp or cp splits"


def _framework(workload: Workload, layout: Layout) -> Sentences:
    """The framework has words for every choice."""
    limits = workload.framework.limits
    choices: list[tuple[str, object, tuple[object, ...]]] = [
        ("zero_stage", layout.zero_stage, limits.zero_stages),
        ("schedule", layout.schedule, limits.schedules),
        ("order", layout.order, limits.orders),
        ("sp", layout.sp, limits.sequence_parallel if layout.tp > 1 else (False,)),
    ]
    if layout.cp > 1:
        choices.append(("cp_kind", layout.cp_kind, limits.cp_kinds))
    for name, has in (
        ("etp", limits.expert_tensor),
        ("ep", limits.expert_parallel),
        ("pp", limits.pipeline),
    ):
        if not has:
            choices.append((name, getattr(layout, name), (1,)))
    for name, given, allowed in choices:
        if given not in allowed:
            shown = ", ".join(map(str, allowed))
            yield (
                f"{workload.framework.name} at tp {layout.tp} has {name} {shown}, "
                f"not {given}"
            )


def _together(workload: Workload, layout: Layout) -> Sentences:
    """Choices that the framework has alone are not made together."""
    its, offload = layout, layout.offload
    hybrid = its.zero_stage > 0 and its.dp_shard < its.dp * its.cp
    given = {
        "tp": its.tp > 1,
        "pp": its.pp > 1,
        "cp": its.cp > 1,
        "ep": its.ep > 1,
        f"ZeRO {its.zero_stage}": True,
        "hybrid sharding": hybrid,
        "offload": bool(_on_host(offload)),
        "partial offload": any(
            getattr(offload, name) < 1 for name in _on_host(offload)
        ),
    }
    shown = {"hybrid sharding": f"dp_shard {its.dp_shard}"}
    shown |= {axis: f"{axis} {getattr(its, axis)}" for axis in ("tp", "pp", "cp", "ep")}
    shown |= {f"ZeRO {its.zero_stage}": f"zero_stage {its.zero_stage}"}
    for one, other in workload.framework.limits.apart:
        if given.get(one) and given.get(other):
            both = f"{shown.get(one, one)} with {shown.get(other, other)}"
            yield f"{workload.framework.name} has no {both}"


def _recompute(workload: Workload, layout: Layout) -> Sentences:
    """Recompute kinds are known, and one per plan where the framework has one."""
    limits, used = workload.framework.limits, _kinds_used(layout)
    known = [kind for kind in limits.recompute if kind in workload.recipe.kinds]
    for kind in used:
        if kind not in known:
            yield f"recompute kind {kind!r} is none of {', '.join(known)}"
    if limits.recompute_scope == "plan" and len(used) > 1:
        yield (
            f"{workload.framework.name} has one recompute kind per plan, this has "
            f"{len(used)}: {', '.join(used)}"
        )


def _interleaving(_: Workload, layout: Layout) -> Sentences:
    """Chunks need a pipeline, whole groups of micro-batches and the schedule."""
    pp, vpp, accum = layout.pp, layout.vpp, layout.grad_accum
    if layout.schedule in V_SHAPED:
        yield from _v_shaped(layout)
        return
    if vpp == 1:
        return
    if layout.schedule != "interleaved":
        yield f"vpp {vpp} needs the schedule interleaved, not {layout.schedule}"
    if pp == 1:
        yield f"vpp {vpp} interleaves over pp > 1, here pp is 1"
    elif accum % pp:
        yield f"vpp {vpp} needs grad_accum % pp == 0, not {accum} % {pp} = {accum % pp}"


def _v_shaped(layout: Layout) -> Sentences:
    """A V has two chunks a rank, and micro-batches that fill it."""
    name, pp, accum = layout.schedule, layout.pp, layout.grad_accum
    if layout.vpp != 2:
        yield f"{name} has two chunks a rank, not vpp {layout.vpp}"
    if name == "dualpipe" and (pp % 2 or accum % 2):
        yield f"dualpipe needs even pp and grad_accum, not {pp} and {accum}"
    if name != "zb-v" and accum < 2 * pp:
        yield f"{name} needs grad_accum >= 2 pp = {2 * pp}, not {accum}"


def _stages(workload: Workload, layout: Layout) -> Sentences:
    """Every layer is on one stage; only the ends' stages may be empty."""
    layers, given = workload.model.layers, layout.layers_per_stage
    stages = placement(layout.schedule, layout.pp, layout.vpp).depth
    if len(given) != stages:
        needed = "pp" if layout.schedule == "dualpipe" else "pp * vpp"
        yield f"{len(given)} stages are given, {needed} = {stages} are needed"
    if sum(given) != layers:
        yield f"the stages hold {sum(given)} layers, the model has {layers}"
    for index, count in enumerate(given):
        if count < (0 if len(given) > 1 and index in (0, len(given) - 1) else 1):
            yield f"virtual stage {index} of {len(given)} holds {count} layers"
    for index, stage in enumerate(layout.stages):
        yield from _ranges(index, stage)


def _ranges(index: int, stage: Stage) -> Sentences:
    """Recompute ranges follow each other from the first layer to the last."""
    bounds = [0, *(edge for r in stage.recompute for edge in (r.start, r.stop))]
    tiled = all(a == b for a, b in zip(bounds[::2], bounds[1::2], strict=False))
    ends = bounds[-1] == stage.layers or not stage.recompute
    if not (tiled and ends and bounds == sorted(bounds)):
        spans = ", ".join(f"{r.start}-{r.stop}" for r in stage.recompute)
        where = f"{stage.layers} layers of virtual stage {index}"
        yield f"recompute ranges {spans} do not tile {where}"


def _experts(workload: Workload, layout: Layout) -> Sentences:
    """Experts divide over their ranks, which lie inside those of a stage."""
    moes = [kind.ffn for kind in workload.kinds if isinstance(kind.ffn, Moe)]
    ep, etp = layout.ep, layout.etp
    if not moes:
        if ep * etp > 1:
            yield f"ep {ep} and etp {etp} on a model without experts"
        return
    for moe in moes:
        if moe.experts % ep:
            yield f"ep {ep} does not divide {moe.experts} experts"
        if moe.ffn % etp:
            yield f"etp {etp} does not divide the expert width {moe.ffn}"
    yield from _expert_ranks(layout)
    need = workload.framework.limits.experts_need_sp and min(ep, layout.tp) > 1
    if need and not layout.sp:
        yield f"ep {ep} with tp {layout.tp} needs sp"


def _expert_ranks(layout: Layout) -> Sentences:
    """Expert groups tile a stage's ranks, or its tensor and context ranks."""
    held = layout.ep * layout.etp
    inner = layout.tp * layout.cp
    if inner * layout.dp % held:
        yield f"ep * etp = {held} does not divide tp * cp * dp = {inner * layout.dp}"
    elif layout.order == "tp-cp-ep-pp-dp" and layout.pp > 1 and held != inner:
        yield f"order {layout.order} needs ep * etp = {held} to be tp * cp = {inner}"


def _user_limits(workload: Workload, layout: Layout) -> Sentences:
    """What the user ruled out stays out."""
    search = workload.search
    for axis in (*AXES, "zero_stage"):
        value = getattr(layout, axis)
        if not search.allows(axis, value):
            yield f"the search block limits {axis} to {_shown(search, axis)}: {value}"
    words: list[tuple[str, str]] = [
        ("schedule", layout.schedule),
        ("order", layout.order),
    ]
    words += [("recompute", kind) for kind in _kinds_used(layout)]
    words += [("cp_kind", layout.cp_kind)] if layout.cp > 1 else []
    for axis, word in words:
        if not search.allows_text(axis, word):
            yield f"the search block limits {axis} to {_shown(search, axis)}: {word}"
    if layout.tp > 1 and search.sp not in (None, layout.sp):
        yield f"the search block limits sp to {search.sp}: {layout.sp}"


def _offload(workload: Workload, layout: Layout) -> Sentences:
    """What lies in host memory is sharded, allowed, and in the framework's words."""
    limits, allowed = workload.framework.limits, workload.search.offload
    zero, held = layout.zero_stage, _on_host(layout.offload)
    least = {"parameters": 3, "gradients": 2}
    for name in held:
        if zero < least.get(name, 0):
            yield f"ZeRO-{zero} does not shard {name}, so they cannot be offloaded"
    shown, listed = "+".join(held) or "none", workload.search.choices("offload")
    if (held and allowed is False) or (listed and shown not in listed):
        only = ", ".join(listed) or "none"
        yield f"the search block limits offload to {only}: {shown}"
    if not (held and allowed):
        return
    if not _moves_together(layout.offload, limits.offload):
        yield f"{workload.framework.name} cannot offload {shown}"
    for name in held:
        if zero < limits.offload_least_zero.get(name, 0):
            yield f"{workload.framework.name} offloads no {name} at ZeRO-{zero}"
    kinds = _kinds_used(layout)
    others = layout.pp > 1 or kinds != [NO_RECOMPUTE]
    if limits.offloads_activations_alone and "activations" in held and others:
        yield (
            f"{workload.framework.name} offloads activations only without pipeline "
            f"and recompute, not at pp {layout.pp} with {', '.join(kinds)}"
        )


def _on_host(offload: Offload) -> list[str]:
    """Categories of which a part lies in host memory."""
    names = ("optimizer", "parameters", "gradients", "activations")
    return [name for name in names if getattr(offload, name) > 0]


def _moves_together(offload: Offload, groups: frozenset[str]) -> bool:
    """Whether the offloaded categories are whole groups, each at one share."""
    left = set(_on_host(offload))
    for group in groups:
        names = group.split("+")
        if len({getattr(offload, name) for name in names}) == 1:
            left -= set(names)
    return not left


def _settings(workload: Workload, _: Layout) -> Sentences:
    """Method and optimizer are among those that the user leaves open."""
    for name in SETTINGS:
        listed, value = workload.search.choices(name), getattr(workload.training, name)
        if listed and value not in listed:
            yield f"the search block limits {name} to {', '.join(listed)}: {value}"


def _shown(search: object, axis: str) -> str:
    """A limit as the user wrote it."""
    return str(getattr(search, axis))


RULES: tuple[Callable[[Workload, Layout], Sentences], ...] = (
    _ranks,
    _tensor,
    _sequence,
    _batch,
    _sharding,
    _whole_replicas,
    _framework,
    _together,
    _recompute,
    _interleaving,
    _stages,
    _experts,
    _user_limits,
    _offload,
    _settings,
)
"""Every rule, in order of its sentences."""
