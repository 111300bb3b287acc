"""Every mesh of a job, listed from its framework's limits and nothing else.

A second statement of the declared space, as a filter over all values of
every axis: it calls nothing of the search's own enumeration.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from planner.cost.pricing import Pricing
from planner.models.layers.blocks import Mlp, Moe, ScanBlock, StateSpace
from planner.specs.layouts.context import CP_KINDS, PLAIN
from planner.specs.search import SearchSpec

ORDERS = ("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp")


class Mesh(NamedTuple):
    """One outer tuple, its fields in the order of a layout."""

    tp: int
    sp: int
    pp: int
    cp: int
    cp_kind: int
    ep: int
    etp: int
    dp: int
    dp_shard: int
    zero: int
    hpz: int
    micro_batch: int
    micro_batches: int
    order: int


Rule = Callable[[Pricing, Mesh], bool]


@cache
def whole(n: int) -> tuple[int, ...]:
    """Numbers that divide n."""
    return tuple(d for d in range(1, n + 1) if n % d == 0)


def is_full(job: Pricing) -> bool:
    return job.search.space == "full"


def offloads(job: Pricing, name: str) -> bool:
    return bool(getattr(job.offload, name))


def alone(job: Pricing) -> bool:
    """Activations leave the GPUs, which the framework does only by itself."""
    limits = job.framework.limits
    return limits.offloads_activations_alone and offloads(job, "activations")


def experts(job: Pricing) -> list[Moe]:
    return [kind.ffn for kind in job.kinds if isinstance(kind.ffn, Moe)]


def domain(job: Pricing) -> int:
    """GPUs of the smallest scale-up domain among those that host stages."""
    clusters = [part.topology.cluster for part in job.parts]
    return min(cluster.node.scale_up_domain for cluster in clusters)


def widths_divide(job: Pricing, m: Mesh) -> bool:
    """Heads and dense widths split over tp; KV heads split, or are repeated."""
    for kind in job.kinds:
        heads = kind.attention.heads
        groups = getattr(kind.attention, "kv_heads", heads)
        dense = kind.ffn.ffn if isinstance(kind.ffn, Mlp) else kind.ffn.shared.ffn
        if heads % m.tp or dense % m.tp or (groups % m.tp and m.tp % groups):
            return False
    return True


def tp_is_near(job: Pricing, m: Mesh) -> bool:
    """One scale-up domain; two in the full space, or as far as the user says."""
    if not is_full(job):
        return m.tp <= domain(job)
    return m.tp <= max(2 * domain(job), job.search.largest("tp") or 0)


def tokens_divide(job: Pricing, m: Mesh) -> bool:
    """Two chunks for each context rank, each split over tp."""
    chunks = 2 * m.cp if m.cp > 1 else 1
    return job.training.seq_len % (chunks * m.tp) == 0


def default_sizes(job: Pricing, m: Mesh) -> bool:
    """The default space has cp to 64 and micro-batches to 8."""
    return is_full(job) or (m.cp <= 64 and m.micro_batch <= 8)


def pipeline_is_legal(job: Pricing, m: Mesh) -> bool:
    """Each stage between the ends has a layer, and the framework has stages."""
    if m.pp == 1:
        return True
    has = job.framework.limits.pipeline and not alone(job)
    return has and m.pp - 2 <= job.model.layers and not clash(job, axes_of(m))


def axes_of(m: Mesh) -> set[str]:
    """Axes of more than one rank."""
    return {axis for axis in ("tp", "pp", "cp", "ep") if getattr(m, axis) > 1}


def clash(job: Pricing, words: set[str]) -> bool:
    """Whether the framework has two of these alone, and not together."""
    parts = ("optimizer", "parameters", "gradients", "activations")
    if any(offloads(job, part) for part in parts):
        words = words | {"offload"}
    return any({*pair} <= words for pair in job.framework.limits.apart)


def goes_together(job: Pricing, m: Mesh) -> bool:
    words = axes_of(m) | {f"ZeRO {m.zero}"}
    if m.hpz > 1:
        words |= {"hpz"}
    return not clash(job, words)


def sp_is_known(job: Pricing, m: Mesh) -> bool:
    if m.tp == 1:
        return not m.sp
    asked = job.search.sp
    known = bool(m.sp) in job.framework.limits.sequence_parallel
    return known and asked in (None, bool(m.sp))


def dealt_to(kind: str, cp: int) -> int:
    """Ranks among which heads are dealt out; 0 for a group that does not fit."""
    if kind not in PLAIN:
        inner = int(kind.removeprefix("ulysses").removesuffix("+ring"))
        return inner if 1 < inner < cp and cp % inner == 0 else 0
    return cp if kind == "ulysses" else 1


def heads_are_whole(job: Pricing, ranks: int) -> bool:
    """Each rank gets whole heads; keys may be copied where the framework does."""
    copied = job.framework.limits.ulysses_copies_keys
    for kind in job.kinds:
        heads = kind.attention.heads
        keys = getattr(kind.attention, "kv_heads", heads)
        if heads % ranks:
            return False
        if keys % ranks and not (copied and keys and ranks % keys == 0):
            return False
    return True


def cp_kind_is_known(job: Pricing, m: Mesh) -> bool:
    """The first of the framework; all in the full space, and what is named."""
    name, has = CP_KINDS[m.cp_kind], job.framework.limits.cp_kinds
    if m.cp == 1:
        return name == "all-gather"
    if not job.framework.limits.context_parallel:
        return False
    dealt, asked = dealt_to(name, m.cp), job.search.cp_kind
    family = name if name in PLAIN else "ulysses+ring"
    if not dealt or family not in has:
        return False
    named = asked if isinstance(asked, tuple) else (asked,)
    if asked is not None and not {name, family} & set(named):
        return False
    if not (is_full(job) or asked is not None or family == has[0]):
        return False
    return dealt == 1 or heads_are_whole(job, m.tp * dealt)


def scans_are_whole(job: Pricing, m: Mesh) -> bool:
    """Tensor and context ranks share out whole heads of scans, or there is one."""
    if m.cp > 1 and not all(kind.attention.splits_sequence for kind in job.kinds):
        return False
    scans = [k.attention for k in job.kinds if isinstance(k.attention, ScanBlock)]
    if m.tp * m.cp == 1 or not scans:
        return True
    splits = job.framework.limits.splits_scans
    return splits and all(scan_is_whole(scan, m) for scan in scans)


def scan_is_whole(scan: ScanBlock, m: Mesh) -> bool:
    """Every rank gets whole groups of heads, or whole heads of one group."""
    if not isinstance(scan, StateSpace):
        return scan.heads % (m.tp * m.cp) == 0
    local, rest = divmod(scan.groups, m.tp)
    whole = scan.state_heads % (m.tp * m.cp) == 0 and not rest
    return whole and (local % m.cp == 0 or m.cp % local == 0)


def cp_kinds_of(_: Pricing, m: Mesh) -> list[int]:
    """Places of the plain kinds, and of inner groups smaller than cp."""
    mixed = (f"ulysses{inner}+ring" for inner in range(2, m.cp))
    return [CP_KINDS.index(kind) for kind in (*PLAIN, *mixed)]


def experts_divide(job: Pricing, m: Mesh) -> bool:
    """Experts over ep, each expert over etp, both within the ranks of a stage."""
    limits, moes = job.framework.limits, experts(job)
    if not moes:
        return m.ep == m.etp == 1
    if (m.ep > 1 and not limits.expert_parallel) or (
        m.etp > 1 and not limits.expert_tensor
    ):
        return False
    wide = is_full(job) and limits.expert_tensor and m.etp <= max(m.tp, domain(job))
    if (m.tp % m.etp and not wide) or (m.tp * m.cp * m.dp) % (m.ep * m.etp):
        return False
    if m.ep > 1 and m.tp > 1 and limits.experts_need_sp and not m.sp:
        return False
    return all(moe.experts % m.ep == 0 and moe.ffn % m.etp == 0 for moe in moes)


def order_is_known(job: Pricing, m: Mesh) -> bool:
    """Both orders are one layout without stages or without replicas.

    Stages that lie in several pools have no data ranks around them.
    """
    has = [n for n in job.framework.limits.orders if job.search.allows_text("order", n)]
    if job.mixed:
        return ORDERS[m.order] in has and m.order == 0
    if m.pp > 1 and experts(job) and m.ep * m.etp != m.tp * m.cp:
        has = [name for name in has if name == ORDERS[0]]
    alike = m.pp == 1 or m.dp == 1
    return ORDERS[m.order] in (has[:1] if alike else has)


def shards_are_legal(job: Pricing, m: Mesh) -> bool:
    """Whole context groups; fewer than all ranks only with hybrid sharding."""
    limits, ranks = job.framework.limits, m.cp * m.dp
    if m.zero not in limits.zero_stages or m.dp_shard % m.cp:
        return False
    if m.dp_shard < ranks and (m.zero == 0 or not limits.hybrid_sharding):
        return False
    if limits.shards_need_ranks and m.zero >= 2 and m.dp_shard == 1:
        return False
    if not limits.split_replicas_need_shards:
        return True
    if m.cp > 1 and m.zero < 2:
        return False
    copies = m.dp if m.zero < 2 else ranks // m.dp_shard
    shared = m.zero >= 2 and m.dp_shard > m.cp
    return shared or copies == 1 or m.tp * m.cp == 1


def copies_are_sharded(job: Pricing, m: Mesh) -> bool:
    """ZeRO 3's weights alone have a second copy, and where the framework has it."""
    return m.hpz == 1 or (m.zero == 3 and job.framework.limits.hpz)


