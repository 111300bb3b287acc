"""The layouts that hold least, and how few GPUs they can do with."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hardware.catalog import Cluster, resolve_cluster
from hardware.topology import ClusterTopology
from planner.cost.estimate import memory_estimate, price
from planner.cost.layouts import layout_of
from planner.cost.meshes import ORDERS, Floats, Meshes
from planner.cost.table import CostTable, fill_table
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.search.paths import even_counts, in_class
from planner.search.space import Space, enumerate_space
from planner.specs.estimate import MemoryEstimate
from planner.specs.layout import Layout
from planner.specs.table import BLOCK

LOOKED_AT = 6
"""Layouts whose exact memory is compared, of those with the least roughly. [1]"""
ENOUGH = 2
"""The same where any that fits will do. [1]"""
HOPELESS = 1.03
"""Rough need over the memory beyond which nothing exact is asked. [1]"""
NEIGHBOURS = 12
"""Sizes tried one by one above the fewest GPUs that could hold the states. [1]"""
GROWTH = 1.25
"""Ratio of the sizes tried beyond those. [1]"""
AMPLE = 64
"""Times the fewest GPUs where a job that still does not fit is given up. [1]"""
SATURATED = 4
"""Micro-batches for each stage that fill any schedule. [1]"""
FULL = "full"
"""The recompute kind that keeps least, where a framework has it. [text]"""


@dataclass(frozen=True)
class Held:
    """A layout with what it holds."""

    layout: Layout
    memory: MemoryEstimate

    @property
    def fits(self) -> bool:
        """Whether the predicted peak is within the memory."""
        return self.memory.peak_device_gib.value <= self.memory.capacity_gib


def most_frugal(workload: Workload, *, enough: bool = False) -> Held | None:
    """The legal layout with the smallest peak, among those that hold least roughly.

    One sequence a micro-batch, one chunk a rank, even stages, everything
    recomputed, unless the job's own limits say otherwise; every degree and ZeRO
    stage that is left is looked at, since more sharding is not always less memory.

    Args:
        workload: The job. [-]
        enough: Stop at the first that fits. [-]

    Returns:
        Layout and memory, or None where no layout is legal. [-]
    """
    small = _least(workload)
    space = enumerate_space(small)
    if not len(space):
        return None
    table = fill_table(small, space.meshes, space.recompute, timed=False)
    need = _rough_need(table)[np.maximum(space.menu, 0), space.mesh]
    best: Held | None = None
    looked_at = ENOUGH if enough else LOOKED_AT
    for candidate in np.argsort(need, kind="stable")[:looked_at].tolist():
        if enough and need[candidate] > HOPELESS:
            break
        held = _exact(table, space, candidate)
        if held is None:
            continue
        if best is None or _peak(held) < _peak(best):
            best = held
        if enough and best.fits:
            break
    return best


def _peak(held: Held) -> tuple[float, object]:
    return held.memory.peak_device_gib.value, held.layout.sort_key()


def _least(workload: Workload) -> Workload:
    """The job with what holds least of everything that its limits leave open.

    Shard groups are as large as they can be: smaller ones hold more for the same
    layout, and buffers of one communicator besides.
    """
    given, limits = workload.search, workload.framework.limits
    least: dict[str, object] = {"micro_batch": 1, "vpp": 1, "order": ORDERS[0]}
    if FULL in limits.recompute:
        least["recompute"] = FULL
    free = {k: v for k, v in least.items() if getattr(given, k) is None}
    whole = replace(limits, hybrid_sharding=False)
    return replace(
        workload,
        search=given.model_copy(update=free),
        framework=replace(workload.framework, limits=whole),
    )


def _rough_need(table: CostTable) -> Floats:
    """Memory of the first and the last stage over what a rank has for them.

    The longest stage of an even split with the micro-batches in flight of the
    first, and of the last with its loss; exact without a pipeline.

    Args:
        table: Priced meshes. [-]

    Returns:
        Need over budget; infinite where nothing is left. [1], shape (menu, meshes)
    """
    meshes, runs = table.meshes, table.workload.runs
    layers = sum(count for _, count in runs)
    share = np.ceil(layers / meshes.pp) / layers
    depth = np.minimum(meshes.micro_batches, meshes.pp)
    states = sum(n * table.units[k].static for k, n in runs) * share
    waiting = sum(n * table.units[k].accumulated for k, n in runs) * share
    kept = sum(n * table.saved[k] for k, n in runs) * share
    passing = table.transient.max(axis=0)
    first = (
        states
        + waiting
        + kept * depth
        + (table.embedding.unit.static + table.embedding.saved)
        + passing
    )
    last = (
        states
        + waiting
        + kept
        + (table.head.unit.static + table.head.saved)
        + np.maximum(passing, table.head.transient)
    )
    both = np.where(meshes.pp > 1, 0, table.head.unit.static + table.head.saved)
    need = np.maximum(first + both, last)
    room = np.where(table.budget > 0, table.budget, 1)
    return np.where(table.budget > 0, need / room, np.inf)


def _exact(table: CostTable, space: Space, candidate: int) -> Held | None:
    """Exact memory of one candidate under even stages, or None outside the class."""
    row, entry = int(space.mesh[candidate]), max(int(space.menu[candidate]), 0)
    costs = table.stage_costs(row, schedule="1f1b", vpp=1, menu=(entry,))
    counts = even_counts(costs)
    if not in_class(costs, counts):
        return None
    layout = layout_of(
        table.workload, space.meshes, row, vpp=1, menu=costs.menu, counts=counts
    )
    return Held(layout, weigh(table.workload, layout))


def weigh(workload: Workload, layout: Layout) -> MemoryEstimate:
    """Memory of one layout, as a price of it says, without its time.

    Beyond four micro-batches for each stage more in a step change nothing: every
    schedule then has the most in flight that it ever has.

    Args:
        workload: The job. [-]
        layout: A complete layout. [-]

    Returns:
        Memory by stage. [GiB]
    """
    accum = min(layout.grad_accum, SATURATED * layout.pp)
    full = layout.model_copy(update={"grad_accum": accum})
    return memory_estimate(price(workload, full, timed=False))


def fewest_gpus(workload: Workload) -> Held | None:
    """The smallest cluster of these nodes that holds the job, by some legal layout.

    Clusters grow from the fewest GPUs whose memory holds the states alone: whole
    nodes, or single GPUs of one node where the cluster is partial. Sizes are not
    skipped close to that; further out each is a quarter larger, and the gap below
    the first that fits is then halved.

    Args:
        workload: The job; its cluster's own size plays no part. [-]

    Returns:
        The layout and what it holds, its GPUs the answer; None where even 64 times
        the states' GPUs do not hold it: some activation is too large for a rank. [-]
    """
    floor = _states_floor(workload)
    sizes = _sizes(workload.topology.cluster, floor)
    before = None
    for size in sizes:
        held = _held_by(workload, size)
        if held is not None and held.fits:
            return held if before is None else _closer(workload, before, size, held)
        before = size if size.nodes > 1 else None
        if size.nodes >= NEIGHBOURS and not _ever(workload, floor):
            return None
    return None


@dataclass(frozen=True)
class _Size:
    """A cluster's size: nodes, and GPUs of each."""

    nodes: int
    per_node: int


