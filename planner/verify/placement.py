"""Ranks of every group, listed one by one, against the groups that were priced."""

from collections.abc import Collection, Iterator
from dataclasses import astuple, dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from planner.cost import meshes as axes
from planner.cost.meshes import Groups, Meshes
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.hardware.graph.fabric import Fabric
from planner.hardware.graph.placement import Levels
from planner.hardware.graph.topology import ClusterTopology
from planner.hardware.reading.quantities import BytesPerSecond
from planner.specs.layouts.context import inner_degree
from planner.specs.layouts.layout import Layout

Ints = npt.NDArray[np.int64]
Axes = list[tuple[str, int]]
"""Name and degree of every axis, innermost first. [1]"""
MOST_ROUTED = 256
"""GPUs up to which every flow is routed through the explicit graph. [1]"""
SAME = 1e-9
"""Relative difference of two equal bandwidths. [1]"""


@dataclass(frozen=True)
class View:
    """Network of the groups of an axis while all groups communicate."""

    size: float
    """Ranks of a group. [1]"""
    domains: float
    """Most scale-up domains that a group spans. [1]"""
    ranks_per_domain: float
    """Fewest ranks in a domain, over groups that span several; else the size. [1]"""
    ring_bandwidth: float
    """Rate of a ring through the group. [B/s]"""
    all_to_all_bandwidth: float
    """Rate per rank of bytes that leave the scale-up domain. [B/s]"""
    off_domain: float
    """Share of a rank's peers outside its domain, worst rank. [1]"""


def placement_violations(workload: Workload, layout: Layout) -> Iterator[str]:
    """Check that the priced groups are the groups that the ranks form."""
    pricing = Pricing.of(workload, layout)
    if pricing.mixed:
        for part, pool in zip(pricing.parts, layout.pools, strict=True):
            yield from _pool_violations(part, layout.on_pool(pool))
        return
    topology, meshes = pricing.topology.using(layout.gpus), Meshes.of_layout(layout)
    for axis, members, seen in _axes(pricing, layout, meshes):
        yield from _same_ranks(axis, members, layout.gpus)
        found = view_of(topology.fabric, members)
        yield from _same_view(axis, found, _view_priced(seen))
        if layout.gpus <= MOST_ROUTED:
            deals = axis in ("expert", "ulysses")
            yield from _same_routes(topology, axis, members, seen, deals=deals)
    if layout.pp > 1:
        yield from _same_stages(topology, layout, meshes)


