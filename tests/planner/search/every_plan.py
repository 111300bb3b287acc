"""Every complete layout of a job, listed from its framework's limits and nothing else.

A second statement of the declared space, as a filter over all values of
every axis: it calls nothing of the search's own enumeration.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from planner.cost.meshes import Meshes
from planner.cost.workload import Workload
from planner.models.blocks import Mlp, Moe
from planner.search.menus import MOST_KINDS, offered, searched
from planner.search.space import enumerate_space
from planner.specs.recompute import block_of

ORDERS = ("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp")
CP_KINDS = ("ring", "all-gather", "ulysses")
SCHEDULES = ("1f1b", "interleaved", "gpipe")


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
    micro_batch: int
    micro_batches: int
    order: int


class Choice(NamedTuple):
    """A mesh with its schedule, its chunks, and the kinds that layers choose from."""

    mesh: Mesh
    vpp: int
    schedule: str
    menu: tuple[str, ...]
    block: int = 0
    """First layers of every virtual stage under the first kind of the menu. [1]"""


Rule = Callable[[Workload, Mesh], bool]


def whole(n: int) -> list[int]:
    """Numbers that divide n."""
    return [d for d in range(1, n + 1) if n % d == 0]


def is_full(job: Workload) -> bool:
    return job.search.space == "full"


def offloads(job: Workload, name: str) -> bool:
    return bool(getattr(job.offload, name))


def alone(job: Workload) -> bool:
    """Activations leave the GPUs, which the framework does only by itself."""
    limits = job.framework.limits
    return limits.offloads_activations_alone and offloads(job, "activations")


def experts(job: Workload) -> list[Moe]:
    return [kind.ffn for kind in job.kinds if isinstance(kind.ffn, Moe)]


def widths_divide(job: Workload, m: Mesh) -> bool:
    """Heads and dense widths split over tp; KV heads split, or are repeated."""
    for kind in job.kinds:
        heads = kind.attention.heads
        groups = getattr(kind.attention, "kv_heads", heads)
        dense = kind.ffn.ffn if isinstance(kind.ffn, Mlp) else kind.ffn.shared.ffn
        if heads % m.tp or dense % m.tp or (groups % m.tp and m.tp % groups):
            return False
    return True


def tp_is_near(job: Workload, m: Mesh) -> bool:
    """One scale-up domain; two in the full space."""
    domain = job.topology.cluster.node.scale_up_domain
    return m.tp <= domain * (1 + is_full(job))


def tokens_divide(job: Workload, m: Mesh) -> bool:
    """Two chunks for each context rank, each split over tp."""
    chunks = 2 * m.cp if m.cp > 1 else 1
    return job.training.seq_len % (chunks * m.tp) == 0


def default_sizes(job: Workload, m: Mesh) -> bool:
    """The default space has cp to 64 and micro-batches to 8."""
    return is_full(job) or (m.cp <= 64 and m.micro_batch <= 8)


def pipeline_is_legal(job: Workload, m: Mesh) -> bool:
    """Each stage between the ends has a layer, and the framework has stages."""
    if m.pp == 1:
        return True
    has = job.framework.limits.pipeline and not alone(job)
    return has and m.pp - 2 <= job.model.layers


def sp_is_known(job: Workload, m: Mesh) -> bool:
    if m.tp == 1:
        return not m.sp
    asked = job.search.sp
    known = bool(m.sp) in job.framework.limits.sequence_parallel
    return known and asked in (None, bool(m.sp))


def cp_kind_is_known(job: Workload, m: Mesh) -> bool:
    """The first of the framework; all in the full space, and what is named."""
    name = CP_KINDS[m.cp_kind]
    if m.cp == 1:
        return name == "all-gather"
    has, asked = job.framework.limits.cp_kinds, job.search.cp_kind
    if name not in has or not job.search.allows_text("cp_kind", name):
        return False
    if name == "ulysses" and any(k.attention.heads % (m.tp * m.cp) for k in job.kinds):
        return False
    return is_full(job) or asked is not None or name == has[0]


def experts_divide(job: Workload, m: Mesh) -> bool:
    """Experts over ep, each expert over etp, both within the ranks of a stage."""
    limits, moes = job.framework.limits, experts(job)
    if not moes:
        return m.ep == m.etp == 1
    if (m.ep > 1 and not limits.expert_parallel) or (
        m.etp > 1 and not limits.expert_tensor
    ):
        return False
    if m.tp % m.etp or (m.tp * m.cp * m.dp) % (m.ep * m.etp):
        return False
    if m.ep > 1 and m.tp > 1 and limits.experts_need_sp and not m.sp:
        return False
    return all(moe.experts % m.ep == 0 and moe.ffn % m.etp == 0 for moe in moes)


def order_is_known(job: Workload, m: Mesh) -> bool:
    """Both orders are one layout without stages or without replicas."""
    name = ORDERS[m.order]
    if m.pp == 1 or m.dp == 1:
        return m.order == 0
    if name not in job.framework.limits.orders:
        return False
    if not job.search.allows_text("order", name):
        return False
    tiled = not experts(job) or m.ep * m.etp == m.tp * m.cp
    return m.order == 0 or tiled


def shards_are_legal(job: Workload, m: Mesh) -> bool:
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


def offload_is_sharded(job: Workload, m: Mesh) -> bool:
    """Only what a rank has alone can leave it, and as the framework does it."""
    least = {"parameters": 3, "gradients": 2}
    asked = job.framework.limits.offload_least_zero
    parts = job.framework.limits.offload_in_parts
    names = ("optimizer", "parameters", "gradients", "activations")
    held = [name for name in names if offloads(job, name)]
    split = [n for n in held if getattr(job.offload, n) < 1]
    return all(m.zero >= max(least.get(n, 0), asked.get(n, 0)) for n in held) and all(
        m.zero >= parts.get(n, 0) for n in split
    )


class Axis(NamedTuple):
    """A field of a mesh, the values it may take, and what its value decides."""

    field: str
    values: Callable[[Workload, Mesh], Iterable[int]]
    rules: tuple[Rule, ...] = ()
    limit: str | None = None
    """Name of the user's limit on it. [text]"""