def _sizes(cluster: Cluster, floor: int) -> Iterator[_Size]:
    """Sizes in the order of trial, from the floor on."""
    per_node = cluster.node.gpus_per_node
    if cluster.spec.partial:
        for gpus in range(min(floor, per_node), per_node):
            yield _Size(1, gpus)
    nodes, last = -(-floor // per_node), AMPLE * -(-floor // per_node)
    tried = 0
    while nodes <= last:
        yield _Size(nodes, per_node)
        tried += 1
        nodes = nodes + 1 if tried < NEIGHBOURS else int(np.ceil(nodes * GROWTH))


def _ever(workload: Workload, floor: int) -> bool:
    """Whether an ample cluster holds the job: a power of two that splits evenly."""
    per_node = workload.topology.cluster.node.gpus_per_node
    nodes = 1 << int(np.ceil(np.log2(AMPLE * -(-floor // per_node))))
    held = _held_by(workload, _Size(nodes, per_node))
    return held is not None and held.fits


def _closer(workload: Workload, low: _Size, high: _Size, held: Held) -> Held:
    """Halve the gap between a size that fails and one that holds the job."""
    while high.nodes - low.nodes > 1:
        middle = replace(high, nodes=(low.nodes + high.nodes) // 2)
        found = _held_by(workload, middle)
        if found is not None and found.fits:
            high, held = middle, found
        else:
            low = middle
    return held


def _held_by(workload: Workload, size: _Size) -> Held | None:
    """The most frugal layout on a cluster of this size."""
    try:
        return most_frugal(resized(workload, size.nodes, size.per_node), enough=True)
    except BadInputError:
        return None


def resized(workload: Workload, nodes: int, per_node: int) -> Workload:
    """The same job on another number of the same nodes.

    Args:
        workload: The job. [-]
        nodes: Nodes. [1]
        per_node: GPUs of each that the job uses. [1]

    Returns:
        The job on that cluster. [-]
    """
    cluster = workload.topology.cluster
    tiers = tuple(tier for tier in cluster.spec.tiers if tier.gpus < nodes * per_node)
    spec = cluster.spec.model_copy(update={"nodes": nodes, "tiers": tiers})
    smaller = resolve_cluster(spec)
    if per_node < smaller.node.gpus_per_node:
        domain = min(per_node, smaller.node.scale_up_domain)
        part = {"gpus_per_node": per_node, "scale_up_domain": domain}
        smaller = replace(smaller, node=smaller.node.model_copy(update=part))
    return replace(workload, topology=ClusterTopology(smaller))


def _states_floor(workload: Workload) -> int:
    """Fewest GPUs whose memory holds the states, divided without a rest. [1]."""
    zero = max(workload.framework.limits.zero_stages)
    row = (1, 0, 1, 1, 0, 1, 1, 1, 1, zero, 1, 1, 0)
    meshes = Meshes.from_rows([row])
    menu = workload.framework.limits.recompute[:1]
    table = fill_table(workload, meshes, menu, timed=False)
    ends = table.embedding.unit.static + table.head.unit.static
    states = ends + sum(n * table.units[k].static for k, n in workload.runs)
    room = max(workload.gpu.memory_capacity / BLOCK, 1.0)
    return max(1, int(np.ceil(float(np.asarray(states)[0]) / room)))
