"""Node counts that a job can use, and the first count that is good enough."""

from collections.abc import Callable, Sequence
from math import exp, log

from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.planning.comparison.candidates.task import sized
from planner.search.space.space import fills

BITS = 5
"""Binary digits of a sensible count. [1]"""
OCTAVE = 8
"""Sensible counts between one and twice as many, at most. [1]"""
GUESSES = 5
"""Counts that may be guessed before the interval is halved instead. [1]"""
FAR = 50.0
"""Natural logarithm of a ratio of counts that is beyond any. [1]"""
STEEPEST, FLATTEST = 4.0, 0.02
"""Limits on how a value may grow with the count, as an exponent. [1]"""


def sensible_counts(
    unit: int, most: int, *, gpus_per_node: int, odd: int
) -> tuple[int, ...]:
    """Node counts that are worth a plan search.

    Whole units: a power of two of them, or GPUs whose odd part divides the odd part
    of the batch. Then replicas take up the odd part, and a pipeline of a power of two
    stages still interleaves. Other counts are slower than the next smaller count, or
    close to it: a factor of 3 or 7 in the pipeline forbids interleaving.

    Returns:
        Counts of at most five binary digits before their zeros, ascending; none where
        one unit is too many. [1]
    """
    return tuple(
        unit * count
        for count in _rounded(most // unit)
        if odd_part(count) == 1 or odd % odd_part(count * unit * gpus_per_node) == 0
    )


def domain_nodes(workload: Workload) -> int:
    """Nodes of one scale-up domain."""
    node = workload.topology.cluster.node
    return max(node.scale_up_domain // node.gpus_per_node, 1)


def counts_up_to(workload: Workload, most: int) -> tuple[int, ...]:
    """Sensible counts for a job."""
    return sensible_counts(
        domain_nodes(workload),
        most,
        gpus_per_node=workload.topology.cluster.node.gpus_per_node,
        odd=odd_part(workload.sequences),
    )


def is_filled(workloads: Sequence[Pricing], nodes: int) -> bool:
    """Tell if some layout uses all nodes of a count.

    On any other count nodes stay idle, and the count without them is searched. Nodes
    of one scale-up domain come whole, and a layout may leave some of them idle: then
    every count is filled. So it is where a node may be used in part.

    Returns:
        False where another count stands for it. [-]
    """
    if domain_nodes(workloads[0]) > 1 or workloads[0].topology.cluster.spec.partial:
        return True
    own = {(w.framework.name, repr(w.training)): w for w in reversed(workloads)}
    return any(fills(sized(workload, nodes)) for workload in own.values())


def odd_part(number: int) -> int:
    """A number without its factors of two."""
    return number // (number & -number)


def _rounded(most: int) -> list[int]:
    """Numbers up to *most* of at most `BITS` binary digits before their zeros."""
    tall = 1 << (BITS - 1)
    shifts = range(max(most.bit_length() - BITS + 1, 0))
    long = (digit << shift for shift in shifts for digit in range(tall, 2 * tall))
    return [count for count in (*range(1, tall), *long) if count <= most]


def first_reaching(
    counts: Sequence[int], value: Callable[[int], float], *, guess: float
) -> int:
    """Index of the first count whose value is at least 1.

    The value is below 1 at the bracket's lower end, and at least 1 at its upper end.
    The bracket closes when the ends are neighbours, so the answer is exact where the
    value grows with the count. The next count is where a power law through the last
    two values says 1. After a few such guesses the bracket is halved.

    Args:
        counts: Ascending. [1]
        value: Value of a count; 0 where the count cannot do at all. Called as seldom
            as possible, and never twice for one count.
        guess: Count to begin with. [1]

    Returns:
        The index; the number of counts where none reaches 1. [1]

    Leaves out a value that falls as the count grows. Then an earlier count may reach 1
    as well; the count just before the answer does not.
    """
    low, high = -1, len(counts)
    seen: list[tuple[int, float]] = []
    at = _index(counts, guess)
    while high - low > 1:
        at = min(max(at, low + 1), high - 1)
        seen.append((counts[at], value(counts[at])))
        if seen[-1][1] >= 1:
            high = at
        else:
            low = at
        at = _next(counts, seen, low, high)
    return high


def _index(counts: Sequence[int], wanted: float) -> int:
    """The first count that is at least as wanted, or the last."""
    return next((at for at, n in enumerate(counts) if n >= wanted), len(counts) - 1)


def _next(
    counts: Sequence[int], seen: Sequence[tuple[int, float]], low: int, high: int
) -> int:
    """Index of the next count to look at, by the values seen so far."""
    count, value = seen[-1]
    middle = (low + high) // 2
    if len(seen) > GUESSES:
        return middle
    if value <= 0:
        return min(low + OCTAVE, max(middle, low + 1))
    exponent = min(max(_exponent(seen), FLATTEST), STEEPEST)
    # Farther than any count is far enough, and no overflow.
    return _index(counts, count * exp(min(-log(value) / exponent, FAR)))


def _exponent(seen: Sequence[tuple[int, float]]) -> float:
    """Exponent of the value's growth over the last two counts; 1 with fewer."""
    usable = [(count, value) for count, value in seen if value > 0]
    if len(usable) < 2:
        return 1.0
    (n, v), (m, w) = usable[-2:]
    return log(w / v) / log(m / n)
