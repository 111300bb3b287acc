"""Moments beside the backwards: what verify adds up is what the table has."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from each import each

from planner.cost.memory.memory_moments import (
    BACKWARD_END,
    RESUME,
    SAVE,
    STEADY,
    STEP,
    Moment,
    moments_of,
)
from planner.cost.meshes import Meshes
from planner.cost.pipeline.memory_rows import idle_moment_rows, rank_blocks
from planner.cost.pipeline.splits import Counts
from planner.cost.table.table import fill_table
from planner.specs.layouts.layout import Layout, RecomputeRange, Stage
from planner.specs.table import StageCosts
from planner.verify.memory import peak_blocks
from planner.verify.moments import idle_moments
from planner.verify.prices import Prices

ALONE: dict[str, Any] = {"tp": 1, "pp": 1, "dp": 1, "dp_shard": 1, "zero_stage": 0}
PIPED: dict[str, Any] = {"tp": 2, "pp": 2, "dp": 2, "dp_shard": 2, "grad_accum": 4}
HABITS: dict[str, dict[str, Any]] = {
    "as they are": {},
    "lists of tensors": {"optimizer_kernel": "foreach", "step_gradient_bytes": 4.0},
    "one tensor at a time": {"optimizer_kernel": "for-loop", "checkpoint": "units"},
    "whole checkpoints": {"checkpoint": "model", "resume_copies": 2.0},
}
METHODS: list[dict[str, Any]] = [
    {},
    {"optimizer": "muon"},
    {"optimizer": "galore-adamw"},
    {"optimizer": "adafactor"},
    {"method": "qlora"},
    {"optimizer_in_backward": True},
]


def changed(workload: Any, habits: dict[str, Any], training: dict[str, Any]) -> Any:
    recipe = replace(workload.framework.recipe, **habits)
    return replace(
        workload,
        search=workload.search.model_copy(update={"memory_moments": "all"}),
        framework=replace(workload.framework, recipe=recipe),
        training=workload.training.model_copy(update=training),
    )


def split(layout: dict[str, Any], layers: int, recompute: str) -> Layout:
    """All stages equal but the last; the first layer of each recomputes."""
    stages = []
    for count in np.diff(np.linspace(0, layers, layout["pp"] + 1).round()).astype(int):
        rest = RecomputeRange(start=1, stop=int(count), kind="none")
        first = RecomputeRange(start=0, stop=1, kind=recompute)
        stages.append(Stage(layers=int(count), recompute=(first, rest)))
    return Layout(**layout, stages=tuple(stages))


def priced(workload: Any, layout: Layout) -> tuple[StageCosts, Counts]:
    """The table's problem, and the layout's layers in it."""
    menu = ("none", "full")
    table = fill_table(workload, Meshes.of_layout(layout), menu)
    costs = table.stage_costs(0, schedule=layout.schedule, vpp=1, menu=(0, 1))
    counts = np.zeros((layout.pp, len(workload.kinds), 2), dtype=np.int64)
    order = iter([k for k, n in workload.runs for _ in range(n)])
    for at, stage in enumerate(layout.stages):
        for part in stage.recompute:
            for _ in range(part.start, part.stop):
                counts[at, next(order), menu.index(part.kind)] += 1
    return costs, counts


def by_name(costs: StageCosts, counts: Counts) -> dict[str, list[int]]:
    """The table's idle moments of every rank, states included. [block]."""
    everywhere = np.ones(costs.pp, dtype=bool)
    found: dict[str, Counts] = {}
    for moment in costs.idle:
        above = idle_moment_rows(costs, moment, everywhere).blocks(counts)
        found[moment.name] = np.maximum(found.get(moment.name, above), above)
    return {name: values.tolist() for name, values in found.items()}


@each("training", METHODS)
@each("habits", HABITS)
@pytest.mark.parametrize(
    ("zeros", "model", "framework"),
    [
        ((None, 1, 3), "dense", "megatron"),
        *(
            pytest.param((None, 0, 1, 2, 3), *pair, marks=pytest.mark.slow)
            for pair in product(("dense", "deepseek"), ("megatron", "torchtitan"))
        ),
    ],
)
def test_verify_adds_up_what_the_table_has(
    model: str,
    zeros: tuple[int | None, ...],
    framework: str,
    habits: str,
    training: dict[str, Any],
    workload_of: Callable[..., Any],
) -> None:
    """Every moment of every rank, to the block, on one GPU and at ZeRO stages."""
    workload = changed(workload_of(framework, model), HABITS[habits], training)
    for zero in zeros:
        fields = ALONE if zero is None else PIPED | {"zero_stage": zero}
        assert_alike(workload, fields)


def assert_alike(workload: Any, fields: dict[str, Any]) -> None:
    """Verify's moments are the table's; never more of those that hide each other."""
    layout = split(fields, workload.model.layers, "full")
    costs, counts = priced(workload, layout)
    prices = Prices.of(workload, layout)
    found = [
        idle_moments(prices, prices.stages[rank :: layout.pp])
        for rank in range(layout.pp)
    ]
    for name, claimed in by_name(costs, counts).items():
        again = [at.get(name, 0) for at in found]
        if name == "backward" or (name == STEADY and not any(costs_late(costs))):
            assert all(a <= c for a, c in zip(again, claimed, strict=True))
        else:
            assert again == claimed, name


def costs_late(costs: StageCosts) -> list[bool]:
    """Whether the moments of a single backward hold anything."""
    return [m.on_layers for m in costs.idle if m.name == STEADY]


DECIDES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    BACKWARD_END: ("torchtitan", ALONE, {}),
    STEP: ("torchtitan", ALONE, {"optimizer_kernel": "foreach"}),
    SAVE: (
        "megatron",
        PIPED | {"zero_stage": 3, "grad_accum": 1},
        {"checkpoint": "model", "resume_copies": 0.0},
    ),
    RESUME: ("megatron", ALONE, {"resume_copies": 3.0}),
}
"""Jobs in which one moment is the fullest: framework, mesh, habits."""


@pytest.mark.parametrize("name", DECIDES)
def test_a_dropped_moment_is_objected_to(
    name: str,
    workload_of: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The table loses one moment; verify still needs its memory."""
    framework, fields, habits = DECIDES[name]
    workload = changed(
        workload_of(framework, "dense", seq_len=512, layers=40), habits, {}
    )
    layout = split(fields, workload.model.layers, "full")
    whole = peak(workload, layout)

    def without(*given: Any) -> tuple[Moment, ...]:
        return tuple(m for m in moments_of(*given) if m.name != name)

    monkeypatch.setattr("planner.cost.table.table.moments_of", without)
    assert peak(workload, layout) < whole == verified(workload, layout)


def peak(workload: Any, layout: Layout) -> int:
    """Fullest moment of the fullest rank, by the table. [block]."""
    return int(rank_blocks(*priced(workload, layout)).max())


def verified(workload: Any, layout: Layout) -> int:
    """The same by verify. [block]."""
    return max(peak_blocks(Prices.of(workload, layout)))