def of_experts(most: Callable[[Workload, Mesh], int]) -> Callable[..., list[int]]:
    """Divisors for a model with experts, else 1 alone."""
    return lambda job, mesh: whole(most(job, mesh)) if experts(job) else [1]


def fewest_experts(job: Workload, _: Mesh) -> int:
    return min(moe.experts for moe in experts(job))


def batches(job: Workload, m: Mesh) -> list[int]:
    """Micro-batch sizes of a replica; none where replicas do not share evenly."""
    return [] if job.sequences % m.dp else whole(job.sequences // m.dp)


def constant(*values: int) -> Callable[[Workload, Mesh], Iterable[int]]:
    return lambda _job, _mesh: values


AXES: tuple[Axis, ...] = (
    Axis("tp", lambda j, _: whole(j.gpus), (tp_is_near, widths_divide), "tp"),
    Axis("cp", lambda j, m: whole(j.gpus // m.tp), (tokens_divide,), "cp"),
    Axis(
        "pp",
        lambda j, m: whole(j.gpus // (m.tp * m.cp)),
        (pipeline_is_legal,),
        "pp",
    ),
    Axis("dp", lambda j, m: [j.gpus // (m.tp * m.cp * m.pp)], (), "dp"),
    Axis("micro_batch", batches, (default_sizes,), "micro_batch"),
    Axis("micro_batches", lambda j, m: [j.sequences // m.dp // m.micro_batch]),
    Axis("sp", constant(0, 1), (sp_is_known,)),
    Axis("cp_kind", constant(*range(len(CP_KINDS))), (cp_kind_is_known,)),
    Axis("etp", of_experts(lambda _, m: m.tp), (), "etp"),
    Axis("ep", of_experts(fewest_experts), (experts_divide,), "ep"),
    Axis("zero", constant(0, 1, 2, 3), (offload_is_sharded,), "zero_stage"),
    Axis("dp_shard", lambda _, m: whole(m.cp * m.dp), (shards_are_legal,), "dp_shard"),
    Axis("order", constant(*range(len(ORDERS))), (order_is_known,)),
)
"""In an order in which each rule has what it reads."""
NO_MESH = Mesh(*(1 for _ in Mesh._fields))
UNLIMITED = frozenset({"ep", "etp"})
"""Axes whose limits mean nothing to a model without experts. [text]"""


def meshes(job: Workload) -> list[Mesh]:
    """All legal meshes of a job."""
    found = [NO_MESH]
    for axis in AXES:
        found = [
            mesh
            for base in found
            for value in axis.values(job, base)
            if is_allowed(job, axis, value)
            for mesh in [base._replace(**{axis.field: value})]
            if all(rule(job, mesh) for rule in axis.rules)
        ]
    return found


def is_allowed(job: Workload, axis: Axis, value: int) -> bool:
    """What the user limits stays within the limit."""
    if axis.limit is None or (axis.limit in UNLIMITED and not experts(job)):
        return True
    return job.search.allows(axis.limit, value)


def schedules(job: Workload, mesh: Mesh) -> Iterator[tuple[str, int]]:
    """Schedules of a mesh, each with its chunks per rank."""
    has, search = job.framework.limits.schedules, job.search
    layers, piped = job.model.layers, mesh.pp > 1
    for vpp in range(1, layers + 3):
        if not search.allows("vpp", vpp):
            continue
        if vpp == 1 and search.allows_text("schedule", "1f1b"):
            yield "1f1b", 1
        named = is_full(job) or search.schedule is not None
        once = piped and mesh.micro_batches > 1 and named and "gpipe" in has
        if vpp == 1 and once and search.allows_text("schedule", "gpipe"):
            yield "gpipe", 1
        groups = piped and mesh.micro_batches % mesh.pp == 0 and "interleaved" in has
        fits = vpp > 1 and vpp * mesh.pp - 2 <= layers
        even = is_full(job) or -layers % (vpp * mesh.pp) < mesh.pp
        if groups and fits and even and search.allows_text("schedule", "interleaved"):
            yield "interleaved", vpp


def menus(job: Workload, rows: Sequence[Mesh]) -> list[tuple[str, ...]]:
    """One menu of all kinds where layers choose, else a menu of one for each.

    Those that the space drops are in no menu: ``test_menus`` has them priced too.
    """
    limits = job.framework.limits
    kinds = [k for k in offered(job) if job.search.allows_text("recompute", k)]
    if len(kinds) > MOST_KINDS and job.search.recompute is None:
        whole = enumerate_space(job).recompute
        kinds = [kind for kind in kinds if kind in whole]
    elif kinds and rows:
        columns = Meshes.from_rows([tuple(mesh) for mesh in rows])
        kinds = list(searched(job, columns, tuple(kinds), Counter()))
    if alone(job):
        kinds = [kind for kind in kinds if kind == "none"]
    if limits.recompute_scope == "virtual-stage":
        return [tuple(kinds)] if kinds else []
    return [(kind,) for kind in kinds]


def choices(job: Workload) -> list[Choice]:
    """Every candidate of a job's space.

    Args:
        job: The job, with what one of its variants offloads. [-]

    Returns:
        All of them, hosts' memory aside. [-]
    """
    rows = meshes(job)
    kinds = menus(job, rows)
    return [
        Choice(mesh, vpp, schedule, menu, block)
        for mesh in rows
        for schedule, vpp in schedules(job, mesh)
        for menu, block in [
            *((menu, 0) for menu in kinds),
            *((("full", "none"), size) for size in blocks(job, mesh.pp * vpp)),
        ]
    ]


def blocks(job: Workload, stages: int) -> list[int]:
    """Quarters of the largest stage in the full space, or those that are listed."""
    limits, words = job.framework.limits, job.search.words("recompute")
    largest = -(-job.model.layers // stages)
    if not limits.recompute_blocks or limits.recompute_scope != "plan" or alone(job):
        return []
    listed = {block_of(word) for word in words} - {0}
    quarters = {-(-largest * step // 4) for step in (1, 2, 3)}
    found = quarters if is_full(job) and not words else listed
    return sorted(size for size in found if size < largest)
