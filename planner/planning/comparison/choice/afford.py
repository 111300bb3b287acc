"""Node counts under a budget: the fastest that it pays for."""

from collections.abc import Callable, Sequence
from math import inf, nextafter

from planner.planning.comparison.candidates.counts import first_reaching
from planner.planning.comparison.candidates.known import Counts
from planner.planning.comparison.candidates.plan_cache import Planned
from planner.planning.comparison.choice.chosen import (
    Choice,
    fastest,
    last_own,
    open_words,
)
from planner.planning.comparison.vocabulary import money

TOKENS_PER_GPU = 2048.0
"""Tokens of a step for each GPU at the first guess under a budget. [token]"""

ROUNDED = 1 + 2**-51
"""Factor above what a product and a quotient round away: the rent of a run that costs
exactly the budget pays for it. [1]"""

Cap = Callable[[int], float]
"""Longest run that a budget pays for, by number of nodes. [s]"""


def paid_cap(counts: Counts) -> Cap:
    """Longest run that the budget pays for, by number of nodes.

    Returns:
        Time by nodes: of rented nodes the budget over their least rent; of bought
        nodes infinity where the budget buys them, else 0. [-]
    """
    budget_usd = counts.task.question.budget_usd or inf
    price = counts.task.price()

    def rented(nodes: int) -> float:
        rate = counts.least(nodes).usd_per_s
        return budget_usd * ROUNDED / rate if rate else inf

    def bought(nodes: int) -> float:
        return inf if _price_of(counts, nodes) <= budget_usd else 0.0

    return rented if price is None or price.is_rate else bought


def by_purchase(counts: Counts, budget_usd: float) -> Choice:
    """Fastest node count that the budget buys.

    Args:
        counts: Node counts of one candidate. [-]
        budget_usd: The budget. [USD]
    """
    low = counts.task.counts[0]
    least = _price_of(counts, low)
    if least > budget_usd:
        words = f"{low:,} nodes cost {money(least)}"
        return Choice(None, words, "over-budget")

    cap = paid_cap(counts)
    likely = [n for n in counts.sensible if cap(n) > 0]
    if likely:
        counts.at(likely[-1])
    return _fastest_paid(counts, cap, budget_usd)


def _price_of(counts: Counts, nodes: int) -> float:
    """Price of a number of nodes and of the spare nodes. [USD]."""
    task = counts.task
    workload = counts.task.smallest
    terms = task.terms(workload)
    per_node = workload.topology.cluster.node.gpus_per_node
    price = terms.nodes[workload.topology.cluster.node.name].price
    assert price is not None
    return price.per_gpu(per_node) * per_node * (nodes + terms.spare_nodes)


def by_rent(counts: Counts, budget_usd: float) -> Choice:
    """Fastest node count whose run the budget pays for.

    Args:
        counts: Node counts of one candidate. [-]
        budget_usd: The budget. [USD]
    """
    cap = paid_cap(counts)

    def value(nodes: int) -> float:
        planned = counts.at(nodes)
        if planned.cost_usd is None:
            return 0.0
        # A run that costs exactly the budget is within it.
        return planned.cost_usd / nextafter(budget_usd, inf)

    likely = [n for n in counts.sensible if counts.least(n).time_s <= cap(n)]
    if likely:
        first_reaching(likely, value, guess=_comfortable(counts))
    return _fastest_paid(counts, cap, budget_usd)


def _fastest_paid(counts: Counts, cap: Cap, budget_usd: float) -> Choice:
    """The fastest count that the budget pays for, within the tolerance."""
    best, left = settle_fastest(counts, cap)
    if best is None:
        return _too_dear(counts, left, budget_usd)
    tolerance = counts.task.effort.tolerance
    others = [counts.least_s(n) for n in left]
    least = min(best.least_s, _within(best, tolerance), *others)
    return paid_choice(counts, best, left, least)


def paid_choice(
    counts: Counts, best: Planned, left: Sequence[int], least_s: float
) -> Choice:
    """A count that the budget pays for, called the fastest only where that is proven.

    Args:
        counts: Node counts of one candidate. [-]
        best: The count with its plan. [-]
        left: Counts that may be faster, ascending. [1]
        least_s: Lower bound of every run that the budget pays for. [s]
    """
    budget = money(counts.task.question.budget_usd or 0.0)
    words = f"the fastest that {budget} pays for"
    if left:
        words = f"{budget} pays for it; {open_words(left)} may be faster"
    words += _dearer(counts, best, paid_cap(counts))
    return Choice(best, words, None, tuple(left), least_s)


