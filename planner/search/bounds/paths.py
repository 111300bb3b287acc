"""Paths through the ranks of a schedule, from which bounds are made."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.cost.pipeline.layer_kinds import kinds_per_stage
from planner.cost.pipeline.path_columns import PathColumns, WeightedPath
from planner.cost.pipeline.splits import (
    Counts,
    durations,
    graph_of,
    place_of,
    splits_backward,
    stage_vectors,
)
from planner.cost.table.mixed import quickest
from planner.schedules.simulator import Path, rank_paths
from planner.schedules.slots import Slots
from planner.search.bounds.boxes import Box, stages_decide
from planner.search.bounds.pool_bounds import balanced_layers
from planner.specs.layouts.layout import even_layers
from planner.specs.table import StageCosts

MOST_BINDING = 200
"""Paths that are kept of one shape, the latest. [1]"""
MOST_SPLITS = 4
"""Good splits that are kept of one shape, the latest. [1]"""
MOST_BOXES = 1000
"""Boxes that are kept of one shape. [1]"""
MOST_DECIDING = 500
"""Paths that ruled whole splits out and are kept of one shape, the latest. [1]"""
MOST_MEANS = 40
"""Weighted means that are kept of one shape, the latest. [1]"""
MOST_LATEST = 128
"""Candidates, the latest, whose paths and programs are kept, ours: a MB each. [1]"""


Shape = tuple[object, ...]


def shape_of(costs: StageCosts) -> Shape:
    """Key of the operation graph of an inner problem."""
    return (
        costs.schedule,
        costs.pp,
        costs.vpp,
        costs.micro_batches,
        costs.scatter_every,
        costs.overlap_gather,
        costs.overlap_scatter,
    )


def lessons_of(costs: StageCosts) -> Shape:
    """Key of the problems that teach each other multipliers, boxes and splits.

    Whatever one problem of a shape finds holds for all. But the best multipliers of
    several pools are those of the places of the slow ones: the key is of ranks that lie
    alike on pools in the same order of speed. On one pool it is that of the shape.
    """
    times = [quickest(host) for host in costs.hosts]
    slower = tuple(np.argsort(times, kind="stable").tolist())
    return (*shape_of(costs), costs.pool_of_rank, slower)


def class_of(costs: StageCosts) -> Shape:
    """Key of the splits of an inner problem, whatever fits: problems share boxes.

    Returns:
        The key; problems with equal keys have equal paths and classes.
    """
    return (*lessons_of(costs), costs.runs, costs.most_layers, costs.fewest)


class ShapePaths:
    """Paths through every rank of a schedule's shape, found once per search.

    And what candidates of a shape teach each other, those of several pools by order.

    There are three families. The first has all the work of the rank, from the first
    forward to reach the rank to the last backward to leave. The second has the longest
    path with equal stages and free transfers. The third has the longest path with the
    durations of the shape's first candidate, transfers and collectives included. Any
    path is a bound for every candidate of the shape.
    """

    def __init__(self) -> None:
        self.known: dict[Shape, PathColumns] = {}
        self.work: dict[tuple[object, ...], PathColumns] = {}
        self.binding: dict[Shape, list[Path]] = {}
        self.means: dict[Shape, list[WeightedPath]] = {}
        self.decided: dict[Shape, list[Path]] = {}
        self.best: dict[Shape, list[Counts]] = {}
        self.taught: Counter[Shape] = Counter()
        self.cases: dict[Shape, tuple[Box, list[WeightedPath | None]]] = {}
        self.corners: dict[Shape, Any] = {}
        self.latest: dict[object, Any] = {}

    def of_work(self, costs: StageCosts) -> PathColumns:
        """First family of paths, which takes no graph."""
        key = (costs.schedule, costs.pp, costs.vpp, costs.micro_batches)
        if key not in self.work:
            self.work[key] = PathColumns.of([_work_family(costs)])
        return self.work[key]

    def of(self, costs: StageCosts) -> PathColumns:
        """Paths of a candidate's operation graph."""
        key = shape_of(costs)
        if key not in self.known:
            self.known[key] = PathColumns.of(_families(costs))
        return self.known[key]

    def knows(self, costs: StageCosts) -> bool:
        """Tell if the graph of a shape was built already.

        Returns:
            True where all its families of paths are known.
        """
        return shape_of(costs) in self.known

    def bound(self, costs: StageCosts) -> list[Path]:
        """Paths on which bounds of other candidates of the shape rest."""
        return self.binding.get(lessons_of(costs), [])

    def deciding(self, costs: StageCosts) -> list[Path]:
        """Paths that ruled whole splits of candidates of the shape out."""
        return self.decided.get(lessons_of(costs), [])

    def keep_deciding(self, costs: StageCosts, paths: Sequence[Path]) -> None:
        """Remember paths that ruled whole splits of a candidate out."""
        known = [*self.deciding(costs), *paths]
        self.decided[lessons_of(costs)] = known[-MOST_DECIDING:]

    def splits(self, costs: StageCosts) -> list[Counts]:
        """Good splits of other candidates of the shape and the menu's length.

        Returns:
            The latest splits. [1], each of shape (stages, kinds, menu)
        """
        known = self.best.get(lessons_of(costs), [])
        return [split for split in known if split.shape[2] == len(costs.menu)]

    def keep_split(self, costs: StageCosts, split: Counts) -> None:
        """Remember a good split of a candidate."""
        key = lessons_of(costs)
        others = [s for s in self.best.get(key, []) if not np.array_equal(s, split)]
        self.best[key] = [split, *others][:MOST_SPLITS]

    def keep_cases(
        self, costs: StageCosts, leaves: Sequence[tuple[Box, WeightedPath | None]]
    ) -> None:
        """Remember into which boxes the splits of a candidate were cut.

        The finest cut of a shape stays, up to the most boxes of one shape.
        """
        if self.count_cases(costs) <= len(leaves) <= MOST_BOXES:
            columns = zip(*(box for box, _ in leaves), strict=True)
            boxes = Box(*(np.array(column, dtype=np.int64) for column in columns))
            self.cases[class_of(costs)] = boxes, [mean for _, mean in leaves]

    def keep_latest(self, candidate: object, paths: Any) -> None:
        """Keep what only the latest candidates are to find again: it takes memory."""
        self.latest[candidate] = paths
        if len(self.latest) > MOST_LATEST:
            del self.latest[next(iter(self.latest))]

    def take_latest(self, candidate: object) -> Any | None:
        """Hand over what was kept of one candidate; None where it is gone."""
        return self.latest.pop(candidate, None)

    def cases_like(
        self, costs: StageCosts
    ) -> tuple[Box, list[WeightedPath | None]] | None:
        """Boxes of another candidate of the shape and class.

        Returns:
            Boxes that hold every split, and weighted paths that bound each; None
            where none are known, or where stages do not decide.
        """
        return self.cases.get(class_of(costs)) if stages_decide(costs) else None

    def count_cases(self, costs: StageCosts) -> int:
        """Number of boxes into which candidates of the shape have cut the splits.

        Returns:
            Boxes; 0 where none are known, or where stages do not decide. [1]
        """
        known = self.cases_like(costs)
        return 0 if known is None else len(known[1])

    def lessons(self, costs: StageCosts) -> int:
        """Number of times that multipliers were found for the shape."""
        return self.taught[lessons_of(costs)]

    def fresh(
        self, costs: StageCosts, seen: tuple[int, int]
    ) -> tuple[list[WeightedPath], tuple[int, int]]:
        """Weighted paths of a shape that were not seen yet.

        Returns:
            Means of the families that are known, then multipliers, the latest first;
            and what is seen now.
        """
        key = lessons_of(costs)
        of_work, known = self.of_work(costs), self.known.get(shape_of(costs))
        families = [of_work] if known is None else [known]
        sums = [each.weighted() for each in families]
        means = [mean for some in sums for mean in some][seen[1] :]
        lessons = min(self.taught[key] - seen[0], MOST_MEANS)
        latest = self.means.get(key, [])[:lessons]
        return [*means, *latest], (self.taught[key], sum(map(len, sums)))

    def teach(
        self, costs: StageCosts, paths: Sequence[Path], weights: Sequence[float]
    ) -> WeightedPath | None:
        """Keep the paths that bound one candidate, for others of the shape.

        Returns:
            The weighted sum of the paths; None without any.
        """
        key = lessons_of(costs)
        known = self.binding.get(key, [])
        seen = {path.counts.tobytes() for path in known}
        fresh = [path for path in paths if path.counts.tobytes() not in seen]
        self.binding[key] = [*known, *fresh][-MOST_BINDING:]
        if paths and (mean := WeightedPath.of(paths, weights)).weight > 0:
            self.taught[key] += 1
            self.means[key] = [mean, *self.means.get(key, [])][:MOST_MEANS]
            return mean
        return None