def offload_is_sharded(job: Pricing, m: Mesh) -> bool:
    """Only what a rank has alone can leave it, and as the framework does it."""
    least = {"parameters": 3, "gradients": 2}
    asked = job.framework.limits.offload_least_zero
    names = ("optimizer", "parameters", "gradients", "activations")
    held = [name for name in names if offloads(job, name)]
    parts = job.framework.limits.offload_in_parts
    split = [name for name in held if getattr(job.offload, name) < 1]
    return all(m.zero >= max(least.get(n, 0), asked.get(n, 0)) for n in held) and all(
        m.zero >= parts.get(name, 0) for name in split
    )


class Axis(NamedTuple):
    """A field of a mesh, the values it may take, and what its value decides."""

    field: str
    values: Callable[[Pricing, Mesh], Iterable[int]]
    rules: tuple[Rule, ...] = ()
    limit: str | None = None
    """Name of the user's limit on it. [text]"""


def of_experts(most: Callable[[Pricing, Mesh], int]) -> Callable[..., Iterable[int]]:
    """Divisors for a model with experts, else 1 alone."""
    return lambda job, mesh: whole(most(job, mesh)) if experts(job) else (1,)


def fewest_experts(job: Pricing, _: Mesh) -> int:
    return min(moe.experts for moe in experts(job))


