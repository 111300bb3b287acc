"""The kinds of context parallelism that a search tries on given degrees."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from planner.cost.memory.communicators import communication_bytes
from planner.cost.memory.context_buffers import context_buffers
from planner.cost.meshes import Floats, Meshes
from planner.cost.pricing import Pricing
from planner.cost.time.columns import Context
from planner.cost.time.context_parallel import context_exchange, ring_chunks
from planner.cost.workload import Workload
from planner.models.layers.blocks import ScanBlock
from planner.specs.layouts.context import (
    CP_KINDS,
    MIXED,
    PLAIN,
    inner_degree,
    mixed_kind,
)

NOWHERE = CP_KINDS.index("all-gather")
"""Kind of a layout without context ranks. [1]"""
Ranks = tuple[int, int, int]
"""Tensor ranks, context ranks, and all other ranks of a layout. [1]"""
BY_LIMIT = "limit:cp_kind"
BY_HEADS = "heads % (tp * ulysses)"
BY_ANOTHER = "another kind of cp is no slower and needs no more"


class ContextKinds:
    """Kinds that framework, heads and user allow, and that no other kind beats.

    The default space has the framework's first kind alone. The full space has all
    kinds; so has any space where the user names some. Without prices the first legal
    kind is taken.

    Experts' exchanges may hide beside the passes of another micro-batch. Then a slower
    backward may make a forward shorter. There the declared space has every plain kind,
    even if beaten. It has Ulysses inside a ring only where no other kind beats that.
    """

    def __init__(
        self, pricing: Pricing, micro_batches: Sequence[int], *, priced: bool = True
    ) -> None:
        self.pricing, self.priced = pricing, priced
        self.micro_batches = list(micro_batches)
        self.known: dict[Ranks, tuple[list[list[int]], Counter[str]]] = {}

    def of(
        self, ranks: Ranks, micro_batch: int, removed: Counter[str], *, experts: int = 1
    ) -> list[int]:
        """Kinds to try on some degrees.

        Returns:
            Indices into ``CP_KINDS``; ``NOWHERE`` alone for one context rank. [1]
        """
        if ranks[1] == 1:
            return [NOWHERE]
        if ranks not in self.known:
            self.known[ranks] = self._looked_at(ranks)
        fronts, dropped = self.known[ranks]
        kinds, legal = fronts[self.micro_batches.index(micro_batch)], fronts[-1]
        if self._shortens_forwards(experts):
            kinds = [kind for kind in legal if kind < len(PLAIN) or kind in kinds]
        removed.update(dropped)
        removed[BY_ANOTHER] += len(legal) - len(kinds)
        return kinds

    def _looked_at(self, ranks: Ranks) -> tuple[list[list[int]], Counter[str]]:
        """Kinds to try by micro-batch, then all legal kinds; and counts of the rest."""
        dropped: Counter[str] = Counter()
        legal = list(self._legal(*ranks[:2], dropped))
        if not self.priced:
            legal = legal[:1]
        if len(legal) < 2:
            return [legal] * (len(self.micro_batches) + 1), dropped
        prices = _prices(self.pricing, ranks, legal, self.micro_batches)
        fronts = [[legal[i] for i in undominated(of_one)] for of_one in prices]
        return [*fronts, legal], dropped

    def _shortens_forwards(self, experts: int) -> bool:
        """Tell if a slower backward may make a forward shorter.

        Each pass shows half of the exchanges that hide beside neither pass.
        """
        return self.pricing.profile.ep_overlap and experts > 1

    def _legal(self, tp: int, cp: int, dropped: Counter[str]) -> Iterator[int]:
        limits, search = self.pricing.framework.limits, self.pricing.search
        every = search.space == "full" or search.cp_kind is not None
        for family in limits.cp_kinds if every else limits.cp_kinds[:1]:
            for kind in _members(family, cp):
                if not search.allows_context(kind):
                    dropped[BY_LIMIT] += 1
                elif not heads_divide(self.pricing, tp, inner_degree(kind, cp)):
                    dropped[BY_HEADS] += 1
                else:
                    yield CP_KINDS.index(kind)


def undominated(prices: Floats) -> list[int]:
    """Rows that no other row matches or beats everywhere; of equal rows the first.

    Two layouts that differ in the kind of cp alone differ in four prices. These are the
    exchanges of the layers each way, the host's launches of a ring's chunks, their
    buffers, and NCCL's communicators. Step
    time and memory never fall when one of the prices grows. A schedule's end is the
    longest path of its operations. Hidden collectives show ``max`` and ``min`` of both
    sides, and memory adds up. So a kind whose prices are all at least those of another
    kind is never better. Experts' exchanges hidden beside other passes are an
    exception, see :class:`ContextKinds`.

    Args:
        prices: Times and memory. [s] and [B], shape (kinds, prices)
    """
    no_more = (prices[:, None, :] <= prices[None, :, :]).all(axis=2)
    first = np.arange(len(prices))
    beats = no_more & (~no_more.T | (first[:, None] < first[None, :]))
    kept: list[int] = np.flatnonzero(~beats.any(axis=0)).tolist()
    return kept


def _prices(
    pricing: Pricing, ranks: Ranks, kinds: list[int], micro_batches: list[int]
) -> npt.NDArray[np.float64]:
    """Times and memory of each kind, (micro-batches, kinds, prices)."""
    tp, cp, dp = ranks
    rows: list[tuple[int, ...]] = [
        (tp, 0, 1, cp, kind, 1, 1, dp, cp * dp, 0, 1, micro_batch, 1, 0)
        for micro_batch in micro_batches
        for kind in kinds
    ]
    columns: list[Floats] = []
    for part, meshes in pricing.on_parts(Meshes.from_rows(rows)):
        context = Context.of(part, meshes)
        columns.append(communication_bytes(part, meshes))
        for layer in pricing.kinds:
            columns += [*context_exchange(context, layer)]
            columns += [ring_chunks(context, layer) * part.profile.host_ring]
            copied = part.recipe.cp_repeats_kv
            columns += [context_buffers(layer, meshes, repeated=copied)]
    return np.stack(columns, axis=1).reshape(len(micro_batches), len(kinds), -1)


def _members(family: str, cp: int) -> Iterator[str]:
    """Kinds of a family on cp ranks; the mixed family has a kind per divisor."""
    if family != MIXED:
        yield family
        return
    named = (mixed_kind(inner) for inner in range(2, cp) if cp % inner == 0)
    yield from (kind for kind in named if kind in CP_KINDS)


def scan_rule(workload: Workload, tp: int, cp: int) -> bool:
    """Tell if tensor and context ranks cannot share out a scan or compressed keys.

    Returns:
        True where heads are not whole, or nobody splits the sequence. [bool]
    """
    cores = [kind.attention for kind in workload.kinds]
    if cp > 1 and not all(core.splits_sequence for core in cores):
        return True
    scans = [core for core in cores if isinstance(core, ScanBlock)]
    if not scans or tp * cp == 1:
        return False
    splits = workload.framework.limits.splits_scans
    return not (splits and all(scan.shared_out(tp, cp) for scan in scans))


def heads_divide(workload: Workload, tp: int, inner: int) -> bool:
    """Tell if every rank that Ulysses deals to gets whole heads.

    Query heads have to divide. Key heads have to, unless the framework copies them.

    Returns:
        True where heads are whole. [bool]
    """
    if inner == 1:
        return True
    copies = workload.framework.limits.ulysses_copies_keys
    for kind in workload.kinds:
        heads, ranks = kind.attention.heads, tp * inner
        keys = getattr(kind.attention, "kv_heads", heads)
        copied = copies and keys and ranks % keys == 0
        if heads % ranks or (keys % ranks and not copied):
            return False
    return True
