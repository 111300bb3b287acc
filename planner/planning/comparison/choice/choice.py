"""Choose the number of nodes of a candidate."""

from collections.abc import Iterator, Sequence

from planner.planning.comparison.candidates.counts import domain_nodes, first_reaching
from planner.planning.comparison.candidates.known import Counts
from planner.planning.comparison.candidates.plan_cache import Planned
from planner.planning.comparison.choice.afford import by_purchase, by_rent
from planner.planning.comparison.choice.chosen import (
    Choice,
    fastest,
    last_own,
    open_words,
)
from planner.planning.comparison.vocabulary import days, money

USUAL_UTILISATION = 0.4
"""Model FLOPs over peak that the first guess of a count takes. [1]"""
GIVEN = "the number that was given"


def choose(counts: Counts) -> Choice:
    """The node count that answers the question, of all that the candidate may have.

    A given count is fixed. Under a deadline the smallest that meets it. Under a
    budget alone the fastest that it pays for: of bought nodes their price, of rented
    nodes the rent of the whole run.

    Every count is planned, or ruled out: in closed form, or by a search that proves
    that no plan on it would do. Counts left open when the work ends are reported.
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
        return by_rent(counts, task.question.budget_usd)
    return by_purchase(counts, task.question.budget_usd)


def _given(counts: Counts) -> Choice:
    """Choice of the given count; the search goes on while a limit may be met."""
    nodes, question = counts.task.counts[0], counts.task.question
    planned = counts.at(nodes)
    if planned.time_s is not None:
        rate = counts.least(nodes).usd_per_s
        rented = question.budget_usd / rate if question.budget_usd and rate else None
        for limit_s in filter(None, (question.deadline_s, rented)):
            counts.beats(nodes, limit_s)
    planned = counts.seen[nodes]
    return Choice(planned, GIVEN, least_s=planned.least_s)


def _by_deadline(counts: Counts, deadline_s: float) -> Choice:
    """Choice of the smallest count whose run meets the deadline."""
    likely = _likely(counts, deadline_s)

    def value(nodes: int) -> float:
        planned = counts.at(nodes)
        return 0.0 if planned.time_s is None else deadline_s / planned.time_s

    if likely:
        first_reaching(likely, value, guess=_guess(counts, deadline_s))
    smallest = min(_met(counts, deadline_s), default=None)
    left: list[int] = []
    for nodes in _own_below(counts, deadline_s):
        if smallest is not None and nodes >= smallest:
            continue
        verdict = counts.beats(nodes, deadline_s)
        if verdict is None:
            left.append(nodes)
        elif verdict:
            smallest = nodes
    if smallest is None:
        return _too_late(counts, left)
    chosen = counts.at(smallest)
    open_counts = tuple(sorted(n for n in left if n < smallest))
    words = _smallest(counts, deadline_s, open_counts) + _below(counts, chosen)
    return Choice(chosen, words, open_counts=open_counts, least_s=chosen.least_s)


def _likely(counts: Counts, limit_s: float) -> list[int]:
    """Sensible counts that are not ruled out in closed form."""
    return [n for n in counts.sensible if counts.least(n).time_s <= limit_s]


def _own_below(counts: Counts, limit_s: float) -> Iterator[int]:
    """Counts that are not ruled out in closed form, the largest first.

    The bound falls as the count grows: the first count that it rules out is the last
    that is looked at.
    """
    for nodes in reversed(counts.task.counts):
        if counts.least(nodes).time_s > limit_s:
            return
        if counts.is_own(nodes):
            yield nodes


def _met(counts: Counts, deadline_s: float) -> list[int]:
    """Planned counts that meet a deadline."""
    seen = counts.seen.items()
    return [n for n, one in seen if one.time_s is not None and one.time_s <= deadline_s]


def _smallest(counts: Counts, deadline_s: float, open_counts: Sequence[int]) -> str:
    """Words on a count under a deadline: the smallest only where that is proven."""
    unit = domain_nodes(counts.task.smallest)
    whole = f" in whole domains of {unit} nodes" if unit > 1 else ""
    limit = f"no more than {days(deadline_s)}"
    if not open_counts:
        return f"the smallest{whole} that takes {limit}"
    return f"takes {limit}; {open_words(open_counts)} may do as well"


def _below(counts: Counts, chosen: Planned) -> str:
    """Words on the time of the next smaller count, and on a cheaper larger count.

    A cost that is lower by less than the digits shown is left out.
    """
    timed = [p for p in counts.seen.values() if p.time_s is not None]
    said = ""
    if smaller := [p for p in timed if p.nodes < chosen.nodes]:
        before = max(smaller, key=lambda planned: planned.nodes)
        said = f"; {before.nodes:,} would take {days(before.time_s or 0.0)}"
    dear = chosen.cost_usd
    larger = [
        (p.cost_usd, p.nodes)
        for p in timed
        if p.nodes > chosen.nodes and p.cost_usd and dear and p.cost_usd < dear
    ]
    cost, nodes = min(larger, default=(dear or 0.0, chosen.nodes))
    if money(cost) == money(dear or 0.0):
        return said
    return (
        f"{said}; {nodes:,} would cost {money(cost)}, less than its {money(dear or 0)}"
    )


def _too_late(counts: Counts, left: Sequence[int]) -> Choice:
    """The fastest count that was planned; too late only where that is proven."""
    if left:
        words = f"{open_words(sorted(left))} may meet the deadline"
        return Choice(fastest(counts), words, "unknown", tuple(sorted(left)))
    nearest = fastest(counts) or counts.at(last_own(counts))
    if nearest.time_s is None:
        return Choice(nearest, nearest.why)
    took = days(nearest.time_s)
    words = f"no count meets it; {nearest.nodes:,} nodes would take {took}"
    return Choice(nearest, words, "too-late", least_s=nearest.least_s)


def _guess(counts: Counts, deadline_s: float) -> float:
    """Nodes that meet the deadline at a usual utilisation. [1]."""
    workload = counts.task.smallest
    per_gpu = workload.peak_flops * USUAL_UTILISATION * deadline_s
    flops = 6 * workload.model.active_parameters * counts.task.question.tokens
    return flops / per_gpu / workload.topology.cluster.node.gpus_per_node
