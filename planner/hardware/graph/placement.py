"""Bandwidth that the groups of a communicator axis see, from the places of ranks.

Rank r sits on GPU r of the GPUs in service. `Fabric.unit_of` tells the scale-up domain
and the unit of each tier. An axis is nested (size, stride) levels, innermost first. All
groups of an axis talk at once.

Ring model: the ranks of a group in ascending order form one ring. At a domain crossing
all u ranks of the group in that domain drive their own NIC: NCCL opens a channel per
NIC. So a ring at rate 1 puts 1/u on each NIC. The uplinks of a tier unit carry the
unit's GPUs * NIC share / oversubscription, for all rings that cross them together. A
unit that the cluster fills in part brings uplinks for the GPUs it has.

Inside a domain a switch gives any rank its link's full rate. In a mesh u ranks of a
group have u - 1 links each and no others; those inside a module may be faster. NCCL and
RCCL lay u - 1 rings over these links, so each rank sends 1 / (u - 1) to each peer. On a
bus without peer-to-peer every byte goes through host memory. Host memory takes in and
gives out, together, the rate of all links of the domain. Only then does the number of
ranks that talk matter.

A closed form holds where every level tiles domains and tier units, all of one size.
Otherwise all ranks are placed and the worst group counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd, inf, prod

import numpy as np
from numpy.typing import NDArray

from planner.hardware.graph.fabric import Fabric
from planner.hardware.reading.quantities import BytesPerSecond

Levels = tuple[tuple[int, int], ...]
"""Nested (size, stride) levels of an axis, innermost first. [1]"""


@dataclass(frozen=True)
class GroupView:
    """Spans and bandwidths of the groups of an axis while all of them talk.

    Attributes:
        size: Ranks of a group. [1]
        domains: Most scale-up domains that one group spans. [1]
        ranks_per_domain: Fewest ranks of a group in a domain it touches, over the
            groups that span several domains; `size` when none does. [1]
        intra: Every group stays in one domain. [-]
        ring_bandwidth: Line-rate bus bandwidth of a ring all-gather, reduce-scatter
            or all-reduce. [B/s]
        scale_up_bandwidth: Ring bandwidth of the part inside a domain alone; the
            rate of a full domain when no two ranks share one. [B/s]
        all_to_all_bandwidth: Line rate per rank for the bytes of an even all-to-all
            that leave the domain; the NIC share when none do. [B/s]
        off_domain_fraction: Share of a rank's peers outside its domain, worst
            rank. [1]
        tiers: Most units of each tier that one group spans, leaf first. [1]
    """

    size: int
    domains: int
    ranks_per_domain: int
    intra: bool
    ring_bandwidth: float
    scale_up_bandwidth: float
    all_to_all_bandwidth: BytesPerSecond
    off_domain_fraction: float
    tiers: tuple[int, ...]


@dataclass(frozen=True)
class PointToPointView:
    """Bandwidth from rank r to rank r + stride while all such pairs send.

    Attributes:
        bandwidth: Line rate of the worst pair. [B/s]
        crosses_domain: Some pair sits in two scale-up domains. [-]
    """

    bandwidth: float
    crosses_domain: bool


def check_levels(gpus: int, levels: Levels) -> None:
    """Check that levels nest, and that their block tiles the cluster.

    s_1 n_1 divides s_2, s_2 n_2 divides s_3, ...; the block is the last stride times
    the last size.

    Raises:
        ValueError: The levels do not nest, or the block does not divide the GPUs.
    """
    inner = 1
    for size, stride in levels:
        if size < 1 or stride < 1 or stride % inner:
            raise ValueError(
                f"levels {levels} do not nest: stride {stride} of size {size} is no "
                f"positive multiple of {inner}, the extent of the levels inside",
            )
        inner = size * stride
    if gpus % inner:
        raise ValueError(
            f"groups {levels} repeat every {inner} GPUs, which do not divide the "
            f"{gpus} GPUs of the cluster",
        )


@lru_cache(maxsize=1 << 16)
def group_view(fabric: Fabric, levels: Levels) -> GroupView:
    """Spans and bandwidths of the groups of an axis, in closed form where one exists.

    scale-up = switch: link; mesh: (u - 1) * slowest link to a peer;
               bus: min(link, staging / ranks of a domain that send inside it)
    ring = min(scale-up [u > 1], u * share [spans domains],
               w_i * share / o_i [spans units of tier i])
    all-to-all = share * (n - u) / max(n - u, max_i o_i (n - w_i))

    with u ranks of a group per domain and w_i per unit of tier i. Left out: latency,
    protocol efficiency, NICs that a node shares unevenly, path collisions.

    Raises:
        ValueError: The levels do not nest, or do not tile the cluster.
    """
    check_levels(fabric.gpus, levels)
    every = range(len(fabric.tiers) + 1)
    ranks = [_ranks_in_units(fabric, level, levels) for level in every]
    if None in ranks:
        return _placed_view(fabric, levels)
    return _tiled_view(fabric, levels, [r for r in ranks if r is not None])


def _ranks_in_units(fabric: Fabric, level: int, levels: Levels) -> int | None:
    """Ranks of a group in each unit of a level, None if that varies.

    In uneven units the number does not vary if no group leaves a unit. That holds if
    the greatest common divisor of the sizes holds whole groups.
    """
    listed = fabric.listed(level)
    if not listed:
        return _ranks_inside(levels, min(fabric.size(level), fabric.gpus))
    divides = gcd(*listed) % prod(levels[-1]) == 0
    return prod(size for size, _ in levels) if divides else None


def _ranks_inside(levels: Levels, container: int) -> int | None:
    """Ranks of a group in each container that it touches, None if that varies.

    Containers are aligned blocks of GPUs. A level lies inside a container, is cut
    into equal parts, or has one rank per container. Anything else is irregular.
    """
    ranks = 1
    for size, stride in levels:
        extent = size * stride
        if container % extent == 0 or size == 1:
            ranks *= size
        elif container % stride == 0 and extent % container == 0:
            ranks *= container // stride
        elif stride % container:
            return None
    return ranks


def _tiled_view(fabric: Fabric, levels: Levels, ranks: Sequence[int]) -> GroupView:
    """The closed form: every group has `ranks` per domain and per tier unit."""
    n, share, u = prod(size for size, _ in levels), fabric.nic_share, ranks[0]
    tiers = list(zip(ranks[1:], fabric.tiers, strict=True))
    present = min(fabric.domain, fabric.gpus)
    senders = present * (u - (u < n)) // u if n > 1 else 0
    together = _ranks_inside(levels, fabric.module) == u
    inside = _inside(fabric, _links(fabric, u, together=together), u, senders)
    ring = [inside] if u > 1 or n == 1 else []
    ring += [u * share] if u < n else []
    ring += [w * share / o for w, (_, o) in tiers if w < n]
    busiest = max([n - u, *(o * (n - w) for w, (_, o) in tiers)])
    return GroupView(
        size=n,
        domains=n // u,
        ranks_per_domain=u,
        intra=u == n,
        ring_bandwidth=min(ring),
        scale_up_bandwidth=inside,
        all_to_all_bandwidth=share * (n - u) / busiest if u < n else share,
        off_domain_fraction=(n - u) / (n - 1) if n > 1 else 0.0,
        tiers=tuple(n // w for w, _ in tiers),
    )


def _inside(fabric: Fabric, links: float, ranks: int, senders: int) -> float:
    """Ring rate [B/s] of some ranks of a group in a domain with so many senders."""
    if ranks < 2:
        return fabric.full_bandwidth
    return min(links, fabric.staging / max(senders, 1))


def _links(fabric: Fabric, ranks: int, *, together: bool) -> float:
    """Rate [B/s] of a rank's links to the others, of one module or of several."""
    peer = fabric.peer_link(together=together)
    return peer if fabric.mesh_link is None else (ranks - 1) * peer


