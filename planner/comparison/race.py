"""A race between candidates: bounds decide, and the search goes on where they do not.

The best offer so far is what the others have to beat. One whose bound is below it is
searched for just that: a plan that beats it, or the proof that there is none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nextafter
from typing import Literal

from planner.comparison.afford import paid_cap, paid_choice, settle_fastest
from planner.comparison.answer import CandidateAnswer, Question
from planner.comparison.candidate import told
from planner.comparison.chosen import Choice
from planner.comparison.known import Counts
from planner.comparison.planned import Planned
from planner.comparison.task import Task

Key = Literal["time", "cost"]
"""What decides between candidates."""
TIMES = 16.0
"""Work of a race over that of the first searches: what decides is worth it. [1]"""
FINER = 8.0
"""Tolerance over that of a plan that has beaten another. [1]"""


@dataclass(frozen=True)
class Race:
    """A candidate and the offer that it has to beat.

    Attributes:
        task: The candidate. [-]
        answer: What is known of it. [-]
        key: What decides. [-]
        value: Of the best offer. [s] or [USD]
    """

    task: Task
    answer: CandidateAnswer
    key: Key
    value: float


def key_for(question: Question, candidates: Sequence[CandidateAnswer]) -> Key:
    """What decides between candidates: time under a budget alone or without prices.

    Args:
        question: What is asked. [-]
        candidates: Answers to it. [-]

    Returns:
        Its name. [-]
    """
    priced = any(one.cost_usd is not None for one in candidates)
    under_budget = question.budget_usd is not None and question.deadline_s is None
    return "time" if under_budget or not priced else "cost"


def value_of(answer: CandidateAnswer, key: Key) -> float:
    """What a candidate offers.

    Args:
        answer: Of the candidate. [-]
        key: What decides. [-]

    Returns:
        Time or cost; inf where there is none. [s] or [USD]
    """
    value = answer.time_to_train_s if key == "time" else answer.cost_usd
    return inf if value is None else value


def least_of(answer: CandidateAnswer, key: Key) -> float:
    """What a candidate may offer at best, as far as was proven.

    Args:
        answer: Of the candidate. [-]
        key: What decides. [-]

    Returns:
        Time or cost; inf where it is proven to have no offer, or none that can be
        compared as its price is not known. [s] or [USD]
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

    Args:
        race: The candidate, and the offer. [-]

    Returns:
        Its answer with the better offer, or with the bound that rules one out; where
        the work ended before either, as it was. [-]
    """
    task, answer = race.task.working(TIMES), race.answer
    task.lay_over()
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
    """On the number of nodes that it has."""
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
    """The offer as it was; not below the other one, where that is proven."""
    if is_open or counts.out_of_time:
        return answer.model_copy(update={"out_of_time": counts.out_of_time})
    value = value_of(answer, race.key)
    least = min(value, max(least_of(answer, race.key), race.value))
    field = "least_time_s" if race.key == "time" else "least_cost_usd"
    return answer.model_copy(update={field: least})
