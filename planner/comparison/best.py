"""Which candidate answers the question best, and what to say where none does."""

from collections.abc import Sequence

from planner.comparison.answer import CandidateAnswer
from planner.comparison.front import is_able
from planner.comparison.read import Sweep
from planner.comparison.task import Task
from planner.comparison.words import days, money
from planner.errors import BadInputError


def refuse_hopeless(sweep: Sweep) -> None:
    """Refuse a budget that no candidate has a node for, before anything is planned.

    A rented node costs an hour at least.

    Args:
        sweep: Candidates and question. [-]

    Raises:
        BadInputError: The budget is below one node of every candidate.
    """
    budget = sweep.question.budget_usd
    if budget is None:
        return
    least = [_least(task) for task in sweep.tasks]
    known = [
        (cost, task) for cost, task in zip(least, sweep.tasks, strict=True) if cost
    ]
    if len(known) < len(least) or min(cost for cost, _ in known) <= budget:
        return
    cost, task = min(known, key=lambda pair: pair[0])
    price = task.price()
    hour = " for an hour" if price is not None and price.is_rate else ""
    raise BadInputError(
        "no candidate has a node for this budget",
        file=task.file,
        field="budget",
        value=money(budget),
        allowed=f"{money(cost)} or more: one node of {task.name}{hour}",
    )


def _least(task: Task) -> float:
    """Price of one node, or of an hour of one; 0 where it is not known. [USD]."""
    price = task.price()
    if price is None:
        return 0.0
    per_node = task.smallest.topology.cluster.node.gpus_per_node
    return price.per_gpu(per_node) * per_node


def best_of(
    sweep: Sweep, candidates: Sequence[CandidateAnswer]
) -> tuple[CandidateAnswer | None, str]:
    """The candidate to sign for.

    Under a deadline the cheapest that meets it, one within the budget first. Under a
    budget alone the fastest. Else the one that trains the most tokens for a dollar.
    Without prices the fastest.

    Args:
        sweep: The question. [-]
        candidates: Answers to it. [-]

    Returns:
        The answer and why; none where nothing fits or no plan was found. [-]

    Raises:
        BadInputError: Nothing meets the deadline, or nothing can be paid for.
    """
    able = [one for one in candidates if is_able(one)]
    if not able:
        _refuse(sweep, candidates)
        return None, "no candidate has a plan"
    question = sweep.question
    priced = [one for one in able if one.cost_usd is not None]
    if question.deadline_s is not None and priced:
        paid = [one for one in priced if one.within_budget is not False]
        best = min(paid or priced, key=lambda one: (one.cost_usd, one.time_to_train_s))
        held = question.budget_usd
        within = f" within {money(held)}" if held is not None and paid else ""
        why = f"the cheapest that takes no more than {days(question.deadline_s)}"
        return best, why + within
    if question.budget_usd is not None or not priced:
        paid = [one for one in able if one.within_budget is not False]
        best = min(paid or able, key=lambda one: (one.time_to_train_s, one.cost_usd))
        held = question.budget_usd
        return best, "the fastest" + (f" that {money(held)} pays for" if held else "")
    best = min(priced, key=lambda one: (one.cost_usd, one.time_to_train_s))
    return best, "the most tokens for a dollar"


def _refuse(sweep: Sweep, candidates: Sequence[CandidateAnswer]) -> None:
    """One message where a deadline or a budget rules out every candidate."""
    late = [
        one
        for one in candidates
        if one.plan is not None
        and (one.status == "too-late" or one.meets_deadline is False)
    ]
    if late:
        nearest = min(late, key=lambda one: one.time_to_train_s or 0.0)
        raise BadInputError(
            "no candidate meets it",
            file=sweep.tasks[0].file,
            field="deadline",
            value=days(sweep.question.deadline_s or 0.0),
            allowed=f"{_up(nearest.time_to_train_s)} or more: the nearest is "
            f"{nearest.name} on {nearest.nodes:,} nodes",
        )
    dear = [one for one in candidates if one.status == "over-budget"]
    if dear:
        known = [one for one in dear if one.outlay_usd is not None]
        nearest = min(known or dear, key=lambda one: one.outlay_usd or 0.0)
        raise BadInputError(
            "no candidate can be paid for",
            file=sweep.tasks[0].file,
            field="budget",
            value=money(sweep.question.budget_usd or 0.0),
            allowed=f"more; of {nearest.name} {nearest.why}",
        )


def _up(seconds: float | None) -> str:
    """A duration in words that is no shorter than it is."""
    return days((seconds or 0.0) * 1.005)
