"""How many nodes of a candidate to sign for."""

from dataclasses import dataclass
from math import inf, nextafter

from planner.comparison.answer import CandidateStatus
from planner.comparison.counts import first_reaching
from planner.comparison.planned import Counts, Planned
from planner.comparison.words import days, money

USUAL_UTILISATION = 0.4
"""Model FLOPs over peak that the first guess of a count takes. [1]"""
TOKENS_PER_GPU = 2048.0
"""Tokens of a step for each GPU at the first guess under a budget. [token]"""


@dataclass(frozen=True)
class Choice:
    """A number of nodes and why.

    Attributes:
        planned: The count with its plan; None where none will do. [-]
        words: Why this one, or what is nearest to one that will do. [text]
        status: What stands against the candidate, if anything. [-]
    """

    planned: Planned | None
    words: str
    status: CandidateStatus | None = None


def choose(counts: Counts) -> Choice:
    """The node count that answers the question.

    Fixed where one is given. Under a deadline the smallest that meets it. Under a
    budget alone the largest that it pays for, which is the fastest: of bought nodes
    what their price allows, of rented ones what the rent of the whole run allows.

    Args:
        counts: Of one candidate. [-]

    Returns:
        The count, planned within the tolerance. [-]

    Leaves out counts between sensible ones, and a time that grows with the count or a
    rent that falls with it: both happen where a job can no longer use its nodes.
    """
    task = counts.task
    if len(task.counts) == 1:
        return _given(counts)
    if task.question.deadline_s is not None:
        return _by_deadline(counts, task.question.deadline_s)
    assert task.question.budget_usd is not None
    price = task.price()
    if price is None:
        return Choice(None, "no price is known, so no budget buys it", "unknown")
    if price.is_rate:
        return _by_rent(counts, task.question.budget_usd)
    return _by_purchase(counts, task.question.budget_usd)


def _given(counts: Counts) -> Choice:
    planned = counts.at(counts.task.counts[0])
    return Choice(planned, "the number that was given")


def _by_deadline(counts: Counts, deadline_s: float) -> Choice:
    """The first count whose run is short enough."""
    task = counts.task

    def value(nodes: int) -> float:
        planned = counts.at(nodes)
        if planned.time_s is None:
            return 0.0
        return deadline_s / planned.time_s

    first_reaching(task.counts, value, guess=_guess(counts, deadline_s))
    met = [p for p in counts.seen.values() if _meets(p, deadline_s)]
    if not met:
        return _too_late(counts)
    chosen = min(met, key=lambda planned: planned.nodes)
    words = f"the smallest that takes no more than {days(deadline_s)}"
    return Choice(chosen, words + _below(counts, chosen.nodes))


def _meets(planned: Planned, deadline_s: float) -> bool:
    return planned.time_s is not None and planned.time_s <= deadline_s


def _below(counts: Counts, nodes: int) -> str:
    """What the next smaller count would take."""
    smaller = [n for n in counts.task.counts if n < nodes]
    if not smaller:
        return "; none smaller was looked at"
    before = counts.seen.get(smaller[-1])
    if before is None or before.time_s is None:
        return ""
    return f"; {before.nodes:,} would take {days(before.time_s)}"


def _too_late(counts: Counts) -> Choice:
    """The fastest count that was seen."""
    timed = [p for p in counts.seen.values() if p.time_s is not None]
    if not timed:
        return _nothing(counts)
    nearest = min(timed, key=lambda planned: (planned.time_s or 0.0, planned.nodes))
    took = days(nearest.time_s or 0.0)
    words = f"the fastest takes {took}, on {nearest.nodes:,} nodes"
    return Choice(nearest, words, "too-late")


def _nothing(counts: Counts) -> Choice:
    """No count has a plan."""
    last = counts.seen[max(counts.seen)]
    return Choice(last, last.why)


def _by_purchase(counts: Counts, budget_usd: float) -> Choice:
    """The most nodes that the budget buys."""
    task = counts.task
    per_node = {n: _price_of(counts, n) for n in (task.counts[0], task.counts[-1])}
    low = task.counts[0]
    if per_node[low] * low > budget_usd:
        words = f"{low:,} nodes cost {money(per_node[low] * low)}"
        return Choice(None, words, "over-budget")
    fits = [n for n in task.counts if _price_of(counts, n) * n <= budget_usd]
    chosen = counts.at(fits[-1])
    return Choice(chosen, f"the most that {money(budget_usd)} buys")


def _price_of(counts: Counts, nodes: int) -> float:
    """Price of a whole node, among so many. [USD]."""
    price = counts.task.price(nodes)
    per_node = counts.task.smallest.topology.cluster.node.gpus_per_node
    assert price is not None
    return price.per_gpu(per_node) * per_node


def _by_rent(counts: Counts, budget_usd: float) -> Choice:
    """The last count whose run the budget pays for."""
    task = counts.task

    def value(nodes: int) -> float:
        planned = counts.at(nodes)
        if planned.cost_usd is None:
            return 0.0
        # What costs the budget to the cent is within it.
        return planned.cost_usd / nextafter(budget_usd, inf)

    first_reaching(task.counts, value, guess=_comfortable(counts))
    paid = [p for p in counts.seen.values() if _pays(p, budget_usd)]
    if not paid:
        return _too_dear(counts)
    chosen = min(paid, key=lambda planned: (planned.time_s or 0.0, planned.nodes))
    words = f"the fastest that {money(budget_usd)} pays for"
    return Choice(chosen, words + _above(counts, chosen.nodes))


def _pays(planned: Planned, budget_usd: float) -> bool:
    return planned.cost_usd is not None and planned.cost_usd <= budget_usd


def _above(counts: Counts, nodes: int) -> str:
    """What the next larger count would cost."""
    larger = [n for n in counts.task.counts if n > nodes]
    if not larger:
        return "; none larger was looked at"
    after = counts.seen.get(larger[0])
    if after is None or after.cost_usd is None:
        return ""
    return f"; {after.nodes:,} would cost {money(after.cost_usd)}"


def _too_dear(counts: Counts) -> Choice:
    """The cheapest count that was seen."""
    priced = [p for p in counts.seen.values() if p.cost_usd is not None]
    if not priced:
        return _nothing(counts)
    nearest = min(priced, key=lambda planned: (planned.cost_usd or 0.0, planned.nodes))
    spent = money(nearest.cost_usd or 0.0)
    words = f"the cheapest run costs {spent}, on {nearest.nodes:,} nodes"
    return Choice(nearest, words, "over-budget")


def _guess(counts: Counts, deadline_s: float) -> float:
    """Nodes that meet the deadline at a usual utilisation. [1]."""
    workload = counts.task.smallest
    per_gpu = workload.peak_flops * USUAL_UTILISATION * deadline_s
    flops = 6 * workload.model.active_parameters * counts.task.question.tokens
    return flops / per_gpu / workload.topology.cluster.node.gpus_per_node


def _comfortable(counts: Counts) -> float:
    """Nodes at which a step gives each GPU enough to do. [1]."""
    workload = counts.task.smallest
    tokens = workload.sequences * workload.training.seq_len
    return tokens / TOKENS_PER_GPU / workload.topology.cluster.node.gpus_per_node
