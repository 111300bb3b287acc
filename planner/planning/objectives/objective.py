"""The objective of an answer: what was found, and the bound that proves it."""

from collections.abc import Sequence

from planner.cost.workload import Workload
from planner.planning.reasons import changes
from planner.planning.ties import Contender
from planner.search.outcome import SearchOutcome
from planner.specs.answer.result import Objective, RankedPlan

PER_TOKEN = {"cost": 1e6, "energy": 1.0}
"""Tokens that the value of an objective is of. [token]"""


def objective_of(
    outcomes: Sequence[SearchOutcome], found: Sequence[Contender]
) -> Objective:
    """Value of the best plan, and the best that the bound leaves.

    Throughput [token/s], cost [USD per million tokens] or energy [J per token].

    Returns:
        Value, bound and gap; the value is 0 without a plan. [-]
    """
    pricing = outcomes[0].pricing
    bound = min(outcome.bound_s for outcome in outcomes)
    if not pricing.aim.is_step:
        return _amount(pricing, bound, found)
    tokens = pricing.training.step_tokens
    most = 0.0 if bound == float("inf") else tokens / max(bound, 1e-12)
    if not found:
        return Objective(name="throughput", value=0.0, bound=most, gap=1.0)
    value = found[0].estimate.tokens_per_s
    best = min(outcome.ranked[0].step_s for outcome in outcomes if outcome.ranked)
    gap = max(0.0, 1.0 - bound / best)
    return Objective(name="throughput", value=value, bound=max(most, value), gap=gap)


def _amount(workload: Workload, bound: float, found: Sequence[Contender]) -> Objective:
    """An amount that was made least."""
    aim, tokens = workload.aim, workload.training.step_tokens
    unit = PER_TOKEN[aim.name] * aim.whole / tokens
    least = 0.0 if bound == float("inf") else bound * unit
    if not found:
        return Objective(name=aim.name, value=0.0, bound=least, gap=1.0)
    value = found[0].key_s * unit
    gap = max(0.0, 1.0 - bound / found[0].key_s)
    return Objective(name=aim.name, value=value, bound=min(least, value), gap=gap)


def runner_up_words(
    name: str, plans: Sequence[RankedPlan], contenders: Sequence[Contender]
) -> str:
    """The next plan by an amount, in a sentence."""
    if len(plans) < 2:
        return "No other set of degrees fits, or none was close enough to list."
    more = contenders[1].key_s / contenders[0].key_s - 1
    takes = {"cost": "costs", "energy": "takes"}[name]
    what = {"cost": "more", "energy": "more energy"}[name]
    return f"The next, {changes(plans[0], plans[1])}, {takes} {more:.2%} {what}."
