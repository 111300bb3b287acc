"""Bounds by cases: boxes of splits, each with its own program."""

import heapq
from dataclasses import dataclass, replace

import numpy as np

from planner.cost.pipeline.layer_kinds import kinds_per_stage
from planner.cost.pipeline.linear import path_lines
from planner.cost.pipeline.memory_rows import fits
from planner.cost.pipeline.path_columns import WeightedPath
from planner.cost.pipeline.splits import step_ns
from planner.schedules.simulator import Path
from planner.search.bounds.boxes import (
    Box,
    Sorted,
    is_near_whole,
    least_in_boxes,
    stages_decide,
    trimmed,
)
from planner.search.bounds.paths import ShapePaths
from planner.search.bounds.rank_load_bounds import cases_of, proof_of
from planner.search.solver.ahead import Ticket, ahead
from planner.search.solver.box_program import Asked, bounds_in, shaved
from planner.search.solver.branching import halves
from planner.search.solver.dual import WHOLE, Cuts, rank_loads
from planner.search.solver.local import Split, fastest, rounded
from planner.search.solver.program import Solution

MOST_ASKED = 100.0
"""Deterministic time of CP-SAT for the whole splits of one candidate's boxes. [1]"""
LEAST_ASKED = 1.0
"""Deterministic time that one question counts at least: it takes a model, too. [1]"""

HANDED_IN = 4
"""Boxes whose programs other cores may begin with, those with the least bounds, ours.
[1]"""
FEW = 16
"""Boxes beyond one a rank up to which a candidate gives its own up for finer boxes of
another. [1]"""


@dataclass(frozen=True)
class _Node:
    """A box of splits, and the program's optimum in it once it is solved."""

    box: Box | None
    """The box as it was cut, whatever the costs; None where another node has it."""
    kept: Box
    """The part of the box that may hold a split as fast as asked for."""
    mean: WeightedPath | None = None
    """Weighted paths that bound the box, or a box around it."""
    solution: Solution | None = None
    at: tuple[int, int] | None = None
    """Stage at which the box is cut best, and most layers of its first half. [1]"""
    paths: tuple[Path, ...] = ()
    """Paths that the box's program begins with. What the search knows where it is asked
    for, if the box is none that a program's box was cut into."""
    learned: bool = False
    """True once all was tried that needs no program."""


