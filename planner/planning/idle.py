"""Explains idle GPUs of a plan by the layouts that use more GPUs."""

from collections import Counter
from collections.abc import Sequence

from planner.cost.estimate.estimate import idle_words
from planner.search.outcome import SearchOutcome
from planner.specs.layouts.layout import Layout

BETTER = {
    "throughput": "faster",
    "cost": "cheaper",
    "energy": "less energy",
    "memory": "faster within as little memory",
}
"""Comparison of plans by what a search makes best. [text]"""


def why_idle(
    outcomes: Sequence[SearchOutcome], layout: Layout, *, proven: bool
) -> tuple[str, ...]:
    """Explain the GPUs that a plan leaves idle.

    Args:
        outcomes: The searches of all variants.
        layout: The best plan.
        proven: True if the search proved the plan the fastest.

    Returns:
        One sentence; empty where all GPUs in service are used. [text]
    """
    pricing = outcomes[0].pricing
    there = pricing.fleet_gpus
    if layout.gpus == there:
        return ()
    idle = idle_words(pricing, layout)
    said = f"Uses {layout.gpus:,} of {there:,} GPUs in service, {idle}: "
    if len({pool.topology.cluster.gpu.vendor for pool in pricing.pools}) > 1:
        said += "no library of collectives joins GPUs of two makers; "
    return (said + _against(outcomes, layout.gpus, proven=proven) + ".",)


def _against(outcomes: Sequence[SearchOutcome], used: int, *, proven: bool) -> str:
    """Compare a plan with the candidates that use more GPUs, in words."""
    there = outcomes[0].pricing.fleet_gpus
    declared = Counter[int]()
    for outcome in outcomes:
        declared.update(outcome.declared)
    whole = declared[there]
    more = sum(count for gpus, count in declared.items() if gpus > used)
    if not more:
        unseen = any(outcome.unseen for outcome in outcomes)
        known = "that was seen" if unseen else "of the space"
        return f"no legal layout {known} uses more"
    full = f"{whole:,} of them all" if whole else "none of them all"
    better = BETTER[outcomes[0].pricing.aim.name]
    verdict = f"none is {better}" if proven else f"none found is {better}"
    return f"{more:,} candidates use more, {full}, and {verdict}"
