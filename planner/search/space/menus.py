"""Recompute kinds of a search, without the kinds that can never be best."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from planner.cost.kernels import is_unfused
from planner.cost.memory.recompute_modules import combinations
from planner.cost.meshes import Floats, Ints, Meshes, Rows
from planner.cost.pricing import Pricing
from planner.cost.table.table import CostTable, fill_table
from planner.search.stop import Stop
from planner.specs.layouts.recompute import parts_of_kind

CORE = "core_attn"
"""Module that a search leaves out of combinations where attention is fused.

Megatron-Core's transformer_config.py warns that the module is not needed then. It frees
one number per head and token, for a second run of the core. [text]"""
MOST_KINDS = 8
"""Kinds up to which the full space has every combination. [1]"""
SAMPLE = 64
"""Meshes by which the convex part is chosen where there are more kinds. [1]"""
CHUNK = 4096
"""Meshes priced at once to compare kinds. [1]"""
BEATEN = "recompute kind that another beats on every mesh"
BY_CONVEX = "recompute kind off the convex part of the full space"
"""Rules that count the combinations left out of a space. [text]"""

Pairs = npt.NDArray[np.bool_]
"""True where the first kind beats the second. [bool], shape (kinds, kinds)"""


def offered(pricing: Pricing) -> tuple[str, ...]:
    """Kinds of recompute that a job's space may hold, before the user's limit.

    The default space has the framework's plain kinds, and combinations of modules that
    published recipes have. Kinds that the user lists by name are added. The full space
    has every combination of the framework's modules, too. A fused attention core is
    left out.

    Returns:
        Names: plain kinds, then combinations, with fewer modules first. [text]
    """
    plain, search = pricing.framework.limits.recompute, pricing.search
    others = [name for name in combinations(pricing) if name not in plain]
    if search.recompute is not None:
        others = [name for name in others if search.allows_text("recompute", name)]
    elif search.space == "full":
        fused = not is_unfused(pricing)
        others = [n for n in others if not (fused and CORE in parts_of_kind(n))]
    else:
        others = [n for n in others if n in pricing.framework.limits.recompute_recipes]
    return (*plain, *others)


def searched(
    pricing: Pricing,
    rows: Rows,
    menu: tuple[str, ...],
    removed: Counter[str],
    stop: Stop | None = None,
) -> tuple[str, ...]:
    """The kinds of a space that may be best on some mesh.

    Combinations that :func:`beaten` drops are counted. Plain kinds stay even if beaten,
    as do those of recipes unless the user lists kinds, so that a default space does not
    depend on prices. With more than ``MOST_KINDS``
    kinds, combinations that nobody asked for by name are limited to the convex part.
    The declared full space holds no other combinations.

    Returns:
        The kinds that are searched, in the order of *menu*. [text]
    """
    limits, asked = pricing.framework.limits, pricing.search.recompute
    plain = (*limits.recompute, *(limits.recompute_recipes if asked is None else ()))
    if len(rows) == 0 or set(menu) <= set(plain):
        return menu
    if pricing.search.recompute is None and len(menu) > MOST_KINDS:
        convex = convex_part(pricing, rows, menu)
        left = tuple(name for name in menu if name in plain or name in convex)
        removed[BY_CONVEX] += len(menu) - len(left)
        menu = left
    if pricing.aim.kernel:
        # A kind that takes longer may yet compute less.
        return menu
    gone = beaten(pricing, rows, menu, stop) - set(plain)
    removed[BEATEN] += len(gone)
    return tuple(name for name in menu if name not in gone)


def beaten(
    pricing: Pricing,
    rows: Rows,
    menu: tuple[str, ...],
    stop: Stop | None = None,
) -> frozenset[str]:
    """Kinds that another beats on every mesh and pool, for every kind of layer.

    Kind f beats e where no cell of f is larger. The cells are forward, backward, saved,
    and saved plus transient. Every idle moment adds held memory, and held plus working
    memory. Of alike kinds the first beats the others. Then e is never strictly best.

    Take a plan with layers under e and put f in their place. No duration grows, so
    neither does any path of the operation graph, nor the step. The memory of a rank at
    a moment is a sum of two terms. The first is held memory times micro-batches in
    flight, over all layers. The second is the largest transient of the stage at work,
    whose own micro-batch is in flight. Let l be the layer of that transient under f.
    Every other layer holds no more than before. Nor does the sum of l grow,
    ``in flight x saved + transient = (in flight - 1) saved + (saved + transient)``. So
    the new plan fits wherever the old plan did.
    """
    stop = stop or Stop()
    size = len(menu)
    no_worse = ~np.eye(size, dtype=bool)
    better = np.zeros((size, size), dtype=bool)
    for at in _chunks(len(rows)):
        if not no_worse.any():
            break
        stop.check()
        some = Meshes.from_rows(rows[at])
        each = (fill_table(part, own, menu) for part, own in pricing.on_parts(some))
        cells = np.concatenate([_cells(table) for table in each])
        for e in range(size):
            no_worse[:, e] &= (cells <= cells[:, [e]]).all(axis=(0, 2))
            better[:, e] |= (cells < cells[:, [e]]).any(axis=(0, 2))
    first = np.arange(size)[:, None] < np.arange(size)
    beats: Pairs = no_worse & (better | first)
    return frozenset(np.array(menu)[beats.any(axis=0)].tolist())


def _chunks(count: int) -> Iterator[Ints]:
    """Indices of rows, a few at a time; the first few are spread over all rows."""
    spread = np.unique(np.linspace(0, count - 1, min(SAMPLE, count)).astype(np.int64))
    yield spread
    for start in range(0, count, CHUNK):
        yield np.arange(start, min(start + CHUNK, count))


def _cells(table: CostTable) -> Ints:
    """Times and memory to compare. [ns] and [block], shape (cells, kinds, meshes)."""
    columns = [
        table.forward,
        table.backward,
        table.saved,
        table.saved + table.transient,
    ]
    for idle in table.idle:
        columns += [idle.layers, idle.layers + idle.largest]
    shape = table.forward.shape
    return np.concatenate([np.broadcast_to(each, shape) for each in columns])


def convex_part(pricing: Pricing, rows: Rows, menu: tuple[str, ...]) -> frozenset[str]:
    """Kinds on the convex front of a model's time and saved activations.

    Time and memory are sums over all layers for one micro-batch, relative to the first
    kind. The mean over ``SAMPLE`` meshes counts. A kind is on the front where some
    exchange rate of time for memory makes it the cheapest.
    """
    some = Meshes.from_rows(rows[next(_chunks(len(rows)))])
    first, own = pricing.on_parts(some)[0]
    table = fill_table(first, own, menu)
    counts = np.zeros(len(pricing.kinds))
    for kind, count in pricing.runs:
        counts[kind] += count
    time, held = (
        _relative(np.tensordot(counts, column, axes=1))
        for column in (table.forward + table.backward, table.saved)
    )
    return frozenset(menu[index] for index in _hull(time, held))


def _relative(totals: Floats) -> Floats:
    """Mean over the meshes, relative to the first kind. [1], shape (kinds,)."""
    mean: Floats = (totals / np.maximum(totals[:1], 1.0)).mean(axis=1)
    return mean


def _hull(time: Floats, held: Floats) -> list[int]:
    """Corners of the lower left convex hull, from the fastest on."""
    corners: list[int] = []
    for at in np.lexsort((held, time)).tolist():
        if corners and held[at] >= held[corners[-1]]:
            continue
        while len(corners) > 1 and _bends_up(time, held, (*corners[-2:], at)):
            corners.pop()
        corners.append(at)
    return corners


def _bends_up(time: Floats, held: Floats, points: tuple[int, int, int]) -> bool:
    """Tell if the middle of three points lies on or above the line of the others."""
    a, b, c = points
    line = (time[b] - time[a]) * (held[c] - held[a])
    return bool((time[c] - time[a]) * (held[b] - held[a]) >= line)
