"""Numbers of GPUs of a fleet that layouts may use: the sizes that a space holds.

A layout that leaves GPUs idle fills whole nodes, the first nodes in service. A space
holds sizes smaller than the fleet where the user limits ``gpus``. It does so where
nodes are out of service, pods differ in size, or no layout fills the fleet. The full
space of fleets that are not large holds smaller sizes, too.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from itertools import permutations, product
from operator import mul
from typing import NamedTuple

from planner.cost.estimate.host_bound import leaves_the_gpus
from planner.cost.meshes import Meshes
from planner.cost.pricing import Pricing
from planner.cost.workload import Pool, Workload
from planner.search.space.context_kinds import heads_divide
from planner.search.space.incompatible_pairs import clash_of
from planner.specs.layouts.context import CP_KINDS, inner_degree

MOST_IDLE = 32
"""A layout uses all but one in so many of the GPUs of the fullest layout. [1]"""
RATIOS = (Fraction(1), Fraction(2), Fraction(1, 2))
"""Ratios of tp, and of dp, to the first pool, where pools may differ. [1]"""
_FIELDS = tuple(field.name for field in fields(Meshes))
FULL_IDLES = 2048
"""GPUs of the largest fleet that the full space may leave idle in part unasked. [1]"""


class Shape(NamedTuple):
    """Degrees that decide how many GPUs a layout uses, and of which pools. [1]."""

    tp: int
    pp: int
    cp: int
    dp: int
    hosting: tuple[int, ...] = ()
    """Pipeline ranks on each of several pools."""

    @property
    def gpus(self) -> int:
        """Ranks. [1]."""
        return self.tp * self.pp * self.cp * self.dp


def divisors(n: int) -> list[int]:
    """Divisors in ascending order."""
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})


@dataclass(frozen=True)
class Axis:
    """Rules for a degree where others are chosen; each counts what it refuses."""

    tensor: Callable[[int], bool]
    context: Callable[[int, int], bool]
    pipeline: Callable[[int, int, int], bool]


def whole_shapes(workload: Workload, legal: Axis) -> Iterator[Shape]:
    """Degrees whose product is the fleet, innermost axes first."""
    gpus = workload.gpus
    for tp in divisors(gpus):
        for cp in divisors(gpus // tp) if legal.tensor(tp) else ():
            for pp in divisors(gpus // (tp * cp)) if legal.context(tp, cp) else ():
                if legal.pipeline(tp, cp, pp):
                    yield Shape(tp, pp, cp, gpus // (tp * pp * cp))


def widths(workload: Workload, legal: Axis, gpus: int) -> Iterator[tuple[int, int]]:
    """Tensor and context degrees of layouts that need not fill a fleet."""
    heads = max(kind.attention.heads for kind in workload.kinds)
    for tp in _upto(divisors(heads), gpus):
        contexts = divisors(workload.training.seq_len) if legal.tensor(tp) else []
        for cp in _upto(contexts, gpus // tp):
            if legal.context(tp, cp):
                yield tp, cp


class SmallerFleets:
    """Shapes that may leave whole nodes idle.

    Each tp, pp and cp has as many replicas as possible. They divide the batch, fill
    whole nodes, and are allowed by the user. Shapes stay that use at least 31 of 32 of
    the GPUs of the fullest shape. Where the user limits ``gpus``, all sizes within the
    limit stay, with any number of replicas.
    """

    def __init__(self, workload: Workload, legal: Axis) -> None:
        self.workload, self.legal = workload, legal

    def shapes(self) -> Iterator[Shape]:
        """The declared shapes."""
        every = list(self._every())
        most = max((shape.gpus for shape in every), default=0)
        limited = self.workload.search.gpus is not None
        for shape in every:
            if limited or MOST_IDLE * (most - shape.gpus) <= most:
                yield shape

    def _every(self) -> Iterator[Shape]:
        """All shapes on whole nodes, each with the replicas it may have."""
        gpus, layers = self.workload.gpus, self.workload.model.layers
        for tp, cp in widths(self.workload, self.legal, gpus):
            for pp in range(1, min(layers + 2, gpus // (tp * cp)) + 1):
                if self.legal.pipeline(tp, cp, pp):
                    for dp in self._replicas(tp * pp * cp):
                        yield Shape(tp, pp, cp, dp)

    def _replicas(self, each: int) -> list[int]:
        """Numbers of replicas of so many GPUs that the declared space has."""
        search = self.workload.search
        legal = [
            dp
            for dp in self._batch_divisors
            if each * dp <= self.workload.gpus
            and search.allows("gpus", each * dp)
            and search.allows("dp", dp)
            and fills_nodes(self.workload, each * dp)
        ]
        return legal if search.gpus is not None else legal[-1:]

    @cached_property
    def _batch_divisors(self) -> list[int]:
        return divisors(self.workload.sequences)


class PoolShapes:
    """Shapes whose stages lie on several pools, with a run of stages in each pool.

    A stage has tp cp dp ranks, with any dp that divides the batch. Every pool hosts as
    many stages as it holds on whole nodes. In the full space a pool may host one stage
    fewer. Where the user limits ``gpus``, a pool may host any number of stages whose
    total is within the limit.
    """

    def __init__(self, pricing: Pricing, legal: Axis) -> None:
        self.pricing, self.legal = pricing, legal
        self.parts = pricing.parts

    def shapes(self) -> Iterator[Shape]:
        """The declared shapes, listed as they are asked for."""
        sequences, first = self.pricing.sequences, self.parts[0].gpus
        for tp, cp in widths(self.pricing, self.legal, first):
            for dp in _upto(divisors(sequences), first // (tp * cp)):
                blocks = [
                    self._block(pool, tp, cp, dp) for pool in self.pricing.stage_pools
                ]
                if all(blocks):
                    for hosting in self._hostings(tp, cp, blocks):
                        yield Shape(tp, sum(hosting), cp, dp, hosting)

    def _hostings(
        self, tp: int, cp: int, blocks: Sequence[int]
    ) -> Iterator[tuple[int, ...]]:
        """Stages of each pool, of so many GPUs a stage; they may be millions."""
        pairs = zip(self.parts, blocks, strict=True)
        choices = [self._ranks(part, block) for part, block in pairs]
        alike = len(set(blocks)) == 1
        for pp in self._depths(choices):
            few = not alike or self._allows(pp * blocks[0])
            if few and self.legal.pipeline(tp, cp, pp):
                for hosting in dealt_out(pp, choices):
                    if alike or self._allows(sum(map(mul, blocks, hosting))):
                        yield hosting

    def _depths(self, choices: Sequence[Sequence[int]]) -> range:
        """Stages of all pools together; none where a pool cannot host any. [1]."""
        if not all(choices):
            return range(0)
        most = min(sum(map(max, choices)), self.pricing.model.layers + 2)
        return range(sum(map(min, choices)), most + 1)

    def _allows(self, gpus: int) -> bool:
        """Tell if the user allows a layout of so many GPUs."""
        return self.pricing.search.allows("gpus", gpus)

    def _block(self, pool: Pool, tp: int, cp: int, dp: int) -> int:
        """Ranks of a stage on one pool; 0 where the pool's degrees are not legal."""
        own, replicas = tp * pool.wider, dp * pool.more
        if own.denominator > 1 or replicas.denominator > 1:
            return 0
        wide, many = int(own), int(replicas)
        if (wide, many) == (tp, dp):
            return tp * cp * dp
        legal = self.legal.tensor(wide) and self.legal.context(wide, cp)
        divides = self.pricing.sequences % many == 0
        allowed = self.pricing.search.allows("dp", many)
        return wide * cp * many if legal and divides and allowed else 0

    def _ranks(self, part: Workload, block: int) -> list[int]:
        """Numbers of stages, of *block* GPUs each, that a pool may host. [1]."""
        search = self.pricing.search
        legal = [
            ranks
            for ranks in range(1, part.gpus // block + 1)
            if fills_nodes(part, ranks * block)
        ]
        if search.gpus is not None:
            return legal
        return legal[-2:] if search.space == "full" else legal[-1:]


def dealt_out(
    total: int, choices: Sequence[Sequence[int]]
) -> Iterator[tuple[int, ...]]:
    """Ways to make a sum of one number from each list."""
    first, *others = choices
    if not others:
        if total in first:
            yield (total,)
        return
    least, most = sum(map(min, others)), sum(map(max, others))
    for one in first:
        if least <= total - one <= most:
            for rest in dealt_out(total - one, others):
                yield (one, *rest)


def arrangements(pricing: Pricing) -> tuple[Pricing, ...]:
    """A job on each pool of a fleet alone, and on several pools in every order.

    Pools host whole pipeline stages, and data-parallel groups stay in one pool.
    Several pools need a framework with pipelines, and a job that keeps nothing in host
    memory. Pools after the first may have half, or twice, the tp and the dp. That
    needs a framework that allows it, and a model without experts.

    Returns:
        Jobs. On one kind of node the job itself. Where pods differ in size, also the
        job with whole stages in every pod, in order. [-]
    """
    alone = not pricing.framework.limits.pipeline or leaves_the_gpus(pricing)
    if not pricing.pools:
        pods = [] if alone else [pod.name for pod in pricing.pods]
        return (pricing, *([pricing.hosted_by(pods)] if pods else []))
    most = 1 if alone else len(pricing.pools)
    names = [pool.name for pool in pricing.pools]
    orders = (order for n in range(1, most + 1) for order in permutations(names, n))
    return tuple(
        place for order in orders for place in _degrees(pricing.hosted_by(order))
    )


def keeps_to_pools(pricing: Pricing, row: Sequence[int], most: int | None) -> bool:
    """Tell if a mesh is whole, and within the limits, on pools with other degrees.

    Args:
        pricing: The job on several pools.
        row: Fields of a mesh. [1]
        most: Sequences in the largest micro-batch of the space; None: no limit. [1]

    Returns:
        True where every pool has whole micro-batches, shards and heads, all allowed.
    """
    at = dict(zip(_FIELDS, row, strict=True))
    return all(
        _keeps(pricing, at, pool, most) and _splits(pricing, at, pool)
        for pool in pricing.stage_pools
        if not pool.is_like_the_first
    )


def _keeps(pricing: Pricing, at: dict[str, int], pool: Pool, most: int | None) -> bool:
    """Tell if micro-batches and shards are whole and allowed on one pool."""
    search, limits = pricing.search, pricing.framework.limits
    micro, shard = at["micro_batch"] / pool.more, at["dp_shard"] * pool.more
    if micro.denominator > 1 or shard.denominator > 1 or int(shard) % at["cp"]:
        return False
    if most is not None and micro > most:
        return False
    dp = int(at["dp"] * pool.more)
    replicas = dp if at["zero"] < 2 else dp * at["cp"] // int(shard)
    wrong = limits.shards(
        zero=at["zero"],
        tp=int(at["tp"] * pool.wider),
        cp=at["cp"],
        shard=int(shard),
        replicas=replicas,
    )
    wrong = wrong or _apart(pricing, at, pool)
    allowed = search.allows("micro_batch", int(micro))
    return wrong is None and allowed and search.allows("dp_shard", int(shard))


def _apart(pricing: Pricing, at: dict[str, int], pool: Pool) -> str | None:
    """Rule of two choices of a pool that the framework lacks together, or None."""
    degrees = {axis: at[axis] for axis in ("pp", "cp", "ep", "hpz")}
    degrees["tp"] = int(at["tp"] * pool.wider)
    return clash_of(pricing, degrees, zero=at["zero"])


def _splits(workload: Workload, at: dict[str, int], pool: Pool) -> bool:
    """Tell if tensor ranks of one pool split tokens and heads as is allowed."""
    tp, limits = int(at["tp"] * pool.wider), workload.framework.limits
    known = tp == 1 or bool(at["sp"]) in limits.sequence_parallel
    asked = tp == 1 or workload.search.sp in (None, bool(at["sp"]))
    dealt = inner_degree(CP_KINDS[at["cp_kind"]], at["cp"])
    return known and asked and heads_divide(workload, tp, dealt)


def _degrees(pricing: Pricing) -> Iterator[Pricing]:
    """A job with equal tp and dp on all pools, and with other degrees if allowed."""
    yield pricing
    dense = not pricing.model.expert_parameters
    if pricing.framework.limits.pool_degrees == "same" or not dense:
        return
    pairs = list(product(RATIOS, repeat=2))
    for ratios in product(pairs, repeat=len(pricing.stage_pools) - 1):
        if any(ratio != 1 for pair in ratios for ratio in pair):
            first, *others = pricing.stage_pools
            hosts = [
                replace(pool, wider=wider, more=more)
                for pool, (wider, more) in zip(others, ratios, strict=True)
            ]
            yield replace(pricing, stage_pools=(first, *hosts))


def _upto(values: list[int], most: int) -> list[int]:
    return [value for value in values if value <= most]


def fills_nodes(workload: Workload, gpus: int) -> bool:
    """Tell if ranks fill whole nodes, or nodes may be used in part.

    Returns:
        True where the layout can be placed.
    """
    cluster = workload.topology.cluster
    return cluster.spec.partial or gpus % cluster.node.gpus_per_node == 0


def may_idle(workload: Workload) -> bool:
    """Tell if layouts need not fill the fleet, by fleet and user's limits alone.

    Returns:
        True where the user limits gpus, nodes are out of service, or pods differ. In
        the full space of fleets that are not large, always True.
    """
    spec, search = workload.topology.cluster.spec, workload.search
    uneven = any(tier.units for tier in spec.tiers)
    small = search.space == "full" and workload.gpus <= FULL_IDLES
    return search.gpus is not None or bool(spec.dead) or uneven or small
