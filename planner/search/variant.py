"""The candidates of one variant, from the first bound to the last answer on each."""

import heapq
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from planner.cost.pricing import Pricing
from planner.cost.table.mixed import heaviest_bytes
from planner.search.aims.amounts import aimed
from planner.search.bounds.bounds import Relaxation, relax
from planner.search.bounds.known_bounds import KnownBounds
from planner.search.bounds.memory_bounds import cannot_fit
from planner.search.bounds.paths import Shape, ShapePaths, lessons_of
from planner.search.candidate import CandidateWork
from planner.search.first_tier import BY_BOUND, NO_FIT, Family, first_tier
from planner.search.incumbents import Found, Incumbents, degrees, layout_fields
from planner.search.mesh_answer import MeshAnswer, Outcome, answered_exactly
from planner.search.outcome import SearchOutcome
from planner.search.solver.dual import tighten
from planner.search.stop import Stop
from planner.search.waiting import Waiting
from planner.specs.table import StageCosts

__all__ = ["BY_BOUND", "NO_FIT", "BestFirst"]

BY_PATHS = "path bound above the best"
NOT_VISITED = "not visited: "
"""Start of the rule that counts candidates left by a limit; the limit follows. [text]
"""
BY_SOLVER = "solver: no split beats the best"
CLOSER_LOOK = 10
"""Work of a further look at a runner-up, where the first look is 1. [1]"""
OUT_OF_WORK = "not visited: work limit"
PRICED, STEP, SOLVER = 0.015, 20.0, 500.0
"""Work of pricing a mesh, of a step of the third tier, and of a unit of deterministic
solver time. A visit of the second tier is 1. [1]"""
LEARNERS = 4
"""Candidates of a shape that are refined before one takes a step that teaches. [1]"""
NEAR = 0.1
"""Share above the best step, up to which plans are returned beside the list. [1]"""


