"""One candidate between two visits of the search."""

from typing import TYPE_CHECKING, NamedTuple

from planner.cost.pipeline.duration_lines import Points
from planner.search.bounds.bounds import Relaxation
from planner.search.bounds.boxes import stages_decide
from planner.search.bounds.paths import ShapePaths, even_counts
from planner.search.bounds.rank_load_bounds import cases_of, weighted_bound
from planner.search.corners.lessons import note_in_vain, were_in_vain
from planner.search.corners.tree import NEVER, CornerTree, has_few_left
from planner.search.mesh_answer import ROUNDS, MeshAnswer, Outcome
from planner.search.solver.case_bounds import LoadTree
from planner.search.solver.dual import Cuts, known_cuts, tighten
from planner.search.solver.local import Descender, Split, fastest, rounded
from planner.search.solver.only import OnlySplit, only_split
from planner.search.stop import Stop
from planner.specs.table import StageCosts

if TYPE_CHECKING:
    from planner.search.solver.solve import MeshSolver

TIGHT = 3
"""Empty places in the balanced class up to which the solver closes at once. [1]"""
BOXES = 2
"""Programs of boxes that are solved in one visit, unless the bound rises before. [1]"""
FAR = 0.05
"""Share of a step by which a bound is far below the step. [1]"""
CUTS = 16
"""Boxes that are cut at their corners in one visit, ours. [1]"""
RISE = 2e-3
"""Share by which a bound rises before its boxes serve others, ours. [1]"""


class Met(NamedTuple):
    """Best point that the program of a candidate met."""

    centre: Points | None
    """The point, of fractional layers. [1], shape (stages, kinds, menu)"""
    least: float
    """Step of that point; inf without any. [ns]"""


