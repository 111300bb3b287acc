"""Path bounds with the best weights, and the paths that give them."""

from dataclasses import dataclass

import numpy as np

from planner.cost.meshes import Floats
from planner.cost.pipeline.duration_lines import DurationLines, Points
from planner.cost.pipeline.linear import Linear, path_lines
from planner.cost.pipeline.splits import graph_of, stages_by_rank
from planner.schedules.simulator import Path, critical_paths
from planner.search.bounds.bounds import Relaxation
from planner.search.bounds.boxes import Box
from planner.search.bounds.paths import ShapePaths
from planner.search.solver.program import LayerProgram, Solution
from planner.search.stop import Stop
from planner.specs.table import StageCosts

ROUNDS = 100
"""Most programs solved for one box of loads. [1]"""
CLOSE = 5e-4
"""Relative gap between program and simulator at which rounds end. [1]"""
SMALL = 0.25
"""Share of what is missing to rule a box out that is no longer worth another round,
where no program of the box can rule it out. [1]"""
STALLED, GAIN, AHEAD = 24, 5e-4, 3
"""Rounds end, where loads are to be cut, when ``STALLED`` of them gain less than the
share ``GAIN``. They also end when ``AHEAD`` gains more of that size would not reach the
known bound. Ours, by gaps after a minute. [1]"""
SHRUNK = 0.9, 0.7
"""Rounds end, where loads are whole, when the gap of program and simulator is more
than this share of the gap ``STALLED`` rounds ago; the latter where a point of the box
is as fast as asked for, so that no program of the box can rule it out. [1]

A program of few paths stays where it is for long, while better and better points are
met. Then it rises.
"""
PATIENCE = 40
"""Rounds of a box that do not end while its bound is no better than known, ours. [1]

A box whose bound does not rise is cut in vain.
"""
WHOLE = 0.02
"""Distance from a whole number below which a count is not cut any more. [1]"""
LATEST = 20
"""Programs of a box whose paths the parts of the box begin with, the latest. [1]"""
SHARES = (0.5, 0.25, 0.1, 0.03)
"""Points that give paths: shares of the way from best point to optimum, ours. [1]

An optimum of few paths lies in a corner, far from good splits. The critical paths of
points on the way to the optimum cut off more.
"""


class Cuts:
    """Paths of one candidate, as linear functions of the layer counts.

    They are the rows of one program: of all the candidate's splits, or of one box.
    """

    def __init__(self, costs: StageCosts, stop: Stop | None = None) -> None:
        self.costs, self.stop = costs, stop or Stop()
        self.lines: list[Linear] = []
        self.paths: list[Path] = []
        self.keys: set[tuple[int, bytes]] = set()
        self.binding: dict[int, int] = {}
        self.rounds = 0
        self.durations = DurationLines.of(costs)
        self._program: LayerProgram | None = None

    def add(self, paths: list[Path]) -> list[Linear]:
        """Add paths, each once.

        Returns:
            Linear function of each path. [ns]
        """
        counts = np.array([path.counts for path in paths])
        p2p = np.array([path.p2p for path in paths])
        lines = path_lines(self.costs, counts, p2p).each()
        for path, line in zip(paths, lines, strict=True):
            key = line.constant, line.factors.tobytes()
            if key not in self.keys:
                self.keys.add(key)
                self.lines.append(line)
                self.paths.append(path)
                if self._program is not None:
                    self._program.add(line)
        return list(lines)

    def active(self) -> list[int]:
        """Paths that were ever binding, or all. [1]."""
        return sorted(self.binding) or list(range(len(self.lines)))

    def note(self, weights: list[float]) -> None:
        """Remember the paths that the last program rests on."""
        self.rounds += 1
        rows = (row for row, weight in enumerate(weights) if weight > 0)
        self.binding |= dict.fromkeys(rows, self.rounds)

    def latest(self) -> tuple[Path, ...]:
        """Paths that one of the latest programs rested on; all without a program."""
        first = self.rounds - LATEST
        kept = [row for row, last in sorted(self.binding.items()) if last > first]
        return tuple(self.paths[row] for row in kept or range(len(self.paths)))

    def program(self, box: Box, *, anew: bool = False) -> LayerProgram:
        """The program of a box, with all paths of the pool as rows."""
        if anew or self._program is None:
            self._program = LayerProgram(self.costs, self.lines)
        self._program.within(box)
        return self._program


