"""CP-SAT as proofs use it is right where OR-Tools 9.15 by itself is not."""

import json
from pathlib import Path

from ortools.sat.python import cp_model as cp

from planner.search.solver.engine import engine

FILE = Path(__file__).resolve().parents[3] / "golden" / "solver_rows.json"
"""Rows of a search for whole splits: a split that keeps to all, factors by chunk and
rank, and what the split leaves of each row."""


def test_a_model_with_a_known_split_is_not_called_infeasible() -> None:
    rows = json.loads(FILE.read_text())
    split, model = rows["split"], cp.CpModel()
    chunks, ranks = range(len(split)), range(len(split[0]))
    layers = [
        [model.new_int_var(min(split[c][r], 1), 2, "") for r in ranks] for c in chunks
    ]
    for rank in ranks:
        held = cp.LinearExpr.sum([layers[chunk][rank] for chunk in chunks])
        model.add(held == sum(split[chunk][rank] for chunk in chunks))
    for row, spare in zip(rows["rows"], rows["spare"], strict=True):
        parts = [factor * (layers[c][r] - split[c][r]) for c, r, factor in row]
        model.add(cp.LinearExpr.sum(parts) <= spare)
    assert engine(8.0).solve(model) in (cp.OPTIMAL, cp.FEASIBLE)
