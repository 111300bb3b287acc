"""Layouts with the least memory, and the fewest GPUs that hold a job."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from planner.cost.estimate.estimate import memory_estimate
from planner.cost.estimate.layouts import layout_of
from planner.cost.estimate.pricing import price
from planner.cost.meshes import Floats, Meshes
from planner.cost.pricing import Pricing
from planner.cost.table.table import CostTable, fill_table
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.hardware.catalog import Cluster, resolve_cluster
from planner.hardware.graph.topology import ClusterTopology
from planner.search.bounds.paths import even_counts, in_class
from planner.search.space.space import Space, enumerate_space
from planner.search.stop import Stop, after
from planner.specs.answer.estimate import MemoryEstimate
from planner.specs.layouts.axes import AXES
from planner.specs.layouts.layout import Layout
from planner.specs.table import BLOCK

LOOKED_AT = 6
"""Layouts of least rough memory whose exact memory is compared. [1]"""
ENOUGH = 2
"""Layouts whose exact memory is computed where any layout that fits will do. [1]"""
HOPELESS = 1.03
"""Rough need over capacity beyond which exact memory is not computed. [1]"""
NEIGHBOURS = 12
"""Sizes tried one by one above the fewest GPUs that could hold the states. [1]"""
PATIENCE = 4
"""Sizes that fail before an ample size is tried. [1]"""
ROUND = (1, 3, 5)
"""Factors of the sizes tried beyond the neighbours: these times powers of two. [1]"""
SCANNED = 512
"""Most sizes tried below the first round size that holds the job. [1]"""
AMPLE = 64
"""Multiple of the fewest nodes beyond which a job that does not fit is given up. [1]"""
SATURATED = 4
"""Micro-batches for each stage that fill any schedule. [1]"""
MESHES = 1 << 18
"""Meshes of all sizes together that the fewest GPUs are looked for on. [1]"""
FULL = "full"
"""The recompute kind that keeps least, where a framework has it. [text]"""


@dataclass(frozen=True)
class Held:
    """A layout with its memory."""

    layout: Layout
    memory: MemoryEstimate

    @property
    def fits(self) -> bool:
        """True where peak memory fits the GPU, and host memory is enough."""
        host = self.memory.host
        enough = host is None or bool(host.is_enough)
        return enough and self.memory.peak_device_gib.value <= self.memory.capacity_gib


def leanest(pricing: Pricing, *, enough: bool = False) -> Held | None:
    """The legal layout with the least peak memory, among those of least rough memory.

    Has one sequence a micro-batch, one chunk a rank, even stages and full recompute,
    unless the job's limits say otherwise. Every degree and ZeRO stage that is left is
    tried, since more sharding is not always less memory.

    Returns:
        Layout and memory, or None where no layout is legal. [-]
    """
    small = _least(pricing)
    return _of_space(small, enumerate_space(small), enough=enough)


def _of_space(small: Pricing, space: Space, *, enough: bool) -> Held | None:
    """The layout of a space with the least peak memory."""
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


def _least(pricing: Pricing) -> Pricing:
    """The job with the setting of least memory for every limit that it leaves open.

    Shard groups are as large as they can be. Smaller groups hold more states, and
    buffers of one more communicator.
    """
    given, limits = pricing.search, pricing.framework.limits
    least = {axis.name: axis.default for axis in AXES if axis.is_lean}
    least["micro_batch"] = pricing.training.together
    if FULL in limits.recompute:
        least["recompute"] = FULL
    free = {k: v for k, v in least.items() if getattr(given, k) is None}
    whole = replace(limits, hybrid_sharding=False)
    return replace(
        pricing,
        search=given.model_copy(update=free),
        framework=replace(pricing.framework, limits=whole),
    )


def _rough_need(table: CostTable) -> Floats:
    """Rough peak memory of the first or the last stage, over the budget of a rank.

    Both stages have the most layers of an even split. The first has the most
    micro-batches in flight, the last has the loss. Exact without a pipeline.

    Returns:
        Need over budget; infinite without a budget. [1], shape (menu, meshes)
    """
    meshes, runs = table.meshes, table.pricing.runs
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
    """Exact memory of a candidate under even stages; None where they are not legal."""
    row, entry = int(space.mesh[candidate]), max(int(space.menu[candidate]), 0)
    costs = table.stage_costs(row, schedule="1f1b", vpp=1, menu=(entry,))
    counts = even_counts(costs)
    if not in_class(costs, counts):
        return None
    layout = layout_of(
        table.pricing,
        space.meshes,
        row,
        schedule=costs.schedule,
        vpp=1,
        menu=costs.menu,
        counts=counts,
    )
    return Held(layout, weigh(table.pricing, layout))


def weigh(workload: Workload, layout: Layout) -> MemoryEstimate:
    """Memory of one layout by the cost model, without times.

    Gradient accumulation is cut to four micro-batches for each stage, except under
    gpipe: then every other schedule has the most micro-batches in flight.

    Returns:
        Memory by stage. [GiB]
    """
    accum = layout.grad_accum
    if layout.schedule != "gpipe":
        accum = min(accum, SATURATED * layout.pp)
    full = layout.model_copy(update={"grad_accum": accum})
    return memory_estimate(price(workload, full, timed=False))


def fewest_gpus(pricing: Pricing) -> Held | None:
    """The smallest cluster of the job's nodes that holds the job in a legal layout.

    Clusters grow from the fewest GPUs whose memory holds the states alone. They have
    whole nodes, or single GPUs of one node where the cluster is partial. Sizes grow
    one by one, then by numbers with many divisors, on which most layouts are legal.
    Below the first such number that holds the job, the first 512 sizes are tried. The
    sizes end where their spaces have 262,144 meshes together.

    Returns:
        Layout and memory; the layout's GPUs are the answer. None where even 64 times
        the nodes of the states do not hold the job: an activation is too large for a
        rank. [-]
    """
    floor = _states_floor(pricing)
    cluster = pricing.topology.cluster
    first = -(-floor // cluster.node.gpus_per_node)
    work = _Work(pricing, after(inf))
    for tried, size in enumerate(_sizes(cluster, floor, first)):
        held = work.held_by(size)
        if held is not None and held.fits:
            between = range(first + NEIGHBOURS, size.nodes)[:SCANNED]
            below = (work.held_by(replace(size, nodes=n)) for n in between)
            return next((h for h in below if h is not None and h.fits), held)
        if work.is_done or (tried == PATIENCE and not work.ever(first)):
            return None
    return None


@dataclass(frozen=True)
class _Size:
    """A cluster's size: nodes, and GPUs of each."""

    nodes: int
    per_node: int


