"""Bounds of many candidates of one shape at once, by what the shape has taught."""

from dataclasses import dataclass, field, replace

import numpy as np

from planner.cost.meshes import Floats, Ints
from planner.cost.pipeline.linear import LayerTimes, StepTimes, lines_at
from planner.cost.pipeline.path_columns import WeightedPath
from planner.cost.pipeline.pool_costs import pool_of_stage
from planner.cost.table.mixed import MixedTable
from planner.cost.table.table import CostTable, EndColumns
from planner.search.bounds.least import least_values
from planner.search.bounds.paths import ShapePaths
from planner.search.bounds.worst import SAFE
from planner.search.corners.lessons import fresh_corners
from planner.specs.table import StageCosts

SLICE = 1 << 21
"""Prices of layers that are held at once. [1]"""


@dataclass
class Group:
    """Candidates of one shape and class of splits, with each pool in one place.

    On one pool memory is left out: least values are over all splits of the class.
    """

    like: StageCosts
    """Inner problem of one of them, for the shape and the class alone, which holds the
    class of every other."""
    times: StepTimes
    """Times of all, with the candidates in front. [ns]"""
    slowdown: Floats
    """Factor from a simulated step to the key. [1], shape (candidates,)"""
    offset: Floats
    """Part of the key that no step changes. [s], shape (candidates,)"""
    keys: Floats
    """Lower bounds. [s], shape (candidates,)"""
    most: Ints | None = None
    """Most layers of every rank; None leaves the memory out. [1], shape (candidates,
    pp)"""
    seen: tuple[int, int] = field(default=(0, 0))
    """Lessons and families of the shape that were applied. [1]"""
    cornered: int = 0
    """Lessons of corners that were applied. [1]"""

    def lift(self, paths: ShapePaths, most: float) -> bool:
        """Raise bounds by the weighted paths that the shape was taught meanwhile.

        A weighted mean of paths of the shape is at most the step, whatever the costs.

        Args:
            paths: What the search knows of the shape.
            most: Bound above which a candidate needs no better one. [s]

        Returns:
            True where there was something new.
        """
        fresh, self.seen = paths.fresh(self.like, self.seen)
        for mean in fresh:
            at = np.flatnonzero(self.keys <= most)
            width = self.like.stages * self.times.layers.forward[0].size
            for part in np.array_split(at, -(-len(at) * width // SLICE) or 1):
                if len(part):
                    times = taken(self.times, part)
                    self._raise(part, self._steps(mean, times, self._caps(part)))
        return self._lift_by_corners(paths, most) or bool(fresh)

    def _lift_by_corners(self, paths: ShapePaths, most: float) -> bool:
        """Raise bounds by the boxes of others; True where there was something new."""
        fresh, self.cornered = fresh_corners(self.like, paths, self.cornered)
        for corners in fresh:
            at = np.flatnonzero(self.keys <= most)
            width = len(corners.weights)
            for part in np.array_split(at, -(-len(at) * width // SLICE) or 1):
                if len(part):
                    self._raise(part, corners.least(taken(self.times, part)))
        return bool(fresh)

    def _raise(self, at: Ints, steps: Ints) -> None:
        """Raise some of the bounds to steps."""
        found = steps * self.slowdown[at] / 1e9 + self.offset[at]
        self.keys[at] = np.maximum(self.keys[at], found)

    def _caps(self, at: Ints) -> Ints:
        """Most layers of every rank. [1], shape (candidates, pp), or one for all."""
        if self.most is not None:
            return self.most[at]
        return np.full((1, self.like.pp), self.like.vpp * self.like.most_layers)

    def _steps(self, mean: WeightedPath, times: StepTimes, caps: Ints) -> Ints:
        """Bounds on the simulated step; 0 where sums might overflow 64 bits. [ns]."""
        like = self.like
        lines = lines_at(like, times, mean.counts[None], np.array([mean.p2p]))
        steps = -(-least_values(like, lines, caps=caps) // mean.weight)
        safe = mean.weight * longest(like, times) <= SAFE
        bounds: Ints = np.where(safe, steps, 0)
        return bounds


def widest(costs: StageCosts) -> StageCosts:
    """The problem with a class of splits that holds those of all with its shape.

    Returns:
        The problem; where pools differ, a stage may hold all layers.
    """
    return replace(costs, extra_layers=costs.layer_count) if costs.hosts else costs


def taken(times: StepTimes, at: Ints) -> StepTimes:
    """Times of some of several problems.

    Args:
        times: Times with the problems in front. [ns]
        at: Indices. [1]

    Returns:
        Their times. [ns]
    """
    return times._replace(
        layers=LayerTimes(*(each[at] for each in times.layers)),
        embedding=times.embedding[at],
        head=times.head[at],
        edges=(times.edges[0][at], times.edges[1][at]),
        p2p=np.asarray(times.p2p)[at],
    )


def longest(like: StageCosts, times: StepTimes) -> Floats:
    """Time beyond all work of a step, one operation after the other, and a share more.

    Args:
        like: An inner problem of the shape.
        times: Times of several problems. [ns]

    Returns:
        Time that no sum of a path's terms exceeds, roundings included. [ns]
    """
    by_menu = np.max(times.layers.forward + times.layers.backward, axis=-1)
    dearest = np.max(by_menu + sum(times.layers[2:]), axis=1)
    layers = np.sum(dearest, axis=1, dtype=np.float64)
    ends = np.sum(times.embedding + times.head, axis=1, dtype=np.float64)
    edges = sum(np.max(edge, axis=1) for edge in times.edges) + times.p2p
    passes = like.micro_batches + 1
    work = layers * like.layer_count + ends + 2.0 * like.stages * edges
    longer: Floats = 1.01 * (passes * work + times.overhead * like.pp + 1)
    return longer


def times_of(
    like: StageCosts, table: CostTable, meshes: Ints, entries: Ints
) -> StepTimes:
    """Times of candidates of one shape, from the table.

    Args:
        like: Inner problem of one of them, for the shape and the pool of every stage.
        table: Priced meshes.
        meshes: Row of every candidate. [1], shape (candidates,)
        entries: Recompute kinds that layers may choose. [1], shape (candidates, menu)

    Returns:
        Times as :func:`planner.cost.pipeline.linear.lines_at` takes them. [ns]
    """
    each = [_on_pool(pool, meshes, entries, like.stages) for pool in table.each]
    if not isinstance(table, MixedTable):
        return each[0]
    pools = pool_of_stage(like)
    columns = zip(*(times.layers for times in each), strict=True)
    gather, scatter = (
        np.stack(edge, axis=1)[:, pools, np.arange(like.stages)]
        for edge in zip(*(times.edges for times in each), strict=True)
    )
    return StepTimes(
        layers=LayerTimes(*(np.concatenate(c, axis=1)[:, pools] for c in columns)),
        embedding=each[pools[0]].embedding,
        head=each[pools[-1]].head,
        edges=(gather, scatter),
        p2p=table.sends(meshes, np.bincount(like.pool_of_rank)),
        overhead=table.overhead,
    )


def _on_pool(table: CostTable, meshes: Ints, entries: Ints, stages: int) -> StepTimes:
    """Times of candidates as if one pool hosted all stages. [ns]."""
    kinds = np.arange(len(table.units))[None, :, None]
    picked = (kinds, entries[:, None, :], meshes[:, None, None])
    whole = (
        np.array([getattr(unit, name)[meshes] for unit in table.units]).T[:, None]
        for name in LayerTimes._fields[2:]
    )
    embedding, head = (_end(end, meshes) for end in (table.embedding, table.head))
    firsts = table.first_gather[meshes], table.last_scatter[meshes]
    return StepTimes(
        layers=LayerTimes(
            table.forward[picked][:, None], table.backward[picked][:, None], *whole
        ),
        embedding=embedding,
        head=head,
        edges=(
            _edges(firsts[0], embedding[:, 2], head[:, 2], stages),
            _edges(firsts[1], embedding[:, 3], head[:, 3], stages),
        ),
        p2p=table.p2p[meshes],
        overhead=table.overhead,
    )


def _end(end: EndColumns, meshes: Ints) -> Ints:
    """Times of an end in the order of a layer's. [ns], shape (candidates, 6)."""
    unit = end.unit
    columns = end.forward, end.backward, unit.gather, unit.scatter, unit.optimizer
    return np.array([column[meshes] for column in (*columns, unit.weight)]).T


def _edges(layer: Ints, embedding: Ints, head: Ints, stages: int) -> Ints:
    """First gather, or last scatter, of every stage. [ns], (candidates, stages)."""
    edges = np.repeat(layer[:, None], stages, axis=1)
    edges[:, -1] = np.minimum(layer, head)
    edges[:, 0] = embedding
    return edges
