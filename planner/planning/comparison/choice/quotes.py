"""Quotes behind the prices of a verdict: number, and spread."""

from collections.abc import Sequence

from planner.hardware.prices import ENOUGH
from planner.planning.comparison.answer import CandidateAnswer
from planner.planning.comparison.choice.best import offers
from planner.planning.comparison.choice.front import is_able
from planner.planning.comparison.choice.race import key_for
from planner.planning.comparison.read import Sweep
from planner.planning.comparison.vocabulary import money


def quotes_behind(candidates: Sequence[CandidateAnswer]) -> str:
    """Prices behind a verdict that rest on few quotes, in words.

    Returns:
        Names of those with a plan whose price is no median of enough quotes; empty
        where no candidate has a price. [text]
    """
    priced = [one for one in candidates if one.plan is not None and one.quotes]
    if not priced:
        return ""
    few = [
        f"{'one' if one.quotes == 1 else 'two'} of {one.name}"
        for one in priced
        if one.quotes < ENOUGH
    ]
    if few:
        return f"prices rest on fewer than {ENOUGH} quotes: {', '.join(few)}"
    return f"every price is the median of {ENOUGH} quotes or more"


def over_the_quotes(
    sweep: Sweep, candidates: Sequence[CandidateAnswer], best: CandidateAnswer
) -> str:
    """Change of the winner over the spread of the quotes, in words.

    Every candidate keeps the nodes and the plan of the median price.

    Returns:
        Winners at the least and the greatest quotes, and who may beat the winner;
        empty where no price has a spread. [text]
    """
    able = [one for one in candidates if is_able(one) and one.cost_range_usd]
    if best.cost_range_usd is None or all(_least(one) == _most(one) for one in able):
        return ""
    span = f"{best.name} costs {money(_least(best))} to {money(_most(best))}"
    if key_for(sweep.question, candidates) == "time":
        return f"over the quotes {span}{_over_budget(sweep, best)}"
    rivals = [one for one in offers(sweep, able) if one is not best]
    return f"over the quotes {span}; {_winners(best, rivals)}"


def _least(one: CandidateAnswer) -> float:
    return one.cost_range_usd[0] if one.cost_range_usd else 0.0


def _most(one: CandidateAnswer) -> float:
    return one.cost_range_usd[1] if one.cost_range_usd else 0.0


def _over_budget(sweep: Sweep, best: CandidateAnswer) -> str:
    """Words on a budget that the greatest quote breaks."""
    budget = sweep.question.budget_usd
    if budget is None or _most(best) <= budget:
        return ""
    return f", at the greatest over the budget of {money(budget)}"


def _winners(best: CandidateAnswer, rivals: Sequence[CandidateAnswer]) -> str:
    """Winners with all prices low and all high, and rivals that overlap."""
    low = min([best, *rivals], key=_least).name
    high = min([best, *rivals], key=_most).name
    both = f"at the least of all {low} wins, at the greatest {high}"
    if low == high == best.name:
        both = f"at the least of all and at the greatest of all {best.name} wins too"
    near = [one.name for one in rivals if _least(one) < _most(best)]
    if not near:
        return f"{both}, and no quotes of the others change that"
    return f"{both}; at its greatest it loses to {' or '.join(near)} at its least"
