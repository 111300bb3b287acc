"""A broken constraint, bound or formula is seen by the comparison with brute force.

Each is shown by a case of the fast suite, see :mod:`cases`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases import is_caught

from planner.cost.pipeline import corners, linear
from planner.cost.pipeline.linear import Linear, Lines
from planner.cost.pipeline.memory_rows import MemoryRows
from planner.search import variant, waiting
from planner.search.best_first import VariantSearch
from planner.search.bounds import bounds, boxes, deal_bounds, group_bounds, least
from planner.search.bounds import memory_bounds as memory
from planner.search.bounds import rank_load_bounds as loaded
from planner.search.bounds.paths import ShapePaths
from planner.search.corners import tree
from planner.search.corners.lessons import Cut
from planner.search.incumbents import Incumbents
from planner.search.solver import (
    box_program,
    case_bounds,
    constraints,
    dual,
    program,
    solve,
    whole_splits,
)
from planner.search.solver.constraints import Constraints
from planner.specs.table import StageCosts

Patch = pytest.MonkeyPatch
Mutation = Callable[[Patch], None]


def drop(method: str) -> Mutation:
    """Leave one constraint out."""
    return lambda patch: patch.setattr(Constraints, method, lambda _: None)


def shift(places: list[Any], name: str, change: Callable[[Any], Any]) -> Mutation:
    """Change what a function returns, wherever it is used."""

    def mutate(patch: Patch) -> None:
        original = getattr(places[0], name)
        for place in places:
            patch.setattr(place, name, lambda *a, **k: change(original(*a, **k)))

    return mutate


def longer(line: Linear) -> Linear:
    return Linear(line.constant + 1, line.factors)


def longest(line: Linear) -> Linear:
    return Linear(line.constant + line.constant // 16, line.factors * 17 // 16)


def tighter(every: tuple[MemoryRows, ...]) -> tuple[MemoryRows, ...]:
    return tuple(replace(rows, budget=rows.budget - 1) for rows in every)


def no_end_at_work(every: tuple[MemoryRows, ...]) -> tuple[MemoryRows, ...]:
    return tuple(replace(rows, ends_at_work=0 * rows.ends_at_work) for rows in every)


def all_longer(lines: Lines) -> Lines:
    return Lines(lines.constants + 1, lines.factors)


INNER = {
    "no memory": drop("_every_rank_fits"),
    "no idle memory": drop("_every_rank_fits_when_idle"),
    "idle memory too strict": shift([constraints], "idle_rows", tighter),
    "no order": drop("_layers_stay_in_order"),
    "no total": drop("_every_layer_on_one_stage"),
    "layers not counted": drop("_layers_counted_by_kind"),
    "cuts too long": shift([solve], "path_linear", longer),
    "family too long": shift([bounds], "path_lines", all_longer),
    "paths of the program too long": shift([dual], "path_lines", all_longer),
    "cuts miss the transfers": shift([linear], "_end_value", lambda n: n * 0),
    "memory too strict": shift([constraints], "passing_rows", tighter),
    "end transient left out": shift([constraints], "passing_rows", no_end_at_work),
    "least value too high": shift(
        [least, bounds, loaded, program], "least_values", lambda value: value + 1
    ),
    "loaded bound too high": shift([bounds], "loaded_bound", lambda value: value + 1),
    "ranks hold one layer less": shift(
        [memory, least, loaded, boxes], "most_layers", lambda n: n - 1
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", INNER)
def test_a_broken_inner_search_is_caught(name: str, monkeypatch: Patch) -> None:
    INNER[name](monkeypatch)
    assert is_caught(name)


def fewer(limits: boxes.Box, name: str) -> boxes.Box:
    """A box with one less in one of its limits."""
    return limits._replace(**{name: getattr(limits, name) - 1})


def kept_within_memory(patch: Patch) -> None:
    """Boxes are shared as far as the memory of the candidate goes that cut them."""
    keep = ShapePaths.keep_cases

    def kept(paths: ShapePaths, costs: StageCosts, leaves: Any) -> None:
        keep(paths, costs, [(box.fitting(costs), mean) for box, mean in leaves])

    patch.setattr(ShapePaths, "keep_cases", kept)


BOXES: dict[str, Mutation] = {
    "boxes cut to the memory of the first": kept_within_memory,
    "other kinds too dear in boxes": shift(
        [boxes], "_others", lambda value: value + abs(value) // 4
    ),
    "a load too many trimmed": shift(
        [case_bounds], "trimmed", lambda found: (fewer(found[0], "high"), found[1])
    ),
    "an end too many shaved": shift(
        [box_program], "_without_ends", lambda box: fewer(box, "most")
    ),
    "values in boxes too high": shift(
        [boxes, box_program, loaded, program],
        "least_in_boxes",
        lambda value: value + value // 16 + 1,
    ),
    "paths in boxes too long": shift(
        [case_bounds], "least_in_boxes", lambda value: value + value // 16 + 1
    ),
    "whole splits near by that do not fit": shift(
        [whole_splits], "fits", lambda _: True
    ),
    "whole splits ruled out too soon": shift([whole_splits], "path_lines", all_longer),
    "means of a shape too long": shift(
        [case_bounds], "proof_of", lambda found: found and (longest(found[0]), found[1])
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOXES)
def test_a_broken_box_is_caught(name: str, monkeypatch: Patch) -> None:
    BOXES[name](monkeypatch)
    assert is_caught(name)


def no_more(parts: Cut) -> Cut:
    """Parts of a box that have their one layer more and no others."""
    return parts._replace(most=parts.fewest)


CORNERS: dict[str, Mutation] = {
    "corners too slow": shift([tree.CornerTree], "_steps", lambda steps: steps + 1),
    "parts of a box without their other layers": shift([tree], "_parts", no_more),
    "corners that hold too much of another kind": shift([corners], "terms_of", abs),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CORNERS)
def test_a_broken_corner_is_caught(name: str, monkeypatch: Patch) -> None:
    CORNERS[name](monkeypatch)
    assert is_caught(name)


def early_verdict(c: Any, at: Any, *unit: Any) -> Any:
    """Rule out whatever is not full on its first rank."""
    return bounds.most_on_rank(c, at, 0, *unit[1:]) == c.v[at] * c.most[at]


FIRST_TIER: dict[str, Mutation] = {
    "time too long": shift([bounds], "_time_bound", lambda ns: ns * 1.02 + 1),
    "dealt bound too high": shift([deal_bounds], "_dealt", lambda ns: ns * 1.02 + 1),
    "rank holds one layer less": shift([bounds], "most_on_rank", lambda n: n - 1),
    "a verdict reached too early": lambda patch: patch.setattr(
        bounds, "_holds", early_verdict
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FIRST_TIER)
def test_a_broken_first_tier_is_caught(name: str, monkeypatch: Patch) -> None:
    FIRST_TIER[name](monkeypatch)
    assert is_caught(name)


def no_stragglers(patch: Patch) -> None:
    """Forget the slowdown of the replicas in what is refined."""
    patch.setattr(variant.BestFirst, "_slowdown", lambda *_: 1.0)


def last_variant_left_out(patch: Patch) -> None:
    """Search all variants but the last, as if its bound were infinite."""
    known = VariantSearch._first

    def first(together: VariantSearch) -> variant.BestFirst:
        last = together.searches[-1].waiting
        last.order, last.heap = last.order[:0], []
        return known(together)

    patch.setattr(VariantSearch, "_first", first)


def worst_variant_first(patch: Patch) -> None:
    """Take the largest bound for the least."""

    def first(together: VariantSearch) -> variant.BestFirst:
        return max(together.searches, key=variant.BestFirst.next_bound)

    patch.setattr(VariantSearch, "_first", first)


JOBS: dict[str, Mutation] = {
    "bounds of groups too high": shift(
        [group_bounds.Group], "_steps", lambda steps: steps + steps // 16
    ),
    "candidates of all shapes in one group": shift(
        [waiting.Waiting],
        "_alike",
        lambda groups: [np.concatenate(groups)] if groups else groups,
    ),
    "candidates given up early": shift(
        [Incumbents], "threshold", lambda step: 0.9 * step
    ),
    "no stragglers": no_stragglers,
    "the last variant left out": last_variant_left_out,
    "the worst variant first": worst_variant_first,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_a_broken_outer_search_is_caught(name: str, monkeypatch: Patch) -> None:
    JOBS[name](monkeypatch)
    assert is_caught(name)
