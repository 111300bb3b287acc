"""A race between candidates: bounds decide, and the search goes on where they do not.

The other candidates have to beat the best offer so far. A candidate with a lower
bound is searched for a plan that beats the offer, or for a proof.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, nextafter
from typing import Literal

from planner.planning.comparison.answer import CandidateAnswer, Question
from planner.planning.comparison.candidates.candidate import told
from planner.planning.comparison.candidates.known import Counts
from planner.planning.comparison.candidates.plan_cache import Planned
from planner.planning.comparison.candidates.task import Task
from planner.planning.comparison.choice.afford import (
    paid_cap,
    paid_choice,
    settle_fastest,
)
from planner.planning.comparison.choice.chosen import Choice

Key = Literal["time", "cost"]
"""Quantity that decides between candidates."""
TIMES = 16.0
"""Work of a race over the work of the first searches. [1]"""
FINER = 8.0
"""Tolerance over the tolerance of a plan that has beaten another. [1]"""


@dataclass(frozen=True)
class Race:
    """A candidate and the offer that it has to beat.

    Attributes:
        task: The candidate. [-]
        answer: Answer of the candidate so far. [-]
        key: Quantity that decides. [-]
        value: Time or cost of the best offer. [s] or [USD]
    """

    task: Task
    answer: CandidateAnswer
    key: Key
    value: float

    def ended(self) -> "Race":
        """The race after the end of the time for it."""
        return replace(self, task=self.task.ended())


def key_for(question: Question, candidates: Sequence[CandidateAnswer]) -> Key:
    """Quantity that decides: time under a budget alone or without prices, else cost."""
    priced = any(one.cost_usd is not None for one in candidates)
    under_budget = question.budget_usd is not None and question.deadline_s is None
    return "time" if under_budget or not priced else "cost"


def value_of(answer: CandidateAnswer, key: Key) -> float:
    """Time or cost that a candidate offers.

    Returns:
        Time or cost; inf where there is none. [s] or [USD]
    """
    value = answer.time_to_train_s if key == "time" else answer.cost_usd
    return inf if value is None else value


def least_of(answer: CandidateAnswer, key: Key) -> float:
    """Lower bound of the time or cost that a candidate may offer.

    Returns:
        Time or cost; inf where the candidate is proven to have no offer, or has no
        price to compare. [s] or [USD]
    """
    held = answer.meets_deadline is not False
    ruled_out = answer.status in ("infeasible", "over-budget", "too-late")
    nothing = answer.plan is None and answer.settled
    unpriced = answer.plan is not None and key == "cost" and answer.cost_usd is None
    if ruled_out or nothing or unpriced or not held:
        return inf
    least = answer.least_time_s if key == "time" else answer.least_cost_usd
    return 0.0 if least is None else least


def run_race(race: Race) -> CandidateAnswer:
    """Search a candidate for an offer that beats another.

    Returns:
        The candidate's answer with the better offer, or with the bound that rules a
        better offer out; where the work ended before either, the answer as it was. [-]
    """
    task, answer = race.task.working(TIMES), race.answer
    counts = Counts(task, answer.ruled_out)
    question = task.question
    alone = len(task.counts) == 1 or question.deadline_s is not None
    if alone or question.budget_usd is None:
        return _on_its_nodes(race, counts)
    cap = paid_cap(counts)
    best, left = settle_fastest(counts, cap, rival_s=race.value, tolerance=0.0)
    if best is None:
        return _stands(answer, race, counts, is_open=bool(left))
    planned = _finer(counts, best.nodes)
    least = min(counts.least_s(n) for n in (*counts.seen, *left))
    return _better(counts, answer, paid_choice(counts, planned, left, least))


def _on_its_nodes(race: Race, counts: Counts) -> CandidateAnswer:
    """Race on the number of nodes that the candidate has."""
    answer, nodes = race.answer, race.answer.nodes
    assert nodes is not None
    limit = race.value
    if race.key == "cost":
        assert answer.time_to_train_s is not None
        limit = answer.time_to_train_s * race.value / value_of(answer, "cost")
    verdict = counts.beats(nodes, nextafter(limit, 0.0))
    if not verdict:
        return _stands(answer, race, counts, is_open=verdict is None)
    planned = _finer(counts, nodes)
    chosen = Choice(planned, answer.chosen, None, answer.open_counts, planned.least_s)
    return _better(counts, answer, chosen)


def _finer(counts: Counts, nodes: int) -> Planned:
    """A plan that is closer to the best than the tolerance asks."""
    return counts.at(nodes, counts.task.effort.tolerance / FINER)


def _better(counts: Counts, answer: CandidateAnswer, choice: Choice) -> CandidateAnswer:
    """The better offer, with every count that was planned before it."""
    found = told(counts, choice)
    nodes = {point.nodes for point in found.points}
    before = [point for point in answer.points if point.nodes not in nodes]
    every = sorted([*before, *found.points], key=lambda point: point.nodes)
    return found.model_copy(update={"points": tuple(every)})


def _stands(
    answer: CandidateAnswer, race: Race, counts: Counts, *, is_open: bool
) -> CandidateAnswer:
    """The offer as it was; where proven, with the rival's offer as its bound."""
    if is_open or counts.out_of_time:
        return answer.model_copy(update={"out_of_time": counts.out_of_time})
    value = value_of(answer, race.key)
    least = min(value, max(least_of(answer, race.key), race.value))
    field = "least_time_s" if race.key == "time" else "least_cost_usd"
    return answer.model_copy(update={field: least})
