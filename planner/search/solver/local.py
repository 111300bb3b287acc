"""Good splits of one candidate: rounded optima, improved a layer at a time."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from planner.cost.meshes import Floats, Ints
from planner.cost.pipeline.duration_lines import DurationLines, Points
from planner.cost.pipeline.layer_kinds import kinds_per_stage
from planner.cost.pipeline.linear import Linear
from planner.cost.pipeline.memory_rows import which_fit
from planner.cost.pipeline.splits import Counts, graph_of, stages_by_rank
from planner.schedules.simulator import critical_paths, makespans
from planner.search.bounds.memory_bounds import most_layers
from planner.search.bounds.paths import in_class
from planner.search.solver.dual import Cuts
from planner.specs.table import StageCosts

OFFSETS = (0.0, 0.25, 0.5, 0.75)
"""Offsets at which running sums of layers are rounded. [1]"""
ENDS = 32
"""Stages that a layer may leave, and as many that it may reach. [1]"""
TRIES = 32
"""Neighbours simulated in one step. [1]"""
LEARNED = 4
"""Critical paths added in one step. [1]"""
PATIENCE = 10
"""Steps without a better split after which a descent ends. [1]"""


class Split(NamedTuple):
    """A split that fits, and its step."""

    value: int
    """Simulated step. [ns]"""
    counts: Counts
    """Layers by stage, kind and menu entry. [1]"""


def fastest(costs: StageCosts, listed: Iterable[Counts]) -> Split | None:
    """The fastest of some splits.

    Args:
        costs: The inner problem.
        listed: Splits; those outside the class or the memory are left out.
    """
    found = fitting(costs, list(listed))
    if not found:
        return None
    x = DurationLines.of(costs).at(np.array(found))
    steps = makespans(graph_of(costs), x, costs.p2p)
    best = int(steps.argmin())
    return Split(int(steps[best]), found[best])


def fitting(costs: StageCosts, splits: Sequence[Counts]) -> list[Counts]:
    """Splits in the class that fit the memory."""
    inside = [split for split in splits if in_class(costs, split)]
    if not inside:
        return []
    admitted = which_fit(costs, np.array(inside))
    return [split for split, one in zip(inside, admitted, strict=True) if one]


class Descender:
    """Walks from split to split, a layer moved in each step.

    The known paths tell which neighbours may be better. The simulator tells which are
    better, and their critical paths join the known paths. The walk goes on through
    worse splits for a while, never to a split seen before. The order is fixed.
    """

    def __init__(self, cuts: Cuts) -> None:
        self.cuts, self.costs = cuts, cuts.costs
        self.lines = [cuts.lines[index] for index in cuts.active()]
        self.seen: set[bytes] = set()
        self.best: Split | None = None

    def run(self, starts: Iterable[Counts]) -> Split | None:
        """Improve the best of some splits.

        Args:
            starts: Splits; those outside the class or the memory are left out.
        """
        here = self._step(self._legal(list(starts)))
        waited = 0
        while here is not None and waited < PATIENCE and not self.cuts.stop.reached:
            before = self.best
            here = self._step(self._neighbours(here.counts))
            waited = 0 if self.best is not before else waited + 1
        return self.best

    def _legal(self, splits: Sequence[Counts]) -> list[Counts]:
        """Splits that are new, in the class, and fit."""
        keys = {split.tobytes(): split for split in splits}
        new = [split for key, split in keys.items() if key not in self.seen]
        self.seen |= keys.keys()
        return fitting(self.costs, new)

    def _step(self, splits: Sequence[Counts]) -> Split | None:
        """Simulate some splits; returns the best of them."""
        if not splits:
            return None
        x = self.cuts.durations.at(np.array(splits))
        graph, p2p = graph_of(self.costs), self.costs.p2p
        steps = makespans(graph, x, p2p)
        order = np.argsort(steps, kind="stable")
        chosen = sorted({*range(min(LEARNED, len(splits))), *order[:LEARNED].tolist()})
        _, paths = critical_paths(graph, x[:, chosen], p2p)
        self.lines += self.cuts.add(paths)
        first = int(order[0])
        found = Split(int(steps[first]), splits[first])
        if self.best is None or found.value < self.best.value:
            self.best = found
        return found

    def _neighbours(self, counts: Counts) -> list[Counts]:
        """The most promising splits that differ by one layer's place or entry."""
        moved = self._moves(counts)
        if not len(moved):
            return []
        lengths = _lengths(self.lines, moved)
        order, found = np.argsort(lengths, kind="stable")[: 8 * TRIES], list[Counts]()
        for start in range(0, len(order), TRIES):
            found += self._legal(list(moved[order[start : start + TRIES]]))
            if len(found) >= TRIES:
                break
        return found

    def _moves(self, counts: Counts) -> Counts:
        """Splits with one layer moved off the heaviest stages, as an array."""
        costs, layers = self.costs, counts.sum(axis=(1, 2))
        weights = self._weights(counts)
        leave = np.flatnonzero(layers > np.array(costs.fewest))
        reach = np.flatnonzero(layers < costs.most_layers)
        leave = leave[np.argsort(-weights[leave], kind="stable")[:ENDS]]
        reach = reach[np.argsort(weights[reach], kind="stable")[:ENDS]]
        if len(costs.layers) == 1:
            return _moved_entries(counts, leave, reach)
        return _moved_layers(costs, counts, leave, reach)

    def _weights(self, counts: Counts) -> Floats:
        """Time that a layer on each stage adds to the longest known path. [ns]."""
        longest = max(self.lines, key=lambda line: line.value(counts))
        weights: Floats = longest.factors.min(axis=(1, 2)).astype(np.float64)
        return weights