def batches(job: Pricing, m: Mesh) -> Iterable[int]:
    """Micro-batch sizes of a replica."""
    return whole(job.sequences // m.dp)


def constant(*values: int) -> Callable[[Pricing, Mesh], Iterable[int]]:
    return lambda _job, _mesh: values


AXES: tuple[Axis, ...] = (
    Axis("sp", constant(0, 1), (sp_is_known,)),
    Axis("cp_kind", cp_kinds_of, (cp_kind_is_known, scans_are_whole)),
    Axis("etp", of_experts(lambda _, m: m.tp * m.cp * m.dp), (), "etp"),
    Axis("ep", of_experts(fewest_experts), (experts_divide,), "ep"),
    Axis("zero", constant(0, 1, 2, 3), (offload_is_sharded,), "zero_stage"),
    Axis(
        "dp_shard",
        lambda _, m: whole(m.cp * m.dp),
        (shards_are_legal,),
        "dp_shard",
    ),
    Axis(
        "hpz",
        lambda _, m: whole(m.cp * m.dp),
        (copies_are_sharded, goes_together),
        "hpz",
    ),
    Axis("order", constant(*range(len(ORDERS))), (order_is_known,)),
    Axis("micro_batch", batches, (default_sizes,), "micro_batch"),
    Axis("micro_batches", lambda j, m: [j.sequences // m.dp // m.micro_batch]),
)
"""In an order in which each rule has what it reads; last what no other reads."""
DEGREES: tuple[Axis, ...] = (
    Axis("tp", lambda j, _: range(1, j.gpus + 1), (tp_is_near, widths_divide), "tp"),
    Axis(
        "cp",
        lambda j, m: range(1, j.gpus // m.tp + 1),
        (tokens_divide, default_sizes),
        "cp",
    ),
    Axis(
        "pp",
        lambda j, m: range(1, j.gpus // (m.tp * m.cp) + 1),
        (pipeline_is_legal,),
        "pp",
    ),
    Axis(
        "dp",
        lambda j, m: range(1, j.gpus // (m.tp * m.cp * m.pp) + 1),
        (lambda j, m: j.sequences % m.dp == 0,),
        "dp",
    ),
)
"""All degrees whose product is at most the fleet, and replicas that share the batch."""
NO_MESH = Mesh(*(1 for _ in Mesh._fields))


def meshes(job: Pricing) -> list[Mesh]:
    """All legal meshes of a job."""
    return grown(job, fleet(job), AXES)


def grown(job: Pricing, found: list[Mesh], axes: Sequence[Axis]) -> list[Mesh]:
    """The meshes with every legal value of some more axes."""
    for axis in axes:
        at = Mesh._fields.index(axis.field)
        found = [
            mesh
            for base in found
            for value in axis.values(job, base)
            if axis.limit is None or job.search.allows(axis.limit, value)
            for mesh in [Mesh(*base[:at], value, *base[at + 1 :])]
            if all(rule(job, mesh) for rule in axis.rules)
        ]
    return found


def used(mesh: Mesh) -> int:
    return mesh.tp * mesh.pp * mesh.cp * mesh.dp


def fleet(job: Pricing) -> list[Mesh]:
    """Degrees that use as much of the fleet as the declared space asks for.

    All GPUs; where nodes are gone, pods differ, or in the full space, nearly as many
    as the fullest uses, with the most replicas for each other degree; where the user
    limits the GPUs, any number that he allows.
    """
    every, asked = grown(job, [NO_MESH], DEGREES), job.search.gpus
    if asked is None and not leaves_idle(job):
        return [
            m for m in every if used(m) == job.gpus and job.search.allows("dp", m.dp)
        ]
    legal = [m for m in every if is_placed(job, m) and job.search.allows("dp", m.dp)]
    if asked is not None:
        return [mesh for mesh in legal if job.search.allows("gpus", used(mesh))]
    widest = {(m.tp, m.cp, m.pp): m for m in sorted(legal, key=lambda m: m.dp)}
    most = max(map(used, widest.values()), default=0)
    return [mesh for mesh in widest.values() if 32 * (most - used(mesh)) <= most]


def is_placed(job: Pricing, mesh: Mesh) -> bool:
    """Whole nodes unless parts may be used."""
    cluster = job.topology.cluster
    return cluster.spec.partial or used(mesh) % cluster.node.gpus_per_node == 0


def leaves_idle(job: Pricing) -> bool:
    """Fleets that layouts need not fill, or that none fills without limits."""
    spec = job.topology.cluster.spec
    if spec.dead or any(tier.units for tier in spec.tiers):
        return True
    if is_full(job) and job.gpus <= 2048:
        return True
    free = replace(job, search=SearchSpec(space=job.search.space))
    shapes = grown(free, [NO_MESH], DEGREES)
    return not any(used(mesh) == job.gpus for mesh in shapes)
