"""The kinds of context parallelism that a search tries on given degrees."""

from collections import Counter
from collections.abc import Iterator

from planner.cost.workload import Workload
from planner.specs.context import CP_KINDS, MIXED, inner_degree, mixed_kind

NOWHERE = CP_KINDS.index("all-gather")
"""Kind of a layout without context ranks. [1]"""


def context_kinds(
    workload: Workload, tp: int, cp: int, removed: Counter[str]
) -> list[int]:
    """Kinds that framework, heads and user allow.

    The framework's first alone in the default space; all of them in the full one, or
    where the user names some.

    Args:
        workload: The job. [-]
        tp: Tensor ranks. [1]
        cp: Context ranks. [1]
        removed: Counts what a rule removes, by its name. [1]

    Returns:
        Indices into ``CP_KINDS``; the same single one for one context rank. [1]
    """
    if cp == 1:
        return [NOWHERE]
    limits, search = workload.framework.limits, workload.search
    every = search.space == "full" or search.cp_kind is not None
    kinds = []
    for family in limits.cp_kinds if every else limits.cp_kinds[:1]:
        for kind in _members(family, cp):
            if not search.allows_context(kind):
                removed["limit:cp_kind"] += 1
            elif not _heads_divide(workload, tp, inner_degree(kind, cp)):
                removed["heads % (tp * ulysses)"] += 1
            else:
                kinds.append(CP_KINDS.index(kind))
    return kinds


def _members(family: str, cp: int) -> Iterator[str]:
    """Kinds of a family on so many ranks: the mixed one has one for every divisor."""
    if family != MIXED:
        yield family
        return
    named = (mixed_kind(inner) for inner in range(2, cp) if cp % inner == 0)
    yield from (kind for kind in named if kind in CP_KINDS)


def _heads_divide(workload: Workload, tp: int, inner: int) -> bool:
    """Whether every rank that Ulysses deals to gets whole heads.

    Queries always; keys too, unless the framework copies them for its ranks.
    """
    if inner == 1:
        return True
    copies = workload.framework.limits.ulysses_copies_keys
    for kind in workload.kinds:
        heads, ranks = kind.attention.heads, tp * inner
        keys = getattr(kind.attention, "kv_heads", heads)
        copied = copies and keys and ranks % keys == 0
        if heads % ranks or (keys % ranks and not copied):
            return False
    return True
