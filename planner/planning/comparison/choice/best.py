"""Best candidate for the question, and the refusal where no candidate answers it."""

from collections.abc import Sequence

from planner.errors import BadInputError
from planner.planning.comparison.answer import CandidateAnswer
from planner.planning.comparison.candidates.task import Task
from planner.planning.comparison.choice.front import is_able
from planner.planning.comparison.choice.race import key_for, value_of
from planner.planning.comparison.read import Sweep
from planner.planning.comparison.vocabulary import days, money


def refuse_hopeless(sweep: Sweep) -> None:
    """Refuse a budget that no candidate has a node for, before anything is planned.

    A rented node costs an hour at least.

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

    Under a deadline the cheapest that meets it, first among those within the budget.
    Under a budget alone the fastest. Else the candidate that trains the most tokens
    for a dollar. Without prices the fastest. A candidate that is not settled is never
    chosen.

    Returns:
        The answer and why; none where nothing fits, no plan was found, or none is
        settled. [-]

    Raises:
        BadInputError: Nothing meets the deadline, or nothing can be paid for.
    """
    able = offers(sweep, [one for one in candidates if is_able(one)])
    if not able:
        if all(one.settled for one in candidates):
            _refuse(sweep, candidates)
            return None, "no candidate has a plan"
        return None, "no candidate that may answer the question is settled"
    key = key_for(sweep.question, candidates)
    best = min(able, key=lambda one: (value_of(one, key), one.time_to_train_s))
    return best, _why(sweep, best)


def offers(sweep: Sweep, able: Sequence[CandidateAnswer]) -> Sequence[CandidateAnswer]:
    """Offers among which the best is: those with a price, and within the budget."""
    key = key_for(sweep.question, able)
    priced = [one for one in able if key == "time" or one.cost_usd is not None]
    paid = [one for one in priced if one.within_budget is not False]
    return paid or priced


def _why(sweep: Sweep, best: CandidateAnswer) -> str:
    """Reason why a candidate is the best, in words."""
    question = sweep.question
    held = question.budget_usd
    paid = held is not None and best.within_budget is not False
    if question.deadline_s is not None and best.cost_usd is not None:
        within = f" within {money(held)}" if held is not None and paid else ""
        limit = f"no more than {days(question.deadline_s)}"
        free = any(len(task.counts) > 1 for task in sweep.tasks)
        fewest = ", each on the fewest nodes that do" if free else ""
        return f"the cheapest to take {limit}{within}{fewest}"
    if held is not None or best.cost_usd is None:
        of_all = ", of the counts that are settled" if best.open_counts else ""
        return (
            "the fastest" + (f" that {money(held)} pays for" if held else "") + of_all
        )
    return "the most tokens for a dollar"


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
    """Duration in words, half a per cent longer: rounding never shortens it."""
    return days((seconds or 0.0) * 1.005)
