"""Evaluation, bound, constraint and breakdown read one set of memory rows."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from every_split import splits
from hypothesis import given
from memory_by_hand import blocks_at, idle_of, peak_of, peaks_of
from ortools.sat.python import cp_model as cp
from strategies import inner_problems, shapes, small_problem

from planner.cost.pipeline.in_flight import least_in_flight, peak_columns
from planner.cost.pipeline.memory_rows import (
    MemoryRow,
    fits,
    idle_rows,
    memory_rows,
    passing_rows,
    rank_blocks,
    which_fit,
)
from planner.cost.pipeline.splits import Counts, stages_by_rank
from planner.schedules import SPLIT, V_SHAPED
from planner.search.bounds.memory_bounds import most_layers
from planner.search.solver.constraints import Constraints
from planner.search.solver.variables import Variables
from planner.specs.table import StageCosts

ROOT = Path(__file__).resolve().parents[3]
READERS = {
    "planner/cost/pipeline/in_flight.py": {"Peak", "peaks"},
    "planner/cost/pipeline/memory_rows.py": {"peak_columns"},
    "planner/search/bounds/columns.py": {"least_in_flight"},
}
"""Modules that read how many micro-batches are in flight, and what they read.

The first tier of bounds has closed forms of many schedules, none of them unrolled.
"""
SOURCES = ("planner.schedules.inflight", "planner.cost.pipeline.in_flight")
FACADE = "planner/schedules/__init__.py"


def some(costs: StageCosts) -> list[Counts]:
    return list(splits(costs))[:10]


def value(row: MemoryRow, counts: Counts) -> int:
    """Memory of a row as the constraints add it up. [block]."""
    present = counts[row.working] > 0
    layers = np.where(present, row.layers_at_work, 0)
    return row.line.value(counts) + max(row.end_at_work, int(layers.max()))


@given(inner_problems())
def test_the_rows_of_the_passes_are_the_moments_one_by_one(costs: StageCosts) -> None:
    (rows,), moments = passing_rows(costs), list(peaks_of(costs))
    assert rows.rank.tolist() == [rank for rank, _ in moments]
    for split in some(costs):
        by_hand = [blocks_at(costs, split, at) for at in moments]
        assert rows.blocks(split).tolist() == by_hand
        assert (
            rows.by_term(split).sum(axis=0).tolist()
            == (rows.blocks(split) - rows.at_work(split)).tolist()
        )


@given(inner_problems())
def test_the_peak_of_a_rank_is_that_of_all_moments(costs: StageCosts) -> None:
    """Also of the idle moments that have no row, since they decide nothing."""
    for split in some(costs):
        by_hand = [peak_of(costs, split, rank) for rank in range(costs.pp)]
        assert rank_blocks(costs, split).tolist() == by_hand


@given(inner_problems())
def test_splits_are_judged_together_as_one_by_one(costs: StageCosts) -> None:
    listed = np.array(list(splits(costs))[:40])
    judged = [fits(costs, split) for split in listed]
    assert which_fit(costs, listed).tolist() == judged


@given(inner_problems())
def test_an_idle_row_is_the_moment(costs: StageCosts) -> None:
    moments = list(idle_of(costs))
    for split in some(costs)[:3]:
        known = {(rank, blocks_at(costs, split, (rank, m))) for rank, m in moments}
        for rows in idle_rows(costs):
            pairs = zip(rows.rank.tolist(), rows.blocks(split).tolist(), strict=True)
            assert set(pairs) <= known


@given(inner_problems())
def test_a_row_of_the_constraints_has_the_value_of_the_evaluation(
    costs: StageCosts,
) -> None:
    for rows in memory_rows(costs):
        for split in some(costs)[:3]:
            each = [value(row, split) for row in rows.each()]
            assert each == rows.blocks(split).tolist()


def admitted(costs: StageCosts, split: Counts) -> bool:
    """Tell if the memory constraints admit a split."""
    model = cp.CpModel()
    variables = Variables(model, costs, 1)
    constraints = Constraints(model, costs, variables)
    constraints._every_rank_fits()
    constraints._every_rank_fits_when_idle()
    for key, count in variables.y.items():
        model.add(count == int(split[key]))
    return cp.CpSolver().solve(model) in (cp.OPTIMAL, cp.FEASIBLE)


@given(inner_problems())
def test_evaluation_constraint_and_bound_agree_on_what_fits(costs: StageCosts) -> None:
    most = most_layers(costs)
    for split in some(costs)[:4]:
        fitting = fits(costs, split)
        assert admitted(costs, split) == fitting
        layers = split.sum(axis=(1, 2))[stages_by_rank(costs)].sum(axis=1)
        if fitting:
            assert (layers <= most).all()


@given(inner_problems())
def test_problems_that_differ_in_times_alone_share_a_memory_bound(
    costs: StageCosts,
) -> None:
    slower = replace(costs, p2p=costs.p2p + 1, slowdown=costs.slowdown + 1)
    smaller = replace(costs, budget=costs.budget - 1)
    assert slower.timeless == costs.timeless != smaller.timeless
    assert most_layers(slower) is most_layers(costs)
    for split in some(costs)[:4]:
        held = rank_blocks(costs.timeless, split)
        assert held.tolist() == rank_blocks(costs, split).tolist()


@given(shapes())
def test_the_closed_forms_are_in_flight_at_some_backward(
    shape: tuple[str, int, int, int],
) -> None:
    """Of each chunk count no more than the limit: that many are there, at least."""
    schedule, p, v, m = shape
    at = peak_columns(*shape)
    for rank in range(p):
        chunks, of_one = least_in_flight(
            rank,
            *(np.array([n]) for n in (p, v, m)),
            split=np.array([schedule in SPLIT]),
            copies=np.array([1 + (schedule == "dualpipe")]),
            folded=np.array([schedule in V_SHAPED]),
        )
        held = at.in_flight[at.rank == rank]
        assert np.minimum(held, of_one).sum(axis=1).max() >= chunks[0]
        if schedule in ("1f1b", "interleaved", "zb-h1"):
            assert held.sum(axis=1).max() == chunks[0]


def read_by(path: Path) -> set[str]:
    """Names that a module imports from those that count micro-batches in flight."""
    text = path.read_text()
    if not any(word in text for word in ("inflight", "in_flight", "peaks")):
        return set()
    nodes = ast.walk(ast.parse(text))
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    whole = {source.rpartition(".")[2] for source in SOURCES}
    return {
        alias.name
        for node in froms
        for alias in node.names
        if node.module in SOURCES
        or (node.module == "planner.schedules" and alias.name in {"peaks", "in_flight"})
        or (f"{node.module}.{alias.name}" in SOURCES and alias.name in whole)
    }


def test_only_the_rows_read_the_micro_batches_in_flight() -> None:
    """Another sum of a peak would need them, too; verify replays the operations."""
    paths = sorted(ROOT.glob("planner/**/*.py"))
    names = {str(path.relative_to(ROOT)): read_by(path) for path in paths}
    readers = {path: found for path, found in names.items() if found}
    readers.pop(FACADE)
    assert readers == READERS


def test_a_pool_has_rows_of_no_other_rank() -> None:
    host = small_problem()
    costs = small_problem(hosts=(host, host), pool_of_rank=(1, 0))
    first, second = passing_rows(costs)
    assert (first.rank.tolist(), second.rank.tolist()) == ([1], [0])


@pytest.mark.parametrize("name", ["cost/pipeline/memory_rows.py"])
def test_a_source_that_reads_them_is_seen(name: str) -> None:
    assert read_by(ROOT / "planner" / name) == READERS[f"planner/{name}"]