@dataclass
class _Work:
    """Sizes of the cluster that were tried for a job.

    Attributes:
        workload: The job. [-]
        stop: Ends the work. [-]
        meshes: Meshes of the spaces that were looked at. [1]
    """

    pricing: Pricing
    stop: Stop
    meshes: int = 0

    @property
    def is_done(self) -> bool:
        """True where no more sizes are tried."""
        return self.meshes > MESHES

    def held_by(self, size: _Size, *, enough: bool = True) -> Held | None:
        """The most frugal layout on a cluster of a size; None where none is legal."""
        if self.is_done:
            return None
        try:
            there = _least(resized(self.pricing, size.nodes, size.per_node))
            space = enumerate_space(there, self.stop)
            self.stop.check()
            self.meshes += len(space.meshes.tp)
            return _of_space(there, space, enough=enough)
        except BadInputError:
            return None

    def ever(self, first: int) -> bool:
        """True where the largest legal power of two of nodes holds the job, or none is.

        More nodes would only divide the states further, which are small by then.
        """
        per_node = self.pricing.topology.cluster.node.gpus_per_node
        nodes = 1 << (AMPLE * first).bit_length()
        while nodes > 1:
            held = self.held_by(_Size(nodes, per_node), enough=False)
            if held is not None:
                return held.fits
            nodes //= 2
        return True


def _sizes(cluster: Cluster, floor: int, first: int) -> Iterator[_Size]:
    """Sizes in order of trial: GPUs of one node, each next size, round numbers."""
    per_node = cluster.node.gpus_per_node
    if cluster.spec.partial:
        for gpus in range(min(floor, per_node), per_node):
            yield _Size(1, gpus)
    near = range(first, first + NEIGHBOURS)
    powers = [1 << k for k in range((AMPLE * first).bit_length() + 1)]
    round_ones = {base * power for base in ROUND for power in powers}
    far = (n for n in sorted(round_ones) if near.stop <= n <= AMPLE * first)
    for nodes in (*near, *far):
        yield _Size(nodes, per_node)


def resized(pricing: Pricing, nodes: int, per_node: int) -> Pricing:
    """The job on another number of its nodes; a mixed fleet takes the first pool's."""
    cluster = pricing.topology.cluster
    tiers = tuple(
        tier.model_copy(update={"units": ()})
        for tier in cluster.spec.tiers
        if tier.gpus < nodes * per_node
    )
    size = {"nodes": nodes, "tiers": tiers, "out_of_service": (), "pools": ()}
    spec = cluster.spec.model_copy(update=size)
    smaller = resolve_cluster(spec, cluster.catalog)
    if per_node < smaller.node.gpus_per_node:
        domain = min(per_node, smaller.node.scale_up_domain)
        part = {"gpus_per_node": per_node, "scale_up_domain": domain}
        smaller = replace(smaller, node=smaller.node.model_copy(update=part))
    alone = replace(pricing, pools=(), pods=(), stage_pools=())
    return replace(alone, topology=ClusterTopology(smaller))


def _states_floor(pricing: Pricing) -> int:
    """Fewest GPUs whose memory holds the states, divided evenly. [1]."""
    zero = max(pricing.framework.limits.zero_stages)
    row = (1, 0, 1, 1, 0, 1, 1, 1, 1, zero, 1, 1, 1, 0)
    meshes = Meshes.from_rows([row])
    menu = pricing.framework.limits.recompute[:1]
    table = fill_table(pricing, meshes, menu, timed=False)
    ends = table.embedding.unit.static + table.head.unit.static
    states = ends + sum(n * table.units[k].static for k, n in pricing.runs)
    room = max(pricing.gpu.memory_capacity / BLOCK, 1.0)
    return max(1, int(np.ceil(float(np.asarray(states)[0]) / room)))
