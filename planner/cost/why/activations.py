"""Terms of the activations of a rank: micro-batches in flight of every unit."""

from collections.abc import Iterator

import numpy as np

from planner.cost.estimate.pricing import Priced
from planner.cost.pipeline.memory_rows import PENDING, SAVED, MemoryRows, passing_rows
from planner.cost.why.terms import Term
from planner.specs.table import BLOCK, StageCosts

GIB = 2**30
FORMULA = "in_flight * bytes * memory_factor / 2**30"
"""Formula of the activations of one unit. [text]"""
KEPT = {SAVED: "kept for the backward", PENDING: "waits for weight gradients"}
"""Term of a row to its words. [text]"""


def activation_terms(priced: Priced, rank: int, gib: float) -> list[Term]:
    """Activations of a rank by unit, at the start of the backward that holds them.

    Args:
        priced: The layout.
        rank: Pipeline rank. [1]
        gib: Activations of the rank. [GiB]

    Returns:
        Terms that add up; none where the fullest moment is no backward's start. [GiB]
    """
    pool = priced.costs.pool(rank)
    costs = priced.costs.hosts[pool] if priced.costs.hosts else priced.costs
    factor = priced.table.each[pool].pricing.profile.memory_factor
    (rows,) = passing_rows(costs)
    terms = rows.by_term(priced.counts)
    resident = (terms[SAVED] + terms[PENDING]) * BLOCK * factor / GIB
    rows_here = np.flatnonzero(
        (rows.rank == rank) & np.isclose(resident, gib, rtol=1e-12)
    )
    if not len(rows_here) or not gib:
        return []
    return list(_units(rows, costs, priced, int(rows_here[0]), factor))


def _units(
    rows: MemoryRows, costs: StageCosts, priced: Priced, row: int, factor: float
) -> Iterator[Term]:
    """Terms of the layers and ends of one row. [GiB]."""
    rank = int(rows.rank[row])
    for chunk, stage in enumerate(rows.stages[rank].tolist()):
        units = {
            f"{priced.counts[stage, kind, entry]} {priced.pricing.kinds[kind].name} "
            f"layers, recompute {costs.menu[entry]}": (
                int(priced.counts[stage, kind, entry]),
                rows.layers[kind, entry],
            )
            for kind, entry in np.argwhere(priced.counts[stage] > 0).tolist()
        }
        ends = {"embedding": 0, "head": costs.stages - 1}
        for which, (name, at) in enumerate(ends.items()):
            units |= {name: (1, rows.ends[which])} if stage == at else {}
        for name, (count, kept) in units.items():
            for term, words in KEPT.items():
                numbers = {
                    "in_flight": float(rows.weights[term, row, chunk]),
                    "bytes": float(kept[term] * BLOCK),
                    "memory_factor": factor,
                }
                value = numbers["in_flight"] * numbers["bytes"] * factor / GIB
                yield Term(
                    name=f"stage{stage}.{name}",
                    title=f"stage {stage}, {name}: {words}",
                    value=value,
                    unit="GiB",
                    formula=FORMULA,
                    numbers=numbers,
                ).times(count)
