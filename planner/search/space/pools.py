"""Shapes and meshes on several pools: what is legal has to be legal on each pool."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from operator import mul

from planner.cost.meshes import Meshes
from planner.cost.pricing import Pricing
from planner.cost.workload import Pool, Workload
from planner.search.space.context_kinds import heads_divide
from planner.search.space.fleet import Axis, Shape, divisors, fills_nodes, upto, widths
from planner.search.space.incompatible_pairs import clash_of
from planner.specs.layouts.context import CP_KINDS, inner_degree

_FIELDS = tuple(field.name for field in fields(Meshes))


class PoolShapes:
    """Shapes whose stages lie on several pools, with a run of stages in each pool.

    A stage has tp cp dp ranks, with any dp that divides the batch. Every pool hosts as
    many stages as it holds on whole nodes. In the full space a pool may host one stage
    fewer. Where the user limits ``gpus``, a pool may host any number of stages whose
    total is within the limit.
    """

    def __init__(self, workload: Pricing, legal: Axis) -> None:
        self.workload, self.legal = workload, legal
        self.parts = workload.parts

    def shapes(self) -> Iterator[Shape]:
        """The declared shapes, listed as they are asked for.

        Yields:
            tp, pp, cp, dp and the ranks of every pool. [1]
        """
        sequences, first = self.workload.sequences, self.parts[0].gpus
        for tp, cp in widths(self.workload, self.legal, first):
            for dp in upto(divisors(sequences), first // (tp * cp)):
                blocks = [
                    self._block(pool, tp, cp, dp) for pool in self.workload.stage_pools
                ]
                if all(blocks):
                    for hosting in self._hostings(tp, cp, blocks):
                        yield Shape(tp, sum(hosting), cp, dp, hosting)

    def _hostings(
        self, tp: int, cp: int, blocks: Sequence[int]
    ) -> Iterator[tuple[int, ...]]:
        """Stages of each pool, of so many GPUs a stage, one after the other.

        A fleet has more of them than fit the memory where the user limits ``gpus``.
        """
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
        most = min(sum(map(max, choices)), self.workload.model.layers + 2)
        return range(sum(map(min, choices)), most + 1)

    def _allows(self, gpus: int) -> bool:
        """Tell if the user allows a layout of so many GPUs."""
        return self.workload.search.allows("gpus", gpus)

    def _block(self, pool: Pool, tp: int, cp: int, dp: int) -> int:
        """Ranks of a stage on one pool; 0 where the pool's degrees are not legal."""
        own, replicas = tp * pool.wider, dp * pool.more
        if own.denominator > 1 or replicas.denominator > 1:
            return 0
        wide, many = int(own), int(replicas)
        if (wide, many) == (tp, dp):
            return tp * cp * dp
        legal = self.legal.tensor(wide) and self.legal.context(wide, cp)
        divides = self.workload.sequences % many == 0
        allowed = self.workload.search.allows("dp", many)
        return wide * cp * many * (legal and divides and allowed)

    def _ranks(self, part: Workload, block: int) -> list[int]:
        """Numbers of stages, of *block* GPUs each, that a pool may host. [1]."""
        search = self.workload.search
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
    """Ways to make a sum of one number from each list.

    Args:
        total: The sum. [1]
        choices: Numbers in ascending order, one or more in each list. [1]

    Yields:
        One number from each list, the first lists' least first. [1]
    """
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


def keeps_to_pools(workload: Pricing, row: Sequence[int], most: int | None) -> bool:
    """Tell if a mesh is whole, and within the limits, on pools with other degrees.

    Args:
        workload: The job on several pools.
        row: Fields of a mesh. [1]
        most: Sequences in the largest micro-batch of the space; None: no limit. [1]

    Returns:
        True where every pool has whole micro-batches, shards and heads, all allowed.
    """
    at = dict(zip(_FIELDS, row, strict=True))
    return all(
        _keeps(workload, at, pool, most) and _splits(workload, at, pool)
        for pool in workload.stage_pools
        if not pool.is_like_the_first
    )


def _keeps(workload: Pricing, at: dict[str, int], pool: Pool, most: int | None) -> bool:
    """Tell if micro-batches and shards are whole and allowed on one pool."""
    search, limits = workload.search, workload.framework.limits
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
    wrong = wrong or _apart(workload, at, pool)
    allowed = search.allows("micro_batch", int(micro))
    return wrong is None and allowed and search.allows("dp_shard", int(shard))


def _apart(workload: Pricing, at: dict[str, int], pool: Pool) -> str | None:
    """Rule of two choices of a pool that the framework lacks together, or None."""
    degrees = {axis: at[axis] for axis in ("pp", "cp", "ep")}
    degrees["tp"] = int(at["tp"] * pool.wider)
    hybrid = at["dp_shard"] < at["cp"] * at["dp"]
    return clash_of(workload, degrees, zero=at["zero"], hybrid=hybrid)


def _splits(workload: Workload, at: dict[str, int], pool: Pool) -> bool:
    """Tell if tensor ranks of one pool split tokens and heads as is allowed."""
    tp, limits = int(at["tp"] * pool.wider), workload.framework.limits
    known = tp == 1 or bool(at["sp"]) in limits.sequence_parallel
    asked = tp == 1 or workload.search.sp in (None, bool(at["sp"]))
    dealt = inner_degree(CP_KINDS[at["cp_kind"]], at["cp"])
    return known and asked and heads_divide(workload, tp, dealt)