class LoadTree:
    """The splits of one candidate in boxes, each with its own bound.

    The boxes hold every split, so the least bound over boxes is a bound on all splits.
    The first boxes are those of the last candidate of the shape, or come from
    ``last_loaded``. The last loaded rank decides most. Its own work counts in full, and
    before it come the first chunks of all ranks ahead. After that a box is cut in two
    at a rank whose load is not whole; and where all loads are whole, at a stage.
    """

    def __init__(self, cuts: Cuts, bound: int, shapes: ShapePaths) -> None:
        self.cuts, self.shapes = cuts, shapes
        self.nodes: list[tuple[int, int, _Node]] = []
        self.settled = float("inf")
        self.made, self.solved, self.asked = 0, 0, 0.0
        self.limits: tuple[int | None, int | None] = None, None
        self.best: Split | None = None
        self.closed: list[tuple[Box, WeightedPath | None]] = []
        self.ahead, self.tickets = ahead(), dict[int, Ticket]()
        known = shapes.of(cuts.costs)
        self.ranks = known.rank
        self.lines = path_lines(cuts.costs, known.counts, known.p2p)
        self.prices = Sorted.of(cuts.costs, self.lines)
        cases = cases_of(cuts.costs, shapes)
        for at, its in enumerate(cases.bounds.tolist()):
            box = cases.boxes.take(at)
            kept = box.fitting(cuts.costs)
            self._push(max(bound, its), _Node(box, kept, cases.means[at]))

    @property
    def bound(self) -> float:
        """Lower bound on every split; inf where no box is left. [ns]."""
        least = self.nodes[0][0] if self.nodes else float("inf")
        return min(least, self.settled)

    @property
    def stuck(self) -> bool:
        """True where no box is left, or the least bound's box is not cut any more."""
        return not self.nodes or self.settled <= self.nodes[0][0]

    @property
    def is_coarse(self) -> bool:
        """True where another candidate of the shape has cut finer meanwhile."""
        costs, own = self.cuts.costs, len(self.leaves())
        return own <= costs.pp + FEW and self.shapes.count_cases(costs) > own

    @property
    def is_program_next(self) -> bool:
        """True where the box with the least bound asks for a program."""
        return self._asks_program(self.nodes[0][2])

    def refine(self, enough: int | None, goal: int | None = None) -> None:
        """Solve the box with the least bound, or cut it where it is solved.

        Args:
            enough: A bound above this rules a box out. [ns]
            goal: A bound above this is high enough for now. [ns]
        """
        self.limits = enough, goal
        bound, made, node = heapq.heappop(self.nodes)
        ticket = self.tickets.pop(made, None)
        if node.solution is not None:
            if not self._asks(bound, node):
                self._cut(bound, node, node.solution)
        elif node.kept.is_point and stages_decide(self.cuts.costs):
            self._settle_point(node)
        elif not node.learned and stages_decide(self.cuts.costs):
            self._learn(bound, node)
        else:
            self.offer(enough, goal)
            self._solve(bound, node, ticket)

    def offer(self, enough: int | None, goal: int | None) -> None:
        """Hand in the programs that come next, for other cores to begin with.

        Args:
            enough: A bound above this rules a box out. [ns]
            goal: A bound above this is high enough for now. [ns]
        """
        self.limits = enough, goal
        most = float("inf") if goal is None else goal
        for bound, made, node in heapq.nsmallest(HANDED_IN, self.nodes):
            if bound > most or not node.paths or node.kept.is_point:
                continue
            known, asked = self.tickets.get(made), self._asked(bound, node)
            new = known is None or known.asked.enough != asked.enough
            if new and self._asks_program(node):
                self.tickets[made] = self.ahead.offer(asked, bound / most, self)

    def _asks_program(self, node: _Node) -> bool:
        """Tell if all was tried that needs no program."""
        learned = node.learned or not stages_decide(self.cuts.costs)
        return learned and node.solution is None

    def _asked(self, bound: int, node: _Node) -> Asked:
        """The question of a box's program."""
        paths = node.paths or self._known()
        return Asked(self.cuts.costs, paths, node.kept, bound, self._wanted(bound))

    def _wanted(self, bound: int) -> int | None:
        """Bound that is high enough: for now, where the goal is not reached. [ns]."""
        enough, goal = self.limits
        return enough if goal is None or bound > goal else goal

    def _learn(self, bound: int, node: _Node) -> None:
        """Bound a box, and make it smaller, by the paths and means that are known."""
        costs, (enough, _), asked = self.cuts.costs, self.limits, self._wanted(bound)
        node = replace(node, learned=True, paths=node.paths or self._known())
        if asked is not None:
            box, lines = node.kept, self.lines
            found = trimmed(costs, box, lines, self.ranks, asked, self.prices)
            node = self._without(bound, node, found)
        proof = None if node.mean is None else proof_of(costs, node.mean)
        if node.kept.holds(costs):
            bound = max(bound, self._longest(node.kept))
            if proof is not None:
                ends = bounds_in(costs, proof, node.kept.take(None))
                bound = max(bound, *ends.tolist())
            if enough is not None and bound > enough:
                self.settled = min(self.settled, bound)
                self._close(node)
                return
            if proof is not None and asked is not None and bound <= asked:
                found = shaved(costs, proof, node.kept, asked)
                node = self._without(bound, node, found)
        self._push(bound, node)

    def _longest(self, box: Box) -> int:
        """The longest of the paths through every rank, at its least in a box. [ns]."""
        boxes = Box(*(np.tile(each, (len(self.ranks), 1)) for each in box))
        costs, lines = self.cuts.costs, self.lines
        return int(least_in_boxes(costs, lines, boxes, self.prices).max())

    def _solve(self, bound: int, node: _Node, ticket: Ticket | None) -> None:
        """Solve the program of a box, and put aside what is slower than the goal."""
        costs, (enough, goal) = self.cuts.costs, self.limits
        self.solved += 1
        asked = self._asked(bound, node)
        if ticket is None or ticket.asked.enough != asked.enough:
            ticket = Ticket(asked, self)
        found = self.ahead.answer(ticket, self.cuts.stop)
        if found.centre is not None and (goal is None or found.least <= goal):
            self._found(fastest(costs, rounded(costs, found.centre)))
        mean = None
        if found.solution is not None:
            mean = self.shapes.teach(costs, *found.multipliers)
        node = replace(
            node,
            mean=mean or node.mean,
            solution=found.solution,
            at=found.at,
            paths=found.paths,
        )
        if node.solution is None or (enough is not None and found.bound > enough):
            self.settled = min(self.settled, found.bound)
            self._close(node)
            return
        node = self._without(found.bound, node, (found.kept, found.rest))
        self._push(found.bound, node)

    def _known(self) -> tuple[Path, ...]:
        """Paths of the candidate, and those on which bounds of its shape rest."""
        return (*self.cuts.latest(), *self.shapes.bound(self.cuts.costs))

    def _without(self, bound: int, node: _Node, found: tuple[Box, float]) -> _Node:
        """The node in a part of its box, the rest put aside.

        Args:
            bound: Bound on the whole box. [ns]
            node: The node.
            found: The part, and a bound on the rest. [ns]
        """
        (enough, _), (kept, rest) = self.limits, found
        if enough is not None and rest > enough:
            self.settled = min(self.settled, rest)
        elif rest < float("inf"):
            part = _Node(None, node.kept, node.mean, paths=node.paths)
            self._push(max(bound, int(rest)), part)
        return replace(node, kept=kept)

    def _push(self, bound: int, node: _Node) -> None:
        """Keep a box, unless its layers cannot add up to the model."""
        if node.kept.holds(self.cuts.costs):
            self.made += 1
            heapq.heappush(self.nodes, (bound, self.made, node))
        else:
            self._close(node)

    def _close(self, node: _Node) -> None:
        """Note a box that is done with, for other candidates of the shape."""
        if node.box is not None:
            self.closed.append((node.box, node.mean))

    def _settle_point(self, node: _Node) -> None:
        """Simulate the only split of a box, where it fits."""
        costs, layers = self.cuts.costs, node.kept.fewest.tolist()
        self._close(node)
        if sum(layers) != costs.layer_count:
            return
        held = kinds_per_stage(costs.runs, len(costs.layers), layers)
        counts = held[:, :, None]
        if fits(costs, counts):
            value = step_ns(costs, counts)
            self.settled = min(self.settled, value)
            self._found(Split(value, counts))

    def _found(self, split: Split | None) -> None:
        if split and (self.best is None or split.value < self.best.value):
            self.best = split

    def _asks(self, bound: int, node: _Node) -> bool:
        """Ask for whole splits of a box that are as fast as the goal.

        A program hardly tells them apart: fractional layers are as fast in most boxes.
        Of splits faster than the best so far there is none left in a box that is done.

        Returns:
            True where the box is dealt with, or asked again later.
        """
        costs, box, (enough, goal) = self.cuts.costs, node.kept, self.limits
        if goal is None or bound > goal or self.asked >= MOST_ASKED:
            return False
        if not is_near_whole(costs, box):
            return False
        # Few jobs need the solver, which takes long to import.
        from planner.search.solver.whole_splits import WholeSplits  # noqa: PLC0415

        own = goal if self.best is None else self.best.value - 1
        cuts = Cuts(costs, self.cuts.stop)
        cuts.add(list(node.paths))
        splits = WholeSplits(cuts, box, min(goal, own))
        settled = splits.run(self.shapes.deciding(costs))
        self.asked += max(splits.spent, LEAST_ASKED)
        self.shapes.keep_deciding(costs, splits.paths)
        self._found(splits.best)
        if not settled:
            self._push(bound, node)
        elif splits.most < goal or (enough is not None and goal >= enough):
            self.settled = min(self.settled, splits.most + 1)
            self._close(node)
        else:
            self._push(splits.most + 1, node)
        return True

    def _cut(self, bound: int, node: _Node, solution: Solution) -> None:
        """Cut a box at the load, else at the stage, that is least whole."""
        loads, decide = (
            rank_loads(self.cuts.costs, solution),
            stages_decide(self.cuts.costs),
        )
        share = np.abs(loads - np.rint(loads))
        rank = int(share.argmax())
        if share[rank] >= WHOLE:
            self._cut_at(bound, node, (0, 1), rank, int(np.floor(loads[rank])))
            return
        if not decide:
            self.settled = min(self.settled, bound)
            self._close(node)
            return
        layers, kept = solution.counts.sum(axis=(1, 2)), node.kept
        free = kept.fewest < kept.most
        if not free.any():
            self._push(bound, replace(node, solution=None))
            return
        if node.at is not None:
            self._cut_at(bound, node, (2, 3), *node.at)
            return
        share = np.where(free, np.abs(layers - np.rint(layers)), -1.0)
        stage = int(share.argmax())
        below = int(np.floor(layers[stage] + WHOLE * (share[stage] < WHOLE)))
        below = min(max(below, int(kept.fewest[stage])), int(kept.most[stage]) - 1)
        self._cut_at(bound, node, (2, 3), stage, below)

    def _cut_at(
        self, bound: int, node: _Node, ends: tuple[int, int], at: int, below: int
    ) -> None:
        """Cut a box in two: at most so many layers in one place, or more."""
        whole = (None, None) if node.box is None else halves(node.box, ends, at, below)
        for box, kept in zip(whole, halves(node.kept, ends, at, below), strict=True):
            part = _Node(box, kept, node.mean, paths=node.paths)
            if stages_decide(self.cuts.costs) and kept.holds(self.cuts.costs):
                self._learn(bound, part)
            else:
                self._push(bound, part)

    def leaves(self) -> list[tuple[Box, WeightedPath | None]]:
        """All boxes, which hold each split once, and weighted paths that bound each."""
        left = [
            (node.box, node.mean) for *_, node in self.nodes if node.box is not None
        ]
        return [*self.closed, *left]
