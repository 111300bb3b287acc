"""Why a plan leaves GPUs idle: what the search found of layouts that use them all."""

from collections.abc import Sequence

import numpy as np

from planner.search.outcome import SearchOutcome
from planner.specs.layout import Layout


def why_idle(
    outcomes: Sequence[SearchOutcome], layout: Layout, *, proven: bool
) -> tuple[str, ...]:
    """What the search says of the GPUs that a plan leaves idle.

    Args:
        outcomes: The searches of all variants.
        layout: The best plan.
        proven: Whether the search proved it the fastest.

    Returns:
        A sentence, none where all GPUs in service are used. [text]
    """
    workload = outcomes[0].table.workload
    there, per_node = workload.gpus, workload.topology.cluster.node.gpus_per_node
    if layout.gpus == there:
        return ()
    idle = (there - layout.gpus) // per_node
    nodes = f"{idle:,} nodes" if idle else f"{there - layout.gpus} GPUs"
    said = f"Uses {layout.gpus:,} of {there:,} GPUs in service, {nodes} idle: "
    return (said + _against(outcomes, layout.gpus, proven=proven) + ".",)


def _against(outcomes: Sequence[SearchOutcome], used: int, *, proven: bool) -> str:
    """How the candidates that use more GPUs compare."""
    gpus = [outcome.space.meshes.gpus[outcome.space.mesh] for outcome in outcomes]
    there = outcomes[0].table.workload.gpus
    whole = sum(int(np.count_nonzero(each == there)) for each in gpus)
    more = sum(int(np.count_nonzero(each > used)) for each in gpus)
    if not more:
        return "no legal layout of the space uses more"
    full = f"{whole:,} of them all" if whole else "none of them all"
    verdict = "none is faster" if proven else "none found is faster"
    return f"{more:,} candidates use more, {full}, and {verdict}"
