"""The rows of memory that are kept say what all of them say."""

from dataclasses import replace

import numpy as np
from every_split import splits
from hypothesis import given
from strategies import inner_problems, small_problem

from planner.cost.pipeline.memory_rows import passing_rows
from planner.cost.pipeline.splits import stages_of
from planner.search.bounds.memory_bounds import most_layers
from planner.search.bounds.memory_rows import memory_lines
from planner.specs.table import StageCosts


def every_row(costs: StageCosts) -> list[tuple[int, np.ndarray]]:
    """Constant and factors of every peak, one by one."""
    (rows,) = passing_rows(costs)
    return [
        (row.line.constant + row.end_at_work - costs.budget, row.line.factors)
        for row in rows.each()
    ]


@given(inner_problems())
def test_a_split_keeps_to_all_rows_where_it_keeps_to_those_kept(
    costs: StageCosts,
) -> None:
    """Within the ranks' caps, which are rows of the program themselves."""
    rows, kept, caps = every_row(costs), memory_lines(costs), most_layers(costs)
    for split in list(splits(costs))[:60]:
        layers = split.sum(axis=(1, 2))
        loads = [layers[list(stages_of(costs, rank))].sum() for rank in range(costs.pp)]
        keeps_all = all(its + (each * split).sum() <= 0 for its, each in rows)
        keeps_kept = all(line.value(split) <= 0 for line in kept)
        assert keeps_kept or not keeps_all
        if keeps_kept and (np.array(loads) <= caps).all():
            assert keeps_all


def test_loose_memory_needs_no_row_and_memory_by_chunk_some() -> None:
    """Two chunks a rank hold unlike numbers of micro-batches: a cap says too little."""
    shape = {"schedule": "interleaved", "pp": 2, "vpp": 2, "micro_batches": 4}
    loose = small_problem(**shape, runs=((0, 8),), extra_layers=1, budget=1 << 40)
    assert memory_lines(loose) == []
    tight = [replace(loose, budget=budget) for budget in range(20, 400, 3)]
    assert max(len(memory_lines(costs)) for costs in tight) >= 1