@dataclass(frozen=True)
class _Visits:
    """Each group's stays in containers: one entry per (group, container touched)."""

    container: NDArray[np.int64]
    ranks: NDArray[np.int64]
    per_group: NDArray[np.int64]
    spanning: NDArray[np.bool_]


def _members(gpus: int, levels: Levels) -> NDArray[np.int64]:
    """Ranks of every group, ascending, of shape (groups, size).

    The digits of a rank are, outermost first, the blocks of all levels, then the size
    of each level and the room between its ranks.
    """
    extents = [1, *(size * stride for size, stride in levels)]
    pairs = list(zip(levels, extents, strict=False))[::-1]
    digits = [n for (size, stride), inner in pairs for n in (size, stride // inner)]
    ranks = np.arange(gpus).reshape(-1, *digits)
    along = range(1, ranks.ndim, 2)
    groups = ranks.transpose(*range(0, ranks.ndim, 2), *along)
    size = prod(size for size, _ in levels)
    return np.ascontiguousarray(groups.reshape(-1, size))


def _visits(fabric: Fabric, level: int, members: NDArray[np.int64]) -> _Visits:
    """Runs of equal container along each group; ascending ranks visit each once."""
    groups, size = members.shape
    where = fabric.unit_of(level, members)
    starts = np.ones((groups, size), dtype=bool)
    starts[:, 1:] = where[:, 1:] != where[:, :-1]
    at = np.flatnonzero(starts)
    per_group = starts.sum(axis=1)
    return _Visits(
        container=where.ravel()[at],
        ranks=np.diff(np.append(at, members.size)),
        per_group=per_group,
        spanning=(per_group > 1)[at // size],
    )


def _uplinks(fabric: Fabric, level: int) -> NDArray[np.float64]:
    """Uplink rates [B/s] of the units of a tier, the last perhaps filled in part."""
    _, oversubscription = fabric.tiers[level - 1]
    present = fabric.ranks_of(level)
    return np.asarray(present * fabric.nic_share / oversubscription)


def _placed_view(fabric: Fabric, levels: Levels) -> GroupView:
    """View of an axis from all ranks placed; the worst group, rank and unit count."""
    members = _members(fabric.gpus, levels)
    n = members.shape[1]
    home, levels_up = _visits(fabric, 0, members), range(1, len(fabric.tiers) + 1)
    tiers = [(_visits(fabric, i, members), _uplinks(fabric, i)) for i in levels_up]
    crossing = home.ranks[home.spanning]
    inside = _placed_inside(fabric, home, members)
    ring = [inside] if home.ranks.max() > 1 or n == 1 else []
    ring += [float(crossing.min()) * fabric.nic_share] if crossing.size else []
    ring += [_ring_through(*tier) for tier in tiers]
    off = n - int(home.ranks.min())
    seconds = [off / fabric.nic_share, *(_spill_seconds(n, *tier) for tier in tiers)]
    return GroupView(
        size=n,
        domains=int(home.per_group.max()),
        ranks_per_domain=int(crossing.min()) if crossing.size else n,
        intra=not crossing.size,
        ring_bandwidth=min(ring),
        scale_up_bandwidth=inside,
        all_to_all_bandwidth=off / max(seconds) if off else fabric.nic_share,
        off_domain_fraction=off / max(n - 1, 1),
        tiers=tuple(int(visits.per_group.max()) for visits, _ in tiers),
    )


def _placed_inside(fabric: Fabric, home: _Visits, members: NDArray[np.int64]) -> float:
    """Ring rate [B/s] inside the worst domain; the last rank of a stay leaves it."""
    senders = np.bincount(home.container, weights=home.ranks - home.spanning)
    last = np.cumsum(home.ranks) - 1
    modules = members.ravel() // fabric.module
    near = modules[last] == modules[last - home.ranks + 1]
    shared = home.ranks > 1
    stays = np.flatnonzero(np.bincount(2 * home.ranks[shared] + near[shared])).tolist()
    links = [_links(fabric, stay // 2, together=stay % 2 == 1) for stay in stays]
    most = int(home.ranks.max())
    return _inside(fabric, min(links, default=inf), most, int(senders.max()))


def _ring_through(visits: _Visits, uplinks: NDArray[np.float64]) -> float:
    """Rate [B/s] of a ring when all that cross a unit share its uplinks."""
    rings = np.bincount(visits.container[visits.spanning], minlength=uplinks.size)
    crossed = rings > 0
    rates = uplinks[crossed] / rings[crossed]
    return float(rates.min(initial=np.inf))


def _spill_seconds(size: int, visits: _Visits, uplinks: NDArray[np.float64]) -> float:
    """Time [s/B] of the busiest uplinks when each rank sends each peer a byte."""
    spilled = visits.ranks * (size - visits.ranks)
    load = np.bincount(visits.container, weights=spilled, minlength=uplinks.size)
    return float((load / uplinks).max())


@lru_cache(maxsize=1 << 16)
def point_to_point_view(fabric: Fabric, stride: int, size: int) -> PointToPointView:
    """Bandwidth from rank r to r + stride in its group, all pairs at once.

    bandwidth = min(scale-up [some pair inside], share [some pair crosses],
                    staging / pairs inside a domain,
                    uplinks(k) / max(flows out of k, flows into k) over tier units k)

    In a mesh scale-up is the one link of the pair. The last rank of a group does
    not send to the first.

    Raises:
        ValueError: The groups do not tile the cluster.
    """
    check_levels(fabric.gpus, ((size, stride),))
    ranks = np.arange(fabric.gpus)
    sender = ranks[ranks // stride % size < size - 1]
    crosses = fabric.unit_of(0, sender) != fabric.unit_of(0, sender + stride)
    rates = [_inner_pairs(fabric, sender[~crosses], stride)]
    rates += [fabric.nic_share] if crosses.any() else []
    tiers = range(1, len(fabric.tiers) + 1)
    rates += [_pair_rate(fabric, tier, sender, stride) for tier in tiers]
    bandwidth = min(rates) if sender.size else fabric.full_bandwidth
    return PointToPointView(bandwidth, crosses_domain=bool(crosses.any()))


def _inner_pairs(fabric: Fabric, sender: NDArray[np.int64], stride: int) -> float:
    """Rate [B/s] of each pair inside a domain, by the ranks that send there."""
    if not sender.size:
        return inf
    busiest = int(np.bincount(fabric.unit_of(0, sender)).max())
    near = sender // fabric.module == (sender + stride) // fabric.module
    pair = fabric.peer_link(together=bool(near.all()))
    return min(pair, fabric.staging / busiest)


def _pair_rate(
    fabric: Fabric, level: int, sender: NDArray[np.int64], stride: int
) -> float:
    """Rate [B/s] of each pair through the busiest uplinks of a tier."""
    source = fabric.unit_of(level, sender)
    target = fabric.unit_of(level, sender + stride)
    leaves = source != target
    uplinks = _uplinks(fabric, level)
    out = np.bincount(source[leaves], minlength=uplinks.size)
    into = np.bincount(target[leaves], minlength=uplinks.size)
    flows = np.maximum(out, into)
    rates = uplinks[flows > 0] / flows[flows > 0]
    return float(rates.min(initial=np.inf))