def _families(costs: StageCosts) -> list[list[Path]]:
    """Find the three families of a shape."""
    slots, graph = Slots(costs.pp, costs.vpp), graph_of(costs)
    equal, split = [0] * slots.n_slots, 1 if splits_backward(costs) else 0
    for stage in range(slots.stages):
        equal[slots.f(stage)], equal[slots.b(stage)] = 1, 2 - split
        equal[slots.w(stage)] = split
    x = durations(costs, stage_vectors(costs, even_counts(costs)))
    return [
        _work_family(costs),
        rank_paths(graph, equal, 0),
        rank_paths(graph, x, costs.p2p),
    ]


def _work_family(costs: StageCosts) -> list[Path]:
    return [work_path(costs, rank) for rank in range(costs.pp)]


def work_path(costs: StageCosts, rank: int) -> Path:
    """Path that reaches a rank, stays for all its operations, and drains.

    ``sum_{q<r} f_q,0 + m sum_j (f_r,j + b_r,j + w_r,j) + sum_{q<r} b_q,0 +
    optimizer``. The rank's stream starts with the first micro-batch's chunk 0, and
    ends with the backward of the last micro-batch's chunk 0. Where the backward is
    split, the stream ends with a weight gradient, after which nothing drains. Of two
    directions, the direction that reaches the rank first starts the stream.
    """
    slots = Slots(costs.pp, costs.vpp)
    counts = np.zeros(slots.n_slots, dtype=np.int64)
    split, place = 1 if splits_backward(costs) else 0, place_of(costs)
    micros = place.micros(costs.micro_batches)
    first = place.stage(rank, int(place.both_ways and 2 * rank >= costs.pp))
    ahead = first % place.depth
    for before in range(first - ahead, first):
        counts[slots.f(before)], counts[slots.b(before)] = 1, 1 - split
    for stage in place.of_rank(rank):
        counts[[slots.f(stage), slots.b(stage)]] = micros
        counts[slots.w(stage)] = micros * split
    counts[slots.opt(rank)] = 1
    return Path(counts, (2 - split) * ahead)


def even_counts(costs: StageCosts, entry: int = 0) -> Counts:
    """The even split with one menu entry everywhere; even in time on several pools."""
    layers = even_layers(costs.layer_count, costs.stages)
    if costs.hosts:
        layers = tuple(balanced_layers(costs))
    one = np.zeros(len(costs.menu), dtype=np.int64)
    one[entry] = 1
    return kinds_per_stage(costs.runs, len(costs.layers), layers)[:, :, None] * one


def in_class(costs: StageCosts, counts: Counts) -> bool:
    """Tell if a split lies in the declared class of layer counts.

    Returns:
        True if every stage has between the fewest and the most layers.
    """
    layers = counts.sum(axis=(1, 2))
    return bool((layers >= costs.fewest).all() and (layers <= costs.most_layers).all())