def _pool_violations(part: Workload, layout: Layout) -> Iterator[str]:
    """Check the groups of one pool, as if it hosted as many stages as fit on it."""
    block = layout.tp * layout.cp * layout.dp
    full = layout.model_copy(update={"pp": part.gpus // block})
    topology = ClusterTopology(part.topology.cluster, full.gpus)
    yield from placement_violations(replace(part, topology=topology), full)


def dense_axes(layout: Layout) -> Axes:
    """Axes of the dense parameters; the data axis is shards inside replicas."""
    shards = layout.dp_shard // layout.cp
    data = [("shard", shards), ("replica", layout.dp // shards)]
    return _ordered(layout, [("tp", layout.tp), ("cp", layout.cp)], data)


def expert_axes(layout: Layout) -> Axes:
    """Axes of the experts, over the same ranks."""
    ranks = layout.tp * layout.cp * layout.dp
    data = [("edp", ranks // (layout.etp * layout.ep))]
    return _ordered(layout, [("etp", layout.etp), ("ep", layout.ep)], data)


def _ordered(layout: Layout, inner: Axes, data: Axes) -> Axes:
    """Axes in order: stages outside the data ranks, or between data and inner ranks."""
    stages = [("pp", layout.pp)]
    inside = layout.order == "tp-cp-ep-pp-dp"
    return [*inner, *stages, *data] if inside else [*inner, *data, *stages]


def members_of(degrees: Axes, inside: Collection[str]) -> Ints:
    """Ranks of every group of an axis: ranks that differ in that axis only.

    The coordinates of a rank are the digits of its number in the mixed radix of
    the degrees, innermost first.

    Returns:
        Ranks, ascending in each group. [1], shape (groups, size)
    """
    sizes = [size for _, size in degrees]
    rest = ranks = np.arange(np.prod(sizes))
    group, count = np.zeros_like(ranks), 1
    for name, size in degrees:
        if name not in inside:
            group, count = group + count * (rest % size), count * size
        rest = rest // size
    return np.argsort(group, kind="stable").reshape(count, -1)


def _axes(
    workload: Workload, layout: Layout, meshes: Meshes
) -> Iterator[tuple[str, Ints, Groups]]:
    """Every axis with the ranks of each group and the priced groups."""
    dense, topology = dense_axes(layout), workload.topology
    yield "tensor", members_of(dense, {"tp"}), axes.tensor_groups(topology, meshes)
    yield "context", members_of(dense, {"cp"}), axes.context_groups(topology, meshes)
    yield from _context_axes(layout, topology, meshes)
    shards = members_of(dense, {"cp", "shard"})
    yield "shard", shards, axes.shard_groups(topology, meshes)
    replicas = members_of(dense, {"replica"})
    yield "replica", replicas, axes.replica_groups(topology, meshes)
    if layout.hpz > 1:
        # DeepSpeed counts these groups off from the ranks of the whole world.
        near = [("copy", layout.hpz), ("others", layout.gpus // layout.hpz)]
        members = members_of(near, {"copy"})
        yield "copy", members, axes.copy_groups(topology, meshes)
    if not workload.model.expert_parameters:
        return
    experts = expert_axes(layout)
    groups = axes.expert_tensor_groups(topology, meshes)
    yield "expert tensor", members_of(experts, {"etp"}), groups
    yield "expert", members_of(experts, {"ep"}), axes.expert_groups(topology, meshes)
    copies = axes.expert_data_groups(topology, meshes)
    yield "expert data", members_of(experts, {"edp"}), copies


def _context_axes(
    layout: Layout, topology: ClusterTopology, meshes: Meshes
) -> Iterator[tuple[str, Ints, Groups]]:
    """Ulysses and ring axes of the context ranks; Ulysses ranks are neighbours."""
    if layout.cp == 1:
        return
    inner = inner_degree(layout.cp_kind, layout.cp)
    tensor, _, *outside = dense_axes(layout)
    split = [tensor, ("ulysses", inner), ("ring", layout.cp // inner), *outside]
    dealt = axes.ulysses_groups(topology, meshes)
    yield "ulysses", members_of(split, {"ulysses"}), dealt
    around = axes.outer_context_groups(topology, meshes)
    yield "ring", members_of(split, {"ring"}), around


def _same_ranks(axis: str, members: Ints, gpus: int) -> Iterator[str]:
    """Each rank is in one group."""
    if not np.array_equal(np.sort(members, axis=None), np.arange(gpus)):
        yield f"{axis} groups do not hold each of {gpus} ranks once"


def view_of(fabric: Fabric, members: Ints) -> View:
    """Network of groups, counted from the place of each rank.

    A ring drives one NIC share per rank of the group in a domain. Rings that cross
    the uplinks of a tier unit share them. All-to-all bytes that leave the unit share
    the uplinks, too.

    Args:
        fabric: Domains, tiers and line rates.
        members: Ranks of every group. [1], shape (groups, size)
    """
    size, share = members.shape[1], fabric.nic_share
    group, _, ranks = _stays(fabric, 0, members)
    domains = np.bincount(group)
    crossing = ranks[domains[group] > 1]
    fewest = int(crossing.min()) if crossing.size else size
    inner = [_inside(fabric, members)] if size == 1 or ranks.max() > 1 else []
    outer = [fewest * share] if crossing.size else []
    tiers = [_through(fabric, i + 1, members) for i in range(len(fabric.tiers))]
    off = size - int(ranks.min())
    busiest = max(off / share, *(spill for _, spill in tiers), 0.0)
    return View(
        size=size,
        domains=int(domains.max()),
        ranks_per_domain=fewest,
        ring_bandwidth=min(inner + outer + [rate for rate, _ in tiers]),
        all_to_all_bandwidth=off / busiest if off else share,
        off_domain=off / max(size - 1, 1),
    )


def _inside(fabric: Fabric, members: Ints) -> float:
    """Ring rate of the worst group inside the scale-up domains. [B/s].

    A switch gives every rank a full link. In a mesh a group uses the links between
    the ranks of the group. Copies through host memory share the domain's rate.
    """
    group, domain, ranks = _stays(fabric, 0, members)
    together = ranks > 1
    if not together.any():
        return fabric.full_bandwidth
    links = fabric.scale_up
    if fabric.mesh_link is not None:
        pairs = (ranks - 1) * _slowest_link(fabric, members, group, domain)
        links = BytesPerSecond(pairs[together].min())
    leaving = np.bincount(group)[group] > 1
    senders = np.bincount(domain, weights=ranks - leaving)
    return min(links, fabric.staging / max(float(senders.max()), 1.0))


def _slowest_link(
    fabric: Fabric, members: Ints, group: Ints, domain: Ints
) -> npt.NDArray[np.float64]:
    """Slowest link between the ranks of each stay of a mesh. [B/s]."""
    assert fabric.mesh_link is not None
    if fabric.module == 1:
        return np.full(len(group), fabric.mesh_link)
    homes, modules = _units(fabric, 0)[members], members // fabric.module
    near = [
        len(np.unique(modules[g][homes[g] == d])) == 1
        for g, d in zip(group, domain, strict=True)
    ]
    return np.where(near, fabric.module_link, fabric.mesh_link)


def _stays(fabric: Fabric, level: int, members: Ints) -> tuple[Ints, Ints, Ints]:
    """(group, unit of a level, ranks of the group in the unit), where ranks > 0."""
    unit = _units(fabric, level)[members]
    blocks = int(unit.max()) + 1
    group = np.arange(len(members))[:, None]
    key, ranks = np.unique(group * blocks + unit, return_counts=True)
    return key // blocks, key % blocks, ranks


def _units(fabric: Fabric, level: int) -> Ints:
    """Unit of a level by rank: the listed sizes one after the other, else equal."""
    listed, size = fabric.listed(level), fabric.size(level)
    if listed:
        return np.repeat(np.arange(len(listed)), listed)
    return np.arange(fabric.gpus) // size


def _through(fabric: Fabric, level: int, members: Ints) -> tuple[float, float]:
    """Rate of each ring [B/s], and time of an all-to-all [s/B], through a tier."""
    group, unit, ranks = _stays(fabric, level, members)
    uplinks = _uplinks(fabric, level)
    spans = np.bincount(group)[group] > 1
    rings = np.bincount(unit[spans], minlength=len(uplinks))
    spilled = ranks * (members.shape[1] - ranks)
    load = np.bincount(unit, weights=spilled, minlength=len(uplinks))
    rates = uplinks[rings > 0] / rings[rings > 0]
    return float(rates.min(initial=np.inf)), float((load / uplinks).max())


def _uplinks(fabric: Fabric, level: int) -> npt.NDArray[np.float64]:
    """Uplink rate of each unit of a tier, from the GPUs in the unit. [B/s]."""
    present = np.bincount(_units(fabric, level))
    return np.asarray(present * fabric.nic_share / fabric.tiers[level - 1][1])


def _view_priced(seen: Groups) -> View:
    """View that was priced, from the only row of the groups."""
    return View(*(float(getattr(seen, f.name).item()) for f in fields(View)))


def _same_view(axis: str, found: View, seen: View) -> Iterator[str]:
    """The numbers of two views agree."""
    pairs = zip(fields(View), astuple(found), astuple(seen), strict=True)
    for name, here, there in ((f.name, a, b) for f, a, b in pairs):
        if not np.isclose(here, there, rtol=SAME, atol=0.0):
            yield f"{axis} groups: {name} is {here:g} by their ranks, {there:g} priced"


def _levels(members: Ints) -> Levels:
    """(size, stride) levels, innermost first, whose sums are a group's offsets."""
    offsets = (members[0] - members[0, 0]).tolist()
    assert (members - members[:, :1] == offsets).all(), "groups differ in shape"
    levels: list[tuple[int, int]] = []
    inner = 1
    while inner < len(offsets):
        stride, size = offsets[inner], 1
        while offsets[size * inner : size * inner + 1] == [size * stride]:
            size += 1
        levels.append((size, stride))
        inner *= size
    return tuple(levels) or ((1, 1),)


def _same_routes(
    topology: ClusterTopology, axis: str, members: Ints, seen: Groups, *, deals: bool
) -> Iterator[str]:
    """Flows routed over the explicit graph get the bandwidths that were priced."""
    levels = _levels(members)
    rates = {"ring": (topology.bottleneck(levels, "ring"), seen.ring_bandwidth)}
    if deals:
        routed = topology.bottleneck(levels, "all-to-all")
        rates["all-to-all"] = routed, seen.all_to_all_bandwidth
    for pattern, (found, priced) in rates.items():
        if not np.isclose(found, priced.item(), rtol=SAME, atol=0.0):
            rate = priced.item()
            yield f"{axis} groups: a routed {pattern} gets {found:g} B/s, not {rate:g}"


def _same_stages(
    topology: ClusterTopology, layout: Layout, meshes: Meshes
) -> Iterator[str]:
    """Neighbouring stages see the line rate that was priced."""
    members = members_of(dense_axes(layout), {"pp"})
    rate, crosses = (x.item() for x in axes.stage_bandwidth(topology, meshes))
    pairs = np.stack([members[:, :-1].ravel(), members[:, 1:].ravel()], axis=1)
    homes = _units(topology.fabric, 0)[pairs]
    leaves = bool((homes[:, 0] != homes[:, 1]).any())
    if leaves != crosses:
        yield f"stages in two domains: {leaves} by their ranks, {crosses} priced"
    found = _pair_rate(topology.fabric, pairs)
    if layout.gpus <= MOST_ROUTED:
        found = min(found, topology.bottleneck(_levels(members), "point-to-point"))
    if not np.isclose(found, rate, rtol=SAME, atol=0.0):
        yield f"a stage sends at {found:g} B/s by its ranks, {rate:g} priced"


def _pair_rate(fabric: Fabric, pairs: Ints) -> float:
    """Rate of the slowest pair while every first rank sends to the second. [B/s]."""
    homes = _units(fabric, 0)[pairs]
    leaves = homes[:, 0] != homes[:, 1]
    rates = [fabric.nic_share if leaves.any() else np.inf]
    if not leaves.all():
        near = np.ptp(pairs[~leaves] // fabric.module, axis=1) == 0
        pair = fabric.peer_link(together=bool(near.all()))
        staying = np.bincount(homes[~leaves, 0])
        rates.append(min(pair, fabric.staging / staying.max()))
    for level in range(1, len(fabric.tiers) + 1):
        units, uplinks = _units(fabric, level)[pairs], _uplinks(fabric, level)
        moving = units[units[:, 0] != units[:, 1]]
        out, into = (np.bincount(end, minlength=len(uplinks)) for end in moving.T)
        flows = np.maximum(out, into)
        rates.append((uplinks[flows > 0] / flows[flows > 0]).min(initial=np.inf))
    return float(min(rates))
