"""Brute force: every split of every candidate, one after the other.

The reference that search is tested against. Brute force shares the integer table, the
simulator and the memory count with the search, but no bounds.
"""

from collections.abc import Iterator
from itertools import product
from math import comb, prod
from typing import NamedTuple

import numpy as np

from planner.cost.pipeline.layer_kinds import kinds_per_stage
from planner.cost.pipeline.memory_rows import fits
from planner.cost.pipeline.splits import Counts, step_ns
from planner.cost.table.table import CostTable
from planner.search.space.blocks import block_counts
from planner.search.space.space import Space
from planner.specs.table import StageCosts

CAP = 20_000
"""Most complete plans that :func:`best_of_space` prices unasked. [1]"""


class TooManyPlansError(ValueError):
    """Brute force would take too long; the message has both numbers."""


class Best(NamedTuple):
    """The fastest complete plan of a space."""

    step_s: float
    """Step, straggler factor included. [s]"""
    candidate: int
    """Index into the space. [1]"""
    counts: Counts
    """Layers by stage, kind and menu entry. [1]"""


def splits(costs: StageCosts) -> Iterator[Counts]:
    """Every split of the declared class, whether it fits or not.

    A virtual stage takes every number of layers from the fewest to the most. The
    layers of a kind on a stage are dealt out to the menu in every way. A candidate
    with a block has a single split.

    Args:
        costs: The inner problem.

    Yields:
        Layers. [1], shape (stages, kinds, menu)
    """
    if costs.block:
        yield block_counts(costs)
        return
    shape = (costs.stages, len(costs.layers), len(costs.menu))
    for layers in _layer_counts(costs, 0, costs.layer_count):
        held = kinds_per_stage(costs.runs, len(costs.layers), layers)
        cells = [list(_dealt(int(n), len(costs.menu))) for n in held.ravel()]
        for choice in product(*cells):
            yield np.array(choice, dtype=np.int64).reshape(shape)


def _layer_counts(costs: StageCosts, stage: int, left: int) -> Iterator[list[int]]:
    """Layers of this and all later stages that add up to *left*."""
    if stage == costs.stages:
        yield from [[]] if left == 0 else []
        return
    later = (costs.stages - stage - 1) * costs.most_layers
    fewest = max(costs.fewest_layers(stage), left - later)
    for here in range(fewest, min(costs.most_layers, left) + 1):
        for rest in _layer_counts(costs, stage + 1, left - here):
            yield [here, *rest]


def _dealt(layers: int, entries: int) -> Iterator[tuple[int, ...]]:
    """Ways to deal alike layers out to the entries of a menu."""
    if entries == 1:
        yield (layers,)
        return
    for first in range(layers + 1):
        for rest in _dealt(layers - first, entries - 1):
            yield (first, *rest)


def count_plans(costs: StageCosts) -> int:
    """Number of splits that :func:`splits` yields, without listing them.

    Stage by stage, with ``c`` layers before the stage and ``n`` layers on it::

        ways(i, c + n) += ways(i - 1, c) prod_k C(n_k + M - 1, M - 1)

    where ``n_k`` are the stage's layers of kind k and M the entries of the menu.

    Args:
        costs: The inner problem.

    Returns:
        Number of splits. [1]
    """
    if costs.block:
        return 1
    ways = {0: 1}
    for stage in range(costs.stages):
        after: dict[int, int] = {}
        for seen, count in ways.items():
            for here in range(costs.fewest_layers(stage), costs.most_layers + 1):
                upto = seen + here
                if upto <= costs.layer_count:
                    more = count * _choices(costs, seen, here)
                    after[upto] = after.get(upto, 0) + more
        ways = after
    return ways.get(costs.layer_count, 0)


def _choices(costs: StageCosts, seen: int, here: int) -> int:
    """Ways to choose the recompute of the layers after the first *seen*."""
    rest = costs.layer_count - seen - here
    held = kinds_per_stage(costs.runs, len(costs.layers), (seen, here, rest))[1]
    more = len(costs.menu) - 1
    return prod(comb(int(n) + more, more) for n in held)


def cheapest_split(costs: StageCosts) -> tuple[int, Counts] | None:
    """The fastest split that fits, by simulating each.

    Args:
        costs: The inner problem.

    Returns:
        Step before the straggler factor [ns], and layers by stage, kind and menu
        entry [1]. The first of equal splits; None when no split fits.
    """
    best: tuple[int, Counts] | None = None
    for counts in splits(costs):
        if fits(costs, counts):
            value = step_ns(costs, counts)
            if best is None or value < best[0]:
                best = value, counts
    return best


def candidate_costs(table: CostTable, space: Space, candidate: int) -> StageCosts:
    """Cut the inner problem of one candidate out of the table.

    Args:
        table: Priced meshes.
        space: Candidates on them.
        candidate: Index into the space. [1]

    Returns:
        The inner problem.
    """
    return table.stage_costs(
        int(space.mesh[candidate]),
        schedule=space.schedule(candidate),
        vpp=int(space.vpp[candidate]),
        menu=space.choices(candidate),
        hosting=space.hosting(candidate),
        block=space.block(candidate),
    )


def best_of_space(table: CostTable, space: Space, cap: int = CAP) -> Best | None:
    """The fastest plan of a whole space that fits, by pricing every plan.

    Args:
        table: Priced meshes.
        space: Candidates on them.
        cap: Most complete plans to price. [1]

    Returns:
        The plan, the first of equal plans; None when nothing fits.

    Raises:
        TooManyPlansError: The space has more complete plans than *cap*.
    """
    problems = [candidate_costs(table, space, c) for c in range(len(space))]
    plans = sum(map(count_plans, problems))
    if plans > cap:
        raise TooManyPlansError(
            f"{plans:,} complete plans in {len(space):,} candidates; brute force "
            f"prices at most {cap:,}"
        )
    best: Best | None = None
    for candidate, costs in enumerate(problems):
        found = cheapest_split(costs)
        if found is not None:
            step = found[0] * costs.slowdown / 1e9
            if best is None or step < best.step_s:
                best = Best(step, candidate, found[1])
    return best
