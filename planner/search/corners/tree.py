"""Bounds by the corners of boxes, where nearly all layers have their stages."""

import heapq

import numpy as np

from planner.cost.meshes import Ints
from planner.cost.pipeline.corners import CornerPaths, Corners, corner_durations
from planner.cost.pipeline.duration_lines import DurationLines
from planner.cost.pipeline.layer_kinds import kinds_per_stage
from planner.cost.pipeline.memory_rows import fits
from planner.cost.pipeline.splits import graph_of
from planner.cost.reach import Mask
from planner.schedules.simulator import critical_paths, makespans
from planner.search.bounds.boxes import Box, stages_decide
from planner.search.bounds.paths import ShapePaths
from planner.search.corners.lessons import Cut, corners_like, keep_corners
from planner.search.solver.local import Split
from planner.specs.table import StageCosts

FEW = 0.125
"""Layers beyond the fewest of all stages, for each stage, up to which corners are
looked at, ours. [1]

The corner of the first box has all other layers.
"""
MOST_CORNERS = 20_000
"""Boxes that one candidate is cut into, ours: 2 kB each with a hundred stages. [1]"""
MOST_TAUGHT = 2000
"""Boxes that a candidate hands on to others, ours. [1]"""
MOST_SIMULATED = 1000
"""Simulations that the completion of a corner may take, ours. [1]"""
NEVER = int(np.iinfo(np.int64).max)
"""Bound of what holds no split that fits. [ns]"""


def has_few_left(costs: StageCosts) -> bool:
    """Tell if the fewest layers of all stages are nearly the whole model.

    A class without extra layers has so few splits then that programs settle it soon.

    Returns:
        True where corners of boxes are worth a look.
    """
    few = costs.layer_count - sum(costs.fewest) <= FEW * costs.stages
    one_pool = stages_decide(costs) and not costs.hosts
    return few and one_pool and costs.extra_layers > 0


