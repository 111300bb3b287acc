"""A broken formula or schedule is seen in a price worked out by hand.

These are shared by brute force and search, so that the two would be wrong alike.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hand_worked import WORKED

from planner.cost.pipeline import in_flight, memory_rows
from planner.cost.pipeline import splits as pipeline
from planner.cost.pipeline.memory_rows import ACCUMULATED, SAVED, STATIC, MemoryRows
from planner.schedules import graph, inflight, order

Break = Callable[[Any], Any]
"""From the true function to the broken one."""
CACHED = (
    order.operations,
    inflight.peaks,
    in_flight.peak_vectors,
    in_flight.peak_columns,
    memory_rows.passing_rows,
    memory_rows.idle_rows,
)


@pytest.fixture(autouse=True)
def _no_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Orders, graphs and counts made with a mistake stay in its own test."""
    monkeypatch.setattr(graph, "_CACHE", graph._Cache())
    for function in CACHED:
        function.cache_clear()
    yield
    for function in CACHED:
        function.cache_clear()


def is_caught() -> bool:
    """Whether any price by hand is no longer met, or cannot be computed."""
    try:
        return not all(worked.holds() for worked in WORKED.values())
    except (AssertionError, IndexError, ValueError):
        return True


def test_all_prices_hold_unbroken() -> None:
    assert not is_caught()


def with_result(change: Callable[[Any], Any]) -> Break:
    """Change what a function returns."""
    return lambda true: lambda *args, **named: change(true(*args, **named))


def without(name: str) -> Break:
    """A column of the stages that is forgotten."""
    return with_result(lambda vectors: replace(vectors, **{name: vectors.forward * 0}))


def no_transfers(true: Any) -> Any:
    return lambda its_graph, x, _p2p: true(its_graph, x, 0)


def one_later(true: Any) -> Any:
    """One forward more before the first backward."""

    def warm_up(schedule: str, p: int, v: int, m: int, rank: int) -> int:
        return min(int(true(schedule, p, v, m, rank)) + 1, m * v)

    return warm_up


def one_earlier(true: Any) -> Any:
    return lambda *args: max(int(true(*args)) - 1, 0)


def after_its_release(_: Any) -> Any:
    """Count what is in flight when a backward is over, not when it starts."""

    def held(
        ops: tuple[Any, ...], chunks: int, release: str
    ) -> list[set[tuple[int, ...]]]:
        now, seen = [0] * chunks, [set[tuple[int, ...]]() for _ in range(chunks)]
        for kind, _micro, chunk in ops:
            now[chunk] += (kind == "F") - (kind == release)
            if kind == release:
                seen[chunk].add(tuple(now))
        return seen

    return held


def no_waiting_for_the_norm(_: Any) -> Any:
    """Every optimizer starts when its own gradients are there."""

    def optimize(builder: Any) -> None:
        own = enumerate(builder.scattered)
        ends = [builder._add(n, n, builder.slots.opt(rank)) for rank, n in own]
        builder._join(ends[-1:])

    return optimize


def of_rows(change: Callable[[MemoryRows], MemoryRows]) -> Break:
    """Change every group of memory rows."""
    return with_result(lambda every: tuple(map(change, every)))


def without_term(term: int) -> Break:
    """Rows in which one term never counts."""
    kept = (np.arange(4) != term)[:, None, None]
    return of_rows(lambda rows: replace(rows, weights=rows.weights * kept))


nothing_at_work = of_rows(
    lambda rows: replace(
        rows,
        layers_at_work=0 * rows.layers_at_work,
        ends_at_work=0 * rows.ends_at_work,
    )
)


def constant(value: Any) -> Break:
    return lambda _: lambda *_args, **_named: value


MUTATIONS: dict[str, tuple[Any, str, Break]] = {
    "forward forgotten": (pipeline, "stage_vectors", without("forward")),
    "backward forgotten": (pipeline, "stage_vectors", without("backward")),
    "gather forgotten": (pipeline, "stage_vectors", without("gather")),
    "scatter forgotten": (pipeline, "stage_vectors", without("scatter")),
    "optimizer forgotten": (pipeline, "stage_vectors", without("optimizer")),
    "states forgotten": (memory_rows, "passing_rows", without_term(STATIC)),
    "waiting gradients forgotten": (
        memory_rows,
        "passing_rows",
        without_term(ACCUMULATED),
    ),
    "activations forgotten": (memory_rows, "passing_rows", without_term(SAVED)),
    "transient forgotten": (memory_rows, "passing_rows", nothing_at_work),
    "transients added up": (
        MemoryRows,
        "largest_layer",
        with_result(lambda largest: largest * 2),
    ),
    "one ns more a pass": (
        pipeline,
        "durations",
        with_result(lambda x: [x[0] + 1, *x[1:]]),
    ),
    "transfers free": (pipeline, "makespan", no_transfers),
    "ranks turned round": (
        memory_rows,
        "stages_by_rank",
        with_result(lambda stages: stages[::-1]),
    ),
    "passes at one moment": (
        MemoryRows,
        "blocks",
        with_result(lambda blocks: np.full_like(blocks, blocks.min())),
    ),
    "nothing beside an idle moment": (memory_rows, "idle_rows", nothing_at_work),
    "warm-up too long": (order, "_warm_up", one_later),
    "warm-up too short": (order, "_warm_up", one_earlier),
    "in flight after the release": (
        inflight,
        "_held_at_backwards",
        after_its_release,
    ),
    "one peak kept": (inflight, "_pareto", with_result(lambda kept: kept[-1:])),
    "gradients reduced once": (
        graph.Builder,
        "_reduces",
        constant(value=False),
    ),
    "no norm awaited": (graph.Builder, "_optimize", no_waiting_for_the_norm),
    "no scatter at the end": (
        graph.Builder,
        "_scatter_at_the_end",
        lambda _: (
            lambda builder: builder.scattered.__setitem__(slice(None), builder.free)
        ),
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_formula_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, attribute, breaks = MUTATIONS[name]
    monkeypatch.setattr(place, attribute, breaks(getattr(place, attribute)))
    assert is_caught()