class BestFirst:
    """The candidates of one variant by lower bound, refined as they are visited."""

    def __init__(
        self,
        pricing: Pricing,
        incumbents: Incumbents,
        variant: int = 0,
        stop: Stop | None = None,
        early: Stop | None = None,
        known: KnownBounds | None = None,
        paths: ShapePaths | None = None,
        family: Family | None = None,
    ) -> None:
        """List, price and bound the candidates."""
        self.seconds = 0.0
        self.pricing, self.stop = pricing, stop or Stop()
        self.incumbents, self.variant = incumbents, variant
        self.refined: list[tuple[float, int]] = []
        self.work: dict[int, CandidateWork] = {}
        self.twins: dict[tuple[StageCosts, tuple[int, ...]], CandidateWork] = {}
        self.paths = paths or ShapePaths()
        self.solved = 0
        self.untaught: Counter[Shape] = Counter()
        self.open_bound = float("inf")
        self.stopped = ""
        with self._clocked():
            most = incumbents.most_s
            found = first_tier(pricing, most, early or self.stop, known, family)
            first = aimed(pricing, found)
        self.space, self.slowdown = first.space, first.slowdown
        self.bounds, self.order = first.bounds, first.order
        self.offset = first.offset
        self.counted, self.declared = first.counted, first.declared
        self.unseen_s, self.cut_short = first.unseen_s, first.stopped
        self.waiting = Waiting(pricing, first, self.paths)
        self.worked = PRICED * first.meshes

    @contextmanager
    def _clocked(self) -> Iterator[None]:
        """Adds the wall time of a block to this variant's own."""
        started = time.monotonic()
        yield
        self.seconds += time.monotonic() - started

    @property
    def left(self) -> int:
        """Candidates that are not settled. [1]."""
        return len(self.waiting) + len(self.refined)

    def next_bound(self) -> float:
        """Lower bound on the candidates still to be visited; inf without any. [s]."""
        return min(self._first_bound(), self._refined_bound())

    def visit(self, *, cheaply: bool = False) -> int:
        """Settle, or bound better, the candidate with the least bound.

        Args:
            cheaply: Leave a candidate alone that only the solver could improve.
        """
        with self._clocked():
            self.worked += 1
            if self._refined_bound() > self._first_bound():
                place = self.waiting.next(self.incumbents.threshold())
                if place is not None:
                    self._refine(place)
                return 1
            bound, candidate = self._pick()
            work = self.work.get(candidate)
            if cheaply and work is not None and work.needs_solver:
                self.open_bound = min(self.open_bound, bound)
                del self.work[candidate]
                return 1
            self._solve(bound, candidate)
            return CLOSER_LOOK

    def _refined_bound(self) -> float:
        return self.refined[0][0] if self.refined else float("inf")

    def _first_bound(self) -> float:
        return self.waiting.bound()

    def _key(self, candidate: int) -> tuple[int, ...]:
        row, menu = int(self.space.mesh[candidate]), int(self.space.menu[candidate])
        return (self.variant, *degrees(self.space.meshes, row, menu))

    def _slowdown(self, candidate: int) -> float:
        return float(self.slowdown[candidate])

    def _key_s(self, candidate: int, step: int) -> float:
        """Simulated step [ns] as the key that the search makes least. [s]."""
        offset = self.offset
        fixed = offset if isinstance(offset, float) else float(offset[candidate])
        return step * self._slowdown(candidate) / 1e9 + fixed

    def _matters(self, candidate: int, bound: float, rule: str) -> bool:
        """Tell if a candidate can still change the list; count it if not."""
        if bound <= self.incumbents.threshold(self._key(candidate)):
            return True
        self.counted[rule] += 1
        return False

    def _refine(self, place: int) -> None:
        """Second tier: memory by rank, then path bounds."""
        candidate = int(self.order[place])
        first = float(self.bounds[candidate])
        if not self._matters(candidate, first, BY_BOUND):
            return
        costs = self.waiting.costs(place)
        if cannot_fit(costs):
            self.counted[NO_FIT] += 1
            return
        if costs.block:
            self._record(candidate, costs, answered_exactly(costs))
            return
        limit = self.incumbents.threshold(self._key(candidate))
        enough = self._nanoseconds(limit, candidate)
        hopeless = self._nanoseconds(self.incumbents.threshold(), candidate)
        relaxed = relax(costs, enough, self.paths, hopeless=hopeless)
        if self._push(candidate, relaxed.bound) <= limit:
            self.work[candidate] = self._begin(candidate, costs, relaxed)
            self._record(candidate, costs, self.work[candidate].last)
            self._teach(candidate)
        elif costs.hosts and not self.paths.lessons(costs) and self._is_turn(costs):
            # the bound that rules it out teaches nothing: others would ask as much
            tighten(costs, relaxed, enough, self.paths, self.stop)

    def _teach(self, candidate: int) -> None:
        """Take the first step of a candidate at once, where many may learn from it."""
        work = self.work[candidate]
        if self._is_turn(work.costs, first=not self.paths.lessons(work.costs)):
            self._advance(candidate, work)
            self._record(candidate, work.costs, work.last)

    def _is_turn(self, costs: StageCosts, *, first: bool = False) -> bool:
        """Tell if enough candidates were refined since one was to teach them."""
        key = lessons_of(costs)
        self.untaught[key] += 1
        if not first and self.untaught[key] < LEARNERS:
            return False
        self.untaught[key] = 0
        return True

    def _begin(
        self, candidate: int, costs: StageCosts, relaxed: Relaxation
    ) -> CandidateWork:
        """Work on a candidate, shared with candidates of equal degrees and costs.

        Candidates of equal degrees and inner problems have equal splits and steps. So
        have two rank orders that see equal links.
        """
        key = costs, self._key(candidate)
        if key not in self.twins:
            self.twins[key] = CandidateWork(costs, relaxed, self.paths, self.stop)
        return self.twins[key]

    def _nanoseconds(self, step_s: float, candidate: int) -> int | None:
        """A step as the simulator counts it, before the straggler factor. [ns]."""
        if step_s == float("inf"):
            return None
        left = step_s - self._key_s(candidate, 0)
        return int(left / self._slowdown(candidate) * 1e9) + 1

    def _push(self, candidate: int, bound: int) -> float:
        """Put a candidate back with a better bound [ns]; give it with slowdown. [s].

        The threshold only falls. So a candidate with a bound above the threshold needs
        no further work.
        """
        seconds = self._seconds(candidate, bound)
        heapq.heappush(self.refined, (seconds, candidate))
        return seconds

    def _seconds(self, candidate: int, bound: int) -> float:
        """Bound with slowdown, and no less than the bound of the first tier. [s]."""
        return max(self._key_s(candidate, bound), float(self.bounds[candidate]))

    def _pick(self) -> tuple[float, int]:
        """Take the least bound off the queue, or the least that needs no solver yet.

        Rounds of the solver take long. So every candidate that may beat the best plan
        has its other steps first, which may find a better plan.
        """
        entry, best = self.refined[0], self.incumbents.best
        if best is not None and self._at_solver(entry[1]):
            left = (e for e in self.refined if not self._at_solver(e[1]))
            entry = min((e for e in left if e[0] < best.step_s), default=entry)
        self.refined.remove(entry)
        heapq.heapify(self.refined)
        return entry

    def _at_solver(self, candidate: int) -> bool:
        return candidate in self.work and self.work[candidate].at_solver

    def _solve(self, bound: float, candidate: int) -> None:
        """Third tier: the next step of a candidate, queued again while open."""
        if not self._matters(candidate, bound, BY_PATHS):
            self.work.pop(candidate, None)
            return
        work = self.work[candidate]
        if work.open and self._seconds(candidate, work.bound) <= bound:
            self._advance(candidate, work)
        answer = work.last
        self._record(candidate, work.costs, answer)
        if work.open:
            self._push(candidate, answer.bound)
            return
        del self.work[candidate]
        if answer.outcome is Outcome.OPEN:
            seconds = self._seconds(candidate, answer.bound)
            self.open_bound = min(self.open_bound, seconds)

    def _advance(self, candidate: int, work: CandidateWork) -> None:
        """Do the next step of a candidate."""
        seen, spent = work.solver is not None, work.spent
        limit = self.incumbents.threshold(self._key(candidate))
        goal = self._nanoseconds(self.incumbents.best_s, candidate)
        work.advance(self._nanoseconds(limit, candidate), goal)
        self.solved += work.solver is not None and not seen
        self.worked += STEP + SOLVER * (work.spent - spent)

    def _record(self, candidate: int, costs: StageCosts, answer: MeshAnswer) -> None:
        """Count what an answer rules out; list its plan where that changes the list."""
        if answer.outcome is Outcome.INFEASIBLE:
            self.counted[NO_FIT] += 1
        if answer.outcome is Outcome.CUT_OFF:
            self.counted[BY_SOLVER] += 1
        if answer.value is None or answer.counts is None:
            return
        step_s = self._key_s(candidate, answer.value)
        if step_s > self.incumbents.threshold(self._key(candidate)):
            return
        mesh = self.space.mesh_of(candidate)
        found = Found(
            step_s=step_s,
            device_bytes=heaviest_bytes(self.pricing, mesh, costs, answer.counts),
            fields=layout_fields(self.space, candidate),
            variant=self.variant,
            candidate=candidate,
            counts=answer.counts,
        )
        self.incumbents.add(self._key(candidate), found)

    def lower_bound(self) -> float:
        """Lower bound on every candidate of this variant, visited or not. [s]."""
        best = self.incumbents.best
        value = best.step_s if best is not None else self.incumbents.most_s
        return min(value, self.next_bound(), self.open_bound, self.unseen_s)

    def outcome(self) -> SearchOutcome:
        """Plans that were found, and the bound that was proved."""
        rule = self.stopped or BY_BOUND
        counted = self.counted + Counter({rule: self.left})
        ranked = self.incumbents.ranked()
        return SearchOutcome(
            pricing=self.pricing,
            space=self.space,
            ranked=[found for found in ranked if found.variant == self.variant],
            bound_s=self.lower_bound(),
            stopped=self.cut_short or self.stopped,
            unseen=self.cut_short,
            pruned={rule: n for rule, n in sorted(counted.items()) if n},
            solved=self.solved,
            seconds=self.seconds,
            declared=self.declared,
            worked=self.worked,
            known_s=self.incumbents.known_s,
            near=[f for f in self.incumbents.within(NEAR) if f.variant == self.variant],
        )