class CornerTree:
    """The splits of one candidate in boxes, each bounded by its lower corner.

    Durations only grow with the layers of a stage, and the step with durations. So no
    split in a box is faster than the simulated step at the least durations in the box.
    A box is cut by the first stage, in an order, with more than its fewest layers: each
    part has a layer more there, and no more than the fewest on the stages before. The
    stages where a layer more is slower than asked for come first. They rule themselves
    out, and no other part has more there.
    """

    def __init__(self, costs: StageCosts, bound: int, shapes: ShapePaths) -> None:
        """Begin with the boxes of the last candidate of the class, or with one.

        Args:
            costs: An inner problem with few layers left.
            bound: Lower bound on its step. [ns]
            shapes: What the search knows of the shape.
        """
        self.costs, self.shapes = costs, shapes
        self.graph, self.lines = graph_of(costs), DurationLines.of(costs)
        self.all, self.fit = Box.whole(costs), Box.of(costs)
        self.nodes: list[tuple[int, int, Cut]] = []
        self.closed: list[Cut] = []
        self.settled, self.made, self.cuts = NEVER, 0, 0
        self.best: Split | None = None
        one = Cut(self.all.fewest[None], self.all.most[None])
        start = corners_like(costs, shapes) or one
        self._keep(start, np.maximum(self._steps(start), bound), NEVER)
        self.taught = self.bound

    @property
    def bound(self) -> int:
        """Lower bound on every split; ``NEVER`` where none fits. [ns]."""
        return min(self.nodes[0][0] if self.nodes else NEVER, self.settled)

    @property
    def stuck(self) -> bool:
        """True where no box is left that may be cut, or there are too many."""
        done = not self.nodes or self.settled <= self.nodes[0][0]
        return done or self.made > MOST_CORNERS

    def refine(self, enough: int | None) -> None:
        """Cut the box with the least bound.

        Args:
            enough: A bound above this rules a box out. [ns]
        """
        bound, _, box = heapq.heappop(self.nodes)
        if box.fewest.sum() == self.costs.layer_count:
            self._settle(bound, box)
            return
        self.cuts += 1
        if self.cuts & (self.cuts - 1) == 0:
            self._complete(box)
        most = NEVER if enough is None else enough
        free, above = self._above(box)
        steps = self._steps(above)
        out = steps > most
        self._keep(above.take(out), np.maximum(steps[out], bound), most)
        order = np.argsort(-steps, kind="stable")
        parts = _parts(box, free[order]).take(~out[order])
        there = self._holds(parts, self.all)
        parts, steps = parts.take(there), steps[order][~out[order]][there]
        if len(self.costs.layers) > 1:
            steps = self._steps(parts)
        self._keep(parts, np.maximum(steps, bound), most)

    def _above(self, box: Cut) -> tuple[Ints, Cut]:
        """Stages that may have a layer more, and the part of the box with it. [1]."""
        free = np.flatnonzero(box.fewest < box.most)
        more = np.eye(len(box.fewest), dtype=np.int64)[free]
        above = Cut(box.fewest + more, np.tile(box.most, (len(free), 1)))
        there = self._holds(above, self.all)
        return free[there], above.take(there)

    def _holds(self, boxes: Cut, loads: Box) -> Mask:
        """Tell which boxes may hold a split with these loads of ranks."""
        return Box(loads.low, loads.high, *boxes).holds(self.costs)

    def _steps(self, boxes: Cut) -> Ints:
        """Step at the corner of each box. [ns]."""
        x = corner_durations(self.lines, self._corners(boxes))
        return makespans(self.graph, x, self.costs.p2p)

    def _corners(self, boxes: Cut) -> Corners:
        return Corners.of(self.costs, *boxes)

    def _keep(self, boxes: Cut, bounds: Ints, enough: int) -> None:
        """Queue boxes, but those that do not fit, or are slower than asked for."""
        fit, out = self._holds(boxes, self.fit), bounds > enough
        self.settled = min([self.settled, *bounds[fit & out].tolist()])
        self.closed.append(boxes.take(out | ~fit))
        for at in np.flatnonzero(fit & ~out).tolist():
            self.made += 1
            entry = int(bounds[at]), self.made, boxes.take(at)
            heapq.heappush(self.nodes, entry)

    def _settle(self, bound: int, box: Cut) -> None:
        """Note the only split of a box, whose step is the bound."""
        self.closed.append(Cut(*(each[None] for each in box)))
        if self._found(box.fewest):
            self.settled = min(self.settled, bound)

    def _complete(self, box: Cut) -> None:
        """Find a split: put one layer after the other where the step is least."""
        layers = box.fewest
        left = self.costs.layer_count - int(layers.sum())
        if left * self.costs.stages > MOST_SIMULATED:
            return
        for _ in range(left):
            _, above = self._above(Cut(layers, self.all.most))
            above = above.take(self._holds(above, self.fit))
            if not len(above.fewest):
                return
            layers = above.fewest[int(self._steps(above).argmin())]
        self._found(layers)

    def _found(self, layers: Ints) -> bool:
        """Simulate a split of the class; True where it fits."""
        costs, here = self.costs, Cut(layers[None], layers[None])
        held = kinds_per_stage(costs.runs, len(costs.layers), layers.tolist())
        counts = held[:, :, None]
        if not self._holds(here, self.fit)[0] or not fits(costs, counts):
            return False
        value = int(self._steps(here)[0])
        if self.best is None or value < self.best.value:
            self.best = Split(value, counts)
        return True

    def teach(self) -> None:
        """Keep all boxes, which hold every split of the class, and a path of each."""
        left = [Cut(box.fewest[None], box.most[None]) for *_, box in self.nodes]
        columns = zip(*self.closed, *left, strict=True)
        boxes = Cut(*(np.concatenate(column) for column in columns))
        self.taught = self.bound
        if len(boxes.fewest) > MOST_TAUGHT:
            return
        corners = self._corners(boxes)
        x = corner_durations(self.lines, corners)
        _, paths = critical_paths(self.graph, x, self.costs.p2p)
        counts = np.array([path.counts for path in paths])
        p2p = np.array([path.p2p for path in paths])
        found = CornerPaths.of(self.costs, corners, counts, p2p)
        keep_corners(self.costs, self.shapes, boxes, found)


def _parts(box: Cut, stages: Ints) -> Cut:
    """Parts of a box by the first of some stages with more than the fewest layers."""
    more = np.eye(len(box.fewest), dtype=np.int64)[stages]
    before = np.cumsum(more, axis=0) - more
    most = np.where(before > 0, box.fewest, box.most)
    return Cut(box.fewest + more, most)