class Descent:
    """Solves one program, adds the paths that it lacks, and solves it again."""

    def __init__(
        self,
        cuts: Cuts,
        box: Box | None = None,
        price: int = 0,
        *,
        patient: bool = False,
    ) -> None:
        """Begin with the paths that are known.

        Args:
            cuts: Paths of the candidate.
            box: The splits that count; all by default.
            price: About the step of a good split. [ns]
            patient: Go on while the bound rests but better points are met.
        """
        self.cuts, self.price, self.patient = cuts, max(price, 1), patient
        self.box = box or Box.of(cuts.costs)
        self.program = cuts.program(self.box)
        self.program.price(self.price)
        self.centre: Points | None = None
        self.least = float("inf")
        self.solution: Solution | None = None
        self.gave_up, self.rounds = False, 0
        self.weights: list[float] = []
        self.proof: tuple[Linear, int] | None = None
        self.multipliers: tuple[list[Path], list[float]] = [], []

    def run(self, enough: int | None, known: int = 0) -> int:
        """Raise the bound until it is tight, or enough.

        Args:
            enough: A bound above this rules the box out: stop there. [ns]
            known: A bound that is known already: stop where no program can improve
                the bound. [ns]

        Returns:
            A bound on every split in the box; 0 where the solver gave up. [ns]
        """
        bound, steps, gaps = 0, [0.0] * STALLED, [float("inf")] * STALLED
        for self.rounds in range(ROUNDS):
            solved = None if self.cuts.stop.reached else self._solved()
            if solved is None:
                self.gave_up = True
                break
            self.solution = solved
            bound = self._proven(bound)
            if enough is not None and bound > enough:
                break
            paths = self._paths(solved)
            steps = [*steps[1:], solved.step]
            gaps = [*gaps[1:], self.least - solved.step]
            if self._is_close(solved.step, enough, known):
                break
            if self._stalls(steps, gaps, enough, known):
                break
            self.cuts.add(paths)
        return bound

    def _proven(self, bound: int) -> int:
        """The better of a bound and the last program's, with the multipliers. [ns]."""
        self.weights, better = self.program.weights(), self.program.exact_bound()
        self.cuts.note(self.weights)
        if self.proof is None or better > bound:
            pairs = zip(self.cuts.paths, self.weights, strict=False)
            chosen = [(path, weight) for path, weight in pairs if weight > 0]
            self.multipliers = [p for p, _ in chosen], [w for _, w in chosen]
            self.proof = self.program.lagrangian()
        return max(bound, better)

    def _is_close(self, step: float, enough: int | None, known: int) -> bool:
        """Tell if no more rounds can raise the bound by much, or none above enough."""
        close = step * (1 + CLOSE)
        if enough is not None and self.least <= enough:
            close = max(close, step + SMALL * (enough - step))
        return self.least <= max(known, close)

    def _stalls(
        self, steps: list[float], gaps: list[float], enough: int | None, known: int
    ) -> bool:
        """Tell if further rounds would hardly raise the bound."""
        if self.patient and steps[-1] <= known and self.rounds < PATIENCE:
            return False
        if self.patient and self.loads_are_whole:
            in_vain = enough is not None and self.least <= enough
            return gaps[-1] > gaps[0] * SHRUNK[in_vain]
        gain = steps[-1] - steps[0]
        return gain <= steps[0] * GAIN or steps[-1] + AHEAD * gain < known

    @property
    def loads_are_whole(self) -> bool:
        """True where the optimum leaves no rank's load to be cut."""
        if self.solution is None:
            return False
        loads = rank_loads(self.cuts.costs, self.solution)
        return bool((np.abs(loads - np.rint(loads)) < WHOLE).all())

    def _solved(self) -> Solution | None:
        """Solve the program; where the solver gives up, once more from the start."""
        solved = self.program.solve()
        if solved is None:
            self.program = self.cuts.program(self.box, anew=True)
            self.program.price(self.price)
            solved = self.program.solve()
        return solved

    def _paths(self, solved: Solution) -> list[Path]:
        """Critical paths between the optimum and the best point so far.

        Both keep to the rows, so every point between them does, too. The program is
        solved when the optimum is no better than the best of these points.
        """
        costs = self.cuts.costs
        centre = solved.counts if self.centre is None else self.centre
        shares = np.array(SHARES)[:, None, None, None]
        points = shares * solved.counts + (1 - shares) * centre
        x = self.cuts.durations.at(points)
        steps, paths = critical_paths(graph_of(costs), x, costs.p2p)
        best = int(steps.argmin())
        if steps[best] < self.least:
            self.least, self.centre = float(steps[best]), points[best]
        return paths


@dataclass(frozen=True)
class Tightened:
    """Result of the program of one candidate."""

    bound: int
    """Lower bound on the simulated step. [ns]"""
    cuts: tuple[Linear, ...]
    """Paths that the bound rests on. [ns]"""
    pool: Cuts
    """All paths of the candidate."""
    centre: Points | None
    """Best point met, of fractional layers. [1], shape (stages, kinds, menu)"""
    least: float
    """Step of that point; inf without any. [ns]"""


def known_cuts(costs: StageCosts, shapes: ShapePaths, stop: Stop | None = None) -> Cuts:
    """Paths of a candidate that the search knows of the shape."""
    cuts, known = Cuts(costs, stop), shapes.of(costs)
    pairs = zip(known.counts, known.p2p.tolist(), strict=True)
    cuts.add([*(Path(*pair) for pair in pairs), *shapes.bound(costs)])
    return cuts


def tighten(
    costs: StageCosts,
    relaxed: Relaxation,
    enough: int | None = None,
    shapes: ShapePaths | None = None,
    stop: Stop | None = None,
) -> Tightened:
    """Improve a path bound by choosing the weights and finding more paths.

    Args:
        costs: The inner problem.
        relaxed: The bound known so far.
        enough: A bound above this rules the candidate out: stop there. [ns]
        shapes: Paths that the search knows of the shape; found paths are added.
        stop: Ends the work early. [-]
    """
    shapes = shapes or ShapePaths()
    cuts = known_cuts(costs, shapes, stop)
    descent = Descent(cuts, price=relaxed.bound)
    bound = max(relaxed.bound, descent.run(enough, relaxed.bound))
    active = cuts.active()
    if descent.solution is not None:
        shapes.teach(costs, *descent.multipliers)
    lines = tuple(cuts.lines[index] for index in active)
    return Tightened(bound, lines, cuts, descent.centre, descent.least)


def rank_loads(costs: StageCosts, solution: Solution) -> Floats:
    """Layers of every rank at an optimum that need not be whole.

    Returns:
        Layers. [1], shape (pp,)
    """
    by_stage = solution.counts.sum(axis=(1, 2))
    loads: Floats = by_stage[stages_by_rank(costs)].sum(axis=1)
    return loads