def _within(best: Planned, tolerance: float) -> float:
    """Time of the best run, less the tolerance. [s]."""
    return (best.time_s or 0.0) * (1 - tolerance)


def settle_fastest(
    counts: Counts,
    cap: Cap,
    *,
    rival_s: float = inf,
    tolerance: float | None = None,
) -> tuple[Planned | None, list[int]]:
    """Look for a count that is faster than the best known, until none can be.

    Args:
        counts: Node counts of one candidate. [-]
        cap: Longest run that the budget pays for, by number of nodes. [s]
        rival_s: Time of the run to beat. [s]
        tolerance: A count is of interest if it may be faster by more. [1]

    Returns:
        The fastest planned count that the budget pays for, None without one; and the
        counts that may be faster, ascending. [-], [1]
    """
    wanted = counts.task.effort.tolerance if tolerance is None else tolerance
    left: list[int] = []
    for nodes in reversed(counts.task.counts):
        best = _best_paid(counts, cap)
        limit = _limit(best, rival_s, wanted)
        if counts.least(nodes).time_s > limit:
            break
        within = min(limit, cap(nodes))
        if counts.least(nodes).time_s > within or not counts.is_own(nodes):
            continue
        verdict = counts.beats(nodes, within)
        if verdict is None:
            left.append(nodes)
        elif verdict:
            counts.at(nodes)
    best = _best_paid(counts, cap)
    limit = _limit(best, rival_s, wanted)
    open_counts = [n for n in left if counts.least_s(n) <= min(limit, cap(n))]
    return best, sorted(open_counts)


def _limit(best: Planned | None, rival_s: float, tolerance: float) -> float:
    """Longest run of interest: below the rival, and below the tolerated best. [s]."""
    own = inf if best is None or best.time_s is None else best.time_s * (1 - tolerance)
    least = min(own, rival_s)
    return least if least == inf else nextafter(least, 0.0)


def _best_paid(counts: Counts, cap: Cap) -> Planned | None:
    """The fastest planned count that the budget pays for."""
    budget = counts.task.question.budget_usd
    paid = [
        p
        for p in counts.seen.values()
        if p.time_s is not None
        and p.time_s <= cap(p.nodes)
        and (p.outlay_usd is None or budget is None or p.outlay_usd <= budget)
    ]
    return min(paid, key=lambda p: (p.time_s, p.nodes), default=None)


def _dearer(counts: Counts, best: Planned, cap: Cap) -> str:
    """Words on the next larger planned count: its cost, where that is over budget."""
    above = [
        p
        for p in counts.seen.values()
        if p.nodes > best.nodes
        and p.outlay_usd is not None
        and p.time_s is not None
        and p.time_s > cap(p.nodes)
    ]
    if not above:
        last = best.nodes == last_own(counts)
        return "; none larger can be had" if last else ""
    after = min(above, key=lambda planned: planned.nodes)
    return f"; {after.nodes:,} would cost {money(after.outlay_usd or 0.0)}"


def _too_dear(counts: Counts, left: Sequence[int], budget_usd: float) -> Choice:
    """Choice where no planned count is paid for; over budget only where proven."""
    if left:
        words = f"{money(budget_usd)} may pay for {open_words(left)}".rstrip(",")
        return Choice(fastest(counts), words, "unknown", tuple(left))
    priced = [p for p in counts.seen.values() if p.cost_usd is not None]
    if not priced:
        nearest = counts.at(last_own(counts))
        if nearest.cost_usd is None:
            return Choice(nearest, nearest.why)
        priced = [nearest]
    nearest = min(priced, key=lambda planned: (planned.cost_usd or 0.0, planned.nodes))
    words = f"{nearest.nodes:,} nodes would cost {money(nearest.cost_usd or 0.0)}"
    return Choice(nearest, f"no count is within it; {words}", "over-budget")


def _comfortable(counts: Counts) -> float:
    """Nodes at which a step gives each GPU enough to do. [1]."""
    workload = counts.task.smallest
    tokens = workload.training.step_tokens
    return tokens / TOKENS_PER_GPU / workload.topology.cluster.node.gpus_per_node
