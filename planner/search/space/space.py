"""The declared space: every legal outer tuple, and the rule that removed the rest.

A mesh is a tuple of degrees; a candidate adds schedule, chunks and recompute.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from planner.cost.meshes import PP_INSIDE
from planner.cost.pricing import Pricing
from planner.models.layers.blocks import Mlp
from planner.search.space.blocks import named_blocks
from planner.search.space.context_kinds import ContextKinds, scan_rule
from planner.search.space.declared import Space
from planner.search.space.experts import ExpertDegrees
from planner.search.space.fleet import (
    Axis,
    PoolShapes,
    Shape,
    SmallerFleets,
    divisors,
    keeps_to_pools,
    may_idle,
    whole_shapes,
)
from planner.search.space.formats import NarrowGradients, Shards
from planner.search.space.incompatible_pairs import clash_of
from planner.search.space.listing import PP_COLUMN, Listing, packed
from planner.search.space.menus import offered, searched
from planner.search.space.schedules import NO_RECOMPUTE, chunk_counts
from planner.search.space.switches import keeps_full
from planner.search.stop import Stop
from planner.specs.frameworks.switches import FULL
from planner.specs.layouts.axes import ORDERS
from planner.specs.layouts.offload import CATEGORIES, LEAST_ZERO

__all__ = ["Enumerator", "Space", "enumerate_space", "fills"]

MOST_DEFAULT_MICRO_BATCH = 8
"""Sequences in the largest micro-batch of the default space. [1]"""
MOST_DEFAULT_CONTEXT = 64
"""Largest context degree of the default space. [1]"""


class Enumerator:
    """Lists the legal meshes of a job in a fixed order, counting what it drops."""

    def __init__(self, pricing: Pricing, *, priced: bool = True) -> None:
        """Begin a listing.

        Args:
            pricing: The job.
            priced: Leave out kinds whose prices are never best, but never all kinds.
        """
        self.pricing, self.priced = pricing, priced
        self.limits = pricing.framework.limits
        self.search = pricing.search
        self.removed: Counter[str] = Counter()
        self.full = pricing.search.space == "full"
        shares = pricing.offload
        micro_batches = divisors(pricing.sequences)
        self.kinds = ContextKinds(pricing, micro_batches, priced=priced)
        self.narrow = NarrowGradients(pricing)
        self.experts = ExpertDegrees(pricing)
        self.offloaded = [name for name in CATEGORIES if getattr(shares, name) > 0]

    def space(
        self, some: Iterable[tuple[int, ...]] | None = None, stop: Stop | None = None
    ) -> Space:
        """Enumerate meshes, schedules and recompute settings."""
        space = self.listing(some, stop).part(slice(None), self.removed)
        return replace(space, removed=dict(self.removed))

    def listing(
        self, some: Iterable[tuple[int, ...]] | None = None, stop: Stop | None = None
    ) -> Listing:
        """List the meshes of the space, whose candidates are made part by part."""
        stop = stop or Stop()
        mixed = self.pricing.mixed
        menu = self._recompute_menu()
        blocks = [] if mixed else named_blocks(self.pricing)
        hosted: list[tuple[int, ...]] = []
        if mixed and some is None:
            some = self._hosted_rows(stop, hosted)
        some = self.rows() if some is None else some
        rows, hostings = packed(some if menu or blocks else (), stop), tuple(hosted)
        if self.priced:
            menu = searched(self.pricing, rows, menu, self.removed, stop)
        menu = menu if menu or blocks else (NO_RECOMPUTE,)
        alone = self._activations_alone() or mixed
        pp = np.unique(rows[:, PP_COLUMN]).astype(np.int64)
        chunks = chunk_counts(self.pricing, pp, self.removed, full=self.full)
        return Listing(self.pricing, rows, menu, chunks, hostings, has_blocks=not alone)

    def _keep(self, axis: str, value: int) -> bool:
        """Apply the user's limit on an axis, and count what it removes."""
        if self.search.allows(axis, value):
            return True
        self.removed[f"limit:{axis}"] += 1
        return False

    def rows(self) -> Iterator[tuple[int, ...]]:
        """Legal meshes, one by one. [1]."""
        return (row for shape in self._shapes() for row in self._rows(shape))

    def _hosted_rows(
        self, stop: Stop, hosted: list[tuple[int, ...]]
    ) -> Iterator[tuple[int, ...]]:
        """Legal meshes on several pools; the ranks of each pool go to *hosted*. [1]."""
        most = None if self.full else MOST_DEFAULT_MICRO_BATCH
        alike = all(pool.is_like_the_first for pool in self.pricing.stage_pools)
        for shape in self._shapes():
            stop.check()
            for row in self._rows(shape):
                if alike or keeps_to_pools(self.pricing, row, most):
                    hosted.append(shape.hosting)
                    yield row

    def _rows(self, shape: Shape) -> Iterator[tuple[int, ...]]:
        tp, pp, cp, dp, _ = shape
        if not self._keep("dp", dp):
            return
        shards, dropped = self._shards(tp, cp, dp)
        mixed = self.pricing.mixed
        for micro_batch in self._micro_batches(dp):
            micro_batches = self.pricing.sequences // (dp * micro_batch)
            inner = self._inner(tp, pp, cp, dp, micro_batch)
            for sp, kind, (ep, etp), order in inner:
                self.removed.update(dropped)
                worth = self.narrow.worth(shards, tp, ep * etp, self.removed)
                for zero, shard, hpz in shards if mixed else worth:
                    if self._apart(zero, hpz=hpz, tp=tp, pp=pp, cp=cp, ep=ep):
                        continue
                    yield (
                        tp,
                        sp,
                        pp,
                        cp,
                        kind,
                        ep,
                        etp,
                        dp,
                        shard,
                        zero,
                        hpz,
                        micro_batch,
                        micro_batches,
                        order,
                    )

    def _shards(self, tp: int, cp: int, dp: int) -> tuple[list[Shards], Counter[str]]:
        """ZeRO stages and shard groups, and what the rules remove of them."""
        before, self.removed = self.removed, Counter()
        found = list(self._sharding(tp, cp, dp))
        dropped, self.removed = self.removed, before
        return found, dropped

    def _shapes(self) -> Iterator[Shape]:
        """Shapes of the space: those that fill the fleet, or smaller ones too."""
        if len(self.pricing.makers) > 1:
            self.removed["no collectives between GPUs of two makers"] += 1
            return iter(())
        if self.pricing.mixed:
            return PoolShapes(self.pricing, self._axis()).shapes()
        if may_idle(self.pricing) or not self._fills():
            return SmallerFleets(self.pricing, self._axis()).shapes()
        return whole_shapes(self.pricing, self._axis())

    def _axis(self) -> Axis:
        """Degrees that the model can split and that the user allows."""
        return Axis(
            tensor=lambda tp: self._tensor_legal(tp) and self._keep("tp", tp),
            context=lambda tp, cp: self._context_legal(tp, cp) and self._keep("cp", cp),
            pipeline=lambda tp, cp, pp: (
                self._pipeline_legal(pp)
                and self._keep("pp", pp)
                and not self._apart(tp=tp, cp=cp, pp=pp)
            ),
        )

    def _fills(self) -> bool:
        """Tell if some layout fills the fleet, whatever the user's limits."""
        free = self.pricing.search.unlimited()
        return Enumerator(replace(self.pricing, search=free)).fills()

    def fills(self) -> bool:
        """Tell if some layout uses every GPU, within the user's limits."""
        return any(
            self.pricing.sequences % shape.dp == 0
            and self.search.allows("dp", shape.dp)
            for shape in whole_shapes(self.pricing, self._axis())
        )

    def _apart(self, zero: int | None = None, **degrees: int) -> bool:
        """Tell if the framework lacks two choices together; count such cases."""
        rule = clash_of(self.pricing, degrees, zero=zero)
        if rule is not None:
            self.removed[rule] += 1
        return rule is not None

    def _tensor_legal(self, tp: int) -> bool:
        """Heads, KV heads and inner widths divide; inside one scale-up domain."""
        domain = self.pricing.domain
        # The full space has groups over two domains, or wider if the user names them.
        wider = max(2 * domain, self.search.largest("tp") or 0)
        if tp > (wider if self.full else domain):
            self.removed["tp leaves the scale-up domain"] += 1
            return False
        for kind in self.pricing.kinds:
            attention = kind.attention
            if attention.heads % tp:
                self.removed["heads % tp"] += 1
                return False
            groups = getattr(attention, "kv_heads", attention.heads)
            if groups % tp and tp % groups:
                self.removed["kv heads % tp"] += 1
                return False
            dense = kind.ffn if isinstance(kind.ffn, Mlp) else kind.ffn.shared
            if dense.ffn % tp:
                self.removed["ffn % tp"] += 1
                return False
        return True

    def _context_legal(self, tp: int, cp: int) -> bool:
        """Zig-zag chunks (2 cp of them) and tensor splits divide the sequence."""
        if cp > MOST_DEFAULT_CONTEXT and not self.full:
            self.removed["cp above the default space"] += 1
            return False
        if cp > 1 and not self.limits.context_parallel:
            self.removed["the framework has no context parallelism"] += 1
            return False
        if scan_rule(self.pricing, tp, cp):
            self.removed["heads of scans % (tp * cp)"] += 1
            return False
        if self.pricing.training.seq_len % (tp * (2 * cp if cp > 1 else 1)):
            self.removed["sequence % (tp * 2 cp)"] += 1
            return False
        return True

    def _pipeline_legal(self, pp: int) -> bool:
        """Every stage holds a layer or an end, and the framework has pipelines."""
        if pp > 1 and not self.limits.pipeline:
            self.removed["the framework has no pipeline"] += 1
            return False
        if pp > self.pricing.model.layers + (2 if pp > 1 else 0):
            self.removed["more stages than layers"] += 1
            return False
        if pp > 1 and self._activations_alone():
            self.removed["offload of activations needs pp = 1"] += 1
            return False
        return True

    def _activations_alone(self) -> bool:
        """Tell if offloaded activations rule out a pipeline and recompute."""
        alone = self.limits.offloads_activations_alone
        return alone and "activations" in self.offloaded

    def _micro_batches(self, dp: int) -> Iterator[int]:
        """Micro-batches that divide the sequences of a replica."""
        if self.pricing.sequences % dp:
            self.removed["global batch % dp"] += 1
            return
        for micro_batch in divisors(self.pricing.sequences // dp):
            if micro_batch > MOST_DEFAULT_MICRO_BATCH and not self.full:
                self.removed["micro-batch above the default space"] += 1
            elif micro_batch % self.pricing.training.together:
                self.removed["micro-batch of half a pair"] += 1
            elif self._keep("micro_batch", micro_batch):
                yield micro_batch

    def _inner(
        self, tp: int, pp: int, cp: int, dp: int, micro_batch: int
    ) -> Iterator[tuple[int, int, tuple[int, int], int]]:
        """Sequence parallelism, kind of cp, experts and rank order."""
        ranks = tp, cp, dp if self.pricing.mixed else pp * dp
        for sp in self._sequence_parallel(tp):
            for experts in self.experts.of(tp, tp * cp * dp, sp, self.removed):
                held = experts[0] * experts[1]
                kinds = self.kinds.of(ranks, micro_batch, self.removed, experts=held)
                for order in self._orders(pp, dp, tp * cp, experts):
                    for kind in kinds:
                        yield sp, kind, experts, order

    def _sequence_parallel(self, tp: int) -> list[int]:
        legal = self.limits.sequence_parallel if tp > 1 else (False,)
        wanted = self.search.sp
        kept = [int(sp) for sp in legal if wanted in (None, sp) or tp == 1]
        self.removed["limit:sp"] += len(legal) - len(kept)
        return kept

    def _orders(
        self, pp: int, dp: int, inner: int, experts: tuple[int, int]
    ) -> Iterator[int]:
        """Rank orders; all coincide if pp or dp is 1. Pools need pp outside dp."""
        ep, etp = experts
        routed = bool(self.experts.moes)
        names = [n for n in self.limits.orders if self.search.allows_text("order", n)]
        self.removed["limit:order"] += len(self.limits.orders) - len(names)
        if self.pricing.mixed:
            across = [n for n in names if ORDERS.index(n) != PP_INSIDE]
            self.removed["pp inside dp needs pools of one kind"] += len(names) - len(
                across
            )
            yield from map(ORDERS.index, across)
            return
        alike, left = pp == 1 or dp == 1, names
        if routed and pp > 1 and ep * etp != inner:
            left = [name for name in names if ORDERS.index(name) != PP_INSIDE]
        left, of = (left[:1], names[:1]) if alike else (left, names)
        self.removed["pp inside dp needs ep * etp == tp * cp"] += len(of) - len(left)
        yield from map(ORDERS.index, left)

    def _sharding(self, tp: int, cp: int, dp: int) -> Iterator[Shards]:
        """ZeRO stages, shard groups (smaller with hybrid sharding), second copies."""
        ranks = divisors(cp * dp) if self.limits.hpz else [1]
        second = [n for n in ranks if self._keep("hpz", n)]
        for zero in self.limits.zero_stages:
            if not (self._offload_legal(zero) and self._keep("zero_stage", zero)):
                continue
            for replicas in divisors(dp):
                if replicas > 1 and (zero == 0 or not self.limits.hybrid_sharding):
                    break
                shard = cp * dp // replicas
                copies = dp if zero < 2 else replicas
                wrong = self.limits.shards(
                    zero=zero, tp=tp, cp=cp, shard=shard, replicas=copies
                )
                if wrong:
                    self.removed[wrong] += 1
                elif self._keep("dp_shard", shard):
                    yield from ((zero, shard, n) for n in second if n == 1 or zero == 3)

    def _offload_legal(self, zero: int) -> bool:
        """Tell if the ZeRO stage shards what is offloaded, as the framework asks."""
        for name in self.offloaded:
            least = max(
                LEAST_ZERO.get(name, 0),
                self.limits.offload_least(name, getattr(self.pricing.offload, name)),
            )
            if zero < least:
                self.removed[f"offload of {name} needs ZeRO-{least}"] += 1
                return False
        return True

    def _recompute_menu(self) -> tuple[str, ...]:
        known = every = offered(self.pricing)
        if self._activations_alone():
            known = tuple(name for name in every if name == NO_RECOMPUTE)
            dropped = len(every) - len(known)
            self.removed["offload of activations needs recompute none"] += dropped
        kept = [name for name in known if self.search.allows_text("recompute", name)]
        self.removed["limit:recompute"] += len(known) - len(kept)
        whole = keeps_full(self.pricing)
        return tuple(name for name in kept if whole or name != FULL)


def fills(pricing: Pricing) -> bool:
    """Tell if degrees that the user allows use every GPU of a fleet of one kind.

    Returns:
        False where every layout leaves GPUs idle, or there is none. [-]
    """
    return Enumerator(pricing).fills()


def enumerate_space(pricing: Pricing, stop: Stop | None = None) -> Space:
    """List the declared space of a job."""
    return Enumerator(pricing).space(stop=stop)