def _lengths(lines: Sequence[Linear], splits: Counts) -> Floats:
    """The longest of the known paths at each split. [ns]."""
    factors = np.array([line.factors.ravel() for line in lines], dtype=np.float64)
    constants = np.array([line.constant for line in lines], dtype=np.float64)
    flat = splits.reshape(len(splits), -1).astype(np.float64)
    longest: Floats = (flat @ factors.T + constants).max(axis=1)
    return longest


def _moved_entries(counts: Counts, leave: Ints, reach: Ints) -> Counts:
    """Splits of one layer kind, with a layer moved to any stage and menu entry."""
    moves = [
        (stage, entry, other, its)
        for stage in leave.tolist()
        for entry in np.flatnonzero(counts[stage, 0]).tolist()
        for other in reach.tolist()
        for its in range(counts.shape[2])
        if stage != other
    ]
    moves += [
        (stage, entry, stage, its)
        for stage, entry in zip(*np.nonzero(counts[:, 0]), strict=True)
        for its in range(counts.shape[2])
        if its != entry
    ]
    columns = np.array(moves, dtype=np.int64).reshape(-1, 4).T
    splits = np.repeat(counts[None], columns.shape[1], axis=0)
    which = np.arange(columns.shape[1])
    splits[which, columns[0], 0, columns[1]] -= 1
    splits[which, columns[2], 0, columns[3]] += 1
    return splits


def _moved_layers(
    costs: StageCosts, counts: Counts, leave: Ints, reach: Ints
) -> Counts:
    """Splits of several layer kinds, with a layer moved; layers stay in order."""
    layers = counts.sum(axis=(1, 2)).tolist()
    splits = []
    for stage in leave.tolist():
        for other in reach.tolist():
            if stage != other:
                moved = list(layers)
                moved[stage] -= 1
                moved[other] += 1
                splits.append(in_order(costs, moved, counts))
    return np.array(splits, dtype=np.int64).reshape(-1, *counts.shape)


def in_order(costs: StageCosts, layers: Sequence[int], like: Points) -> Counts:
    """A split with these layers a stage, and entries in the shares of another.

    Args:
        costs: The inner problem.
        layers: Layers of every stage. [1], shape (stages,)
        like: Layers, whole or not. [1], shape (stages, kinds, menu)
    """
    held = kinds_per_stage(costs.runs, len(costs.layers), layers)
    whole = np.maximum(like.sum(axis=2, keepdims=True), 1e-9)
    ends = np.cumsum(like / whole, axis=2) * held[:, :, None]
    ends = np.floor(ends + 0.5).astype(np.int64)
    ends[:, :, -1] = held
    counts: Counts = np.diff(ends, axis=2, prepend=0)
    return counts


def rounded(costs: StageCosts, points: Points) -> list[Counts]:
    """Whole splits near a fractional split.

    One way rounds the running sum of the ranks' loads, and then the layers of each
    chunk of a rank. The other way rounds the running sum over the stages.

    Args:
        costs: The inner problem.
        points: Layers. [1], shape (stages, kinds, menu)

    Returns:
        Splits; of these some may lie outside the class or the memory.
    """
    stages = points.sum(axis=(1, 2))
    by_rank = stages_by_rank(costs)
    found = []
    for offset in OFFSETS:
        found.append(_steps(stages, offset))
        loads = np.minimum(
            _steps(stages[by_rank].sum(axis=1), offset), most_layers(costs)
        )
        layers = np.zeros(costs.stages, dtype=np.int64)
        low = np.array(costs.fewest)
        for rank, own in enumerate(by_rank):
            layers[own] = _dealt(stages[own], int(loads[rank]), low[own], costs)
        found.append(layers)
    return [
        in_order(costs, layers.tolist(), points)
        for layers in found
        if layers.sum() == costs.layer_count
    ]


def _steps(values: Floats, offset: float) -> Ints:
    """Round the running sum; the total does not change."""
    ends = np.floor(np.cumsum(values) + offset + 1e-6).astype(np.int64)
    ends[-1] = round(float(values.sum()))
    return np.diff(ends, prepend=0)


def _dealt(shares: Floats, layers: int, low: Ints, costs: StageCosts) -> Ints:
    """Layers of each chunk of a rank, rounded to whole numbers near the shares."""
    held: Ints = np.maximum(np.floor(shares + 1e-6).astype(np.int64), low)
    while held.sum() != layers:
        sign = 1 if held.sum() < layers else -1
        room = held < costs.most_layers if sign > 0 else held > low
        if not room.any():
            break
        gap = np.where(room, sign * (shares - held), -np.inf)
        held[int(gap.argmax())] += sign
    return held