class CandidateWork:
    """State of one candidate, and the steps that improve bound and split.

    Where few layers are left to deal out, corners of boxes come first. The next step
    finds the best path weights, the next good splits near their optimum. Then come
    bounds by cases of the ranks' loads, and rounds of the solver.
    Where nearly every place is taken the solver closes at once, and goes first.
    """

    def __init__(
        self,
        costs: StageCosts,
        relaxed: Relaxation,
        shapes: ShapePaths,
        stop: Stop | None = None,
    ) -> None:
        self.costs, self.relaxed, self.shapes = costs, relaxed, shapes
        self.bound, self.stop = relaxed.bound, stop or Stop()
        self.split: Split | None = None
        self.tightened: Met | None = None
        self.tree: LoadTree | None = None
        self.corners: CornerTree | None = None
        few = self._loose() and has_few_left(costs)
        self.cornered = not few or were_in_vain(costs, shapes)
        self.solver: MeshSolver | OnlySplit | None = None
        self.descended = not self._loose()
        self.lessons = shapes.lessons(costs)
        self.last = self._try_known()

    def _loose(self) -> bool:
        """Tell if the class leaves enough choice for path weights to pay."""
        costs = self.costs
        empty = costs.stages * costs.most_layers - costs.layer_count
        return empty > TIGHT or len(costs.menu) > 1

    @property
    def open(self) -> bool:
        """True while steps are left that may improve the answer."""
        return self.last.outcome is Outcome.OPEN and self.last.rounds < ROUNDS

    @property
    def at_solver(self) -> bool:
        """True once the solver has run a round: more of its rounds come next."""
        return self.solver is not None

    @property
    def needs_solver(self) -> bool:
        """True where nothing but rounds of the solver is left."""
        first = self._loose() and self.tightened is None and self.tree is None
        first = first or not self.cornered
        descends = not self.descended and self.tightened is not None
        divides = self.tree is not None and not self.tree.stuck
        return not (first or descends or divides)

    @property
    def spent(self) -> float:
        """Deterministic time of the solver's calls. [1]."""
        return 0.0 if self.solver is None else self.solver.spent

    def _try_known(self) -> MeshAnswer:
        """Simulate the even splits, and the best splits of others of the shape."""
        costs = self.costs
        even = [even_counts(costs, entry) for entry in range(len(costs.menu))]
        self.split = fastest(costs, [*even, *self.shapes.splits(costs)])
        return self._answer(Outcome.OPEN)

    def advance(self, cutoff: int | None, goal: int | None = None) -> MeshAnswer:
        """Do the next step.

        Args:
            cutoff: Splits slower than this are of no interest. [ns]
            goal: Splits slower than this may wait: a bound above it is enough for now.
                [ns]

        Returns:
            Bound and best split so far; OPEN while steps are left.
        """
        self.last = self._next(cutoff, goal)
        return self.last

    def solve(self, cutoff: int | None) -> MeshAnswer:
        """Run a round of the solver now, whatever other steps are left.

        Args:
            cutoff: Splits slower than this are of no interest. [ns]

        Returns:
            Bound and best split so far; OPEN while steps are left.
        """
        answer = self._solve(cutoff)
        if answer.value is not None and answer.counts is not None:
            self._better(Split(answer.value, answer.counts))
        self.last = self._answer(answer.outcome)
        return self.last

    def _next(self, cutoff: int | None, goal: int | None) -> MeshAnswer:
        """Do the next of the steps, unless known multipliers raise the bound."""
        if self._learns():
            return self._answer(Outcome.OPEN)
        return self._own(cutoff, goal) if self.cornered else self._cut_corners(cutoff)

    def _own(self, cutoff: int | None, goal: int | None) -> MeshAnswer:
        """Do the next of the steps behind the corners."""
        if self._loose() and self.tightened is None and self.tree is None:
            if self.shapes.count_cases(self.costs):
                return self._take_cases(cutoff, goal)
            return self._tighten(cutoff)
        if not self.descended and self.tightened is not None:
            return self._descend(self.tightened, goal)
        if self.tree is not None and not self.tree.stuck:
            return self._divide(self.tree, cutoff, goal)
        return self._solve(cutoff)

    def _learns(self) -> bool:
        """Apply new multipliers of the shape; True if they raise the bound."""
        lessons = self.shapes.lessons(self.costs)
        if self.tree is not None or lessons == self.lessons:
            return False
        self.lessons, before = lessons, self.bound
        learned = weighted_bound(self.costs, self.shapes)
        self.bound = max(before, learned, cases_of(self.costs, self.shapes).bound)
        return self.bound > before

    def _cut_corners(self, cutoff: int | None) -> MeshAnswer:
        """Bound by the corners of boxes, and hand on what that has taught.

        Where the first visit gains nothing, other bounds are better: no candidate of
        the class goes on so.
        """
        most = NEVER if cutoff is None else cutoff
        tree = self.corners or CornerTree(self.costs, self.bound, self.shapes)
        self.corners, last = tree, tree.cuts + CUTS
        while not tree.stuck and tree.bound <= most and tree.cuts < last:
            if self.stop.reached:
                break
            tree.refine(cutoff)
        in_vain = tree.bound <= self.relaxed.bound
        self.cornered = tree.stuck or tree.bound > most or in_vain
        if in_vain:
            note_in_vain(self.costs, self.shapes)
        elif self.cornered or tree.bound > tree.taught * (1 + RISE):
            tree.teach()
        if self.cornered:
            self.corners = None
        self._better(tree.best)
        if tree.bound == NEVER:
            return self._answer(Outcome.INFEASIBLE)
        self.bound = max(self.bound, tree.bound)
        return self._answer(Outcome.OPEN)

    def _take_cases(self, cutoff: int | None, goal: int | None) -> MeshAnswer:
        """Begin with the boxes of another candidate of the shape."""
        self.descended = True
        cuts = known_cuts(self.costs, self.shapes, self.stop)
        self.tree = LoadTree(cuts, self.bound, self.shapes)
        return self._divide(self.tree, cutoff, goal, programs=0)

    def _tighten(self, cutoff: int | None) -> MeshAnswer:
        """Keep of the program its best point; and its paths, while it is of the latest.

        Few candidates are looked at again later. Theirs are then the shape's paths.
        """
        found = tighten(self.costs, self.relaxed, cutoff, self.shapes, self.stop)
        self.tightened = Met(found.centre, found.least)
        self.shapes.keep_latest(self, found.pool)
        self.bound = max(self.bound, found.bound)
        return self._answer(Outcome.OPEN)

    def _descend(self, found: Met, goal: int | None) -> MeshAnswer:
        """Look for good splits near the optimum of the paths, where some may be good.

        A split near a point that is slower than the goal is hardly faster, unless the
        bound is far below the goal: then the point is not the best.
        """
        self.descended = True
        cuts: Cuts | None = self.shapes.take_latest(self)
        cuts = cuts or known_cuts(self.costs, self.shapes, self.stop)
        if goal is None or found.least <= goal or self.bound < goal * (1 - FAR):
            starts = [] if self.split is None else [self.split.counts]
            if found.centre is not None:
                starts += rounded(self.costs, found.centre)
            self._better(Descender(cuts).run(starts))
        self.tree = LoadTree(cuts, self.bound, self.shapes)
        return self._answer(Outcome.OPEN)

    def _divide(
        self,
        tree: LoadTree,
        cutoff: int | None,
        goal: int | None,
        programs: int = BOXES,
    ) -> MeshAnswer:
        """Bound by cases; where no case is left, nothing fits."""
        if tree.is_coarse:
            tree = self.tree = LoadTree(tree.cuts, self.bound, self.shapes)
        before, most = tree.bound, tree.solved + programs
        while not tree.stuck and not self.stop.reached:
            if cutoff is not None and tree.bound > cutoff:
                break
            risen = tree.bound > before or tree.solved >= most
            if tree.is_program_next and risen:
                break
            tree.refine(cutoff, goal)
        tree.offer(cutoff, goal)
        if tree.bound == float("inf"):
            return self._answer(Outcome.INFEASIBLE)
        if stages_decide(self.costs):
            self.shapes.keep_cases(self.costs, tree.leaves())
        self._better(tree.best)
        self.bound = max(self.bound, int(tree.bound))
        return self._answer(Outcome.OPEN)

    def _better(self, best: Split | None) -> None:
        """Keep a split that is faster than all before."""
        if best is not None and (self.split is None or best.value < self.split.value):
            self.split = best
            self.shapes.keep_split(self.costs, best.counts)

    def _solve(self, cutoff: int | None) -> MeshAnswer:
        """One round of the solver."""
        if self.solver is None:
            self.solver = self._made_solver()
        answer = self.solver.advance(cutoff)
        self.bound = max(self.bound, answer.bound)
        return answer

    def _made_solver(self) -> "MeshSolver | OnlySplit":
        """The solver with all that is known, where there is a choice."""
        only = only_split(self.costs)
        if only is not None:
            return OnlySplit(self.costs, only)
        # Few jobs need the solver, which brings pandas.
        from planner.search.solver.solve import MeshSolver  # noqa: PLC0415

        cuts = self.relaxed.cuts
        if self.tree is not None:
            cuts = tuple(known_cuts(self.costs, self.shapes).lines)
        solver = MeshSolver(self.costs, cuts, bound=self.bound, stop=self.stop)
        if self.split is not None:
            solver.learn(self.split.counts)
        return solver

    def _answer(self, outcome: Outcome) -> MeshAnswer:
        """Bound and best split so far; solved where the split meets the bound."""
        if self.split is None:
            return MeshAnswer(outcome, self.bound)
        value, counts = self.split
        if outcome is Outcome.OPEN and value <= self.bound:
            outcome = Outcome.SOLVED
        return MeshAnswer(outcome, self.bound, value, counts)
