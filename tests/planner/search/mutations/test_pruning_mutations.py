"""Each rule that gives candidates up, broken once: brute force sees it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases import is_caught

from planner.cost.pipeline.linear import Linear
from planner.cost.pipeline.memory_rows import MemoryRows
from planner.cost.reach import Reach
from planner.schedules.simulator import Path
from planner.search import first_tier, variant
from planner.search.best_first import VariantSearch
from planner.search.bounds import least, paths
from planner.search.bounds import memory_bounds as memory
from planner.search.incumbents import Found
from planner.search.solver import local, program, solve, variables
from planner.search.solver.dual import LayerProgram
from planner.search.solver.solve import MeshSolver
from planner.search.variant import BestFirst

Patch = pytest.MonkeyPatch
Break = Callable[[Any], Any]
"""From the true function to the broken one."""


def with_result(change: Callable[[Any], Any]) -> Break:
    """Change what a function returns."""
    return lambda true: lambda *args, **named: change(true(*args, **named))


def constant(value: Any) -> Break:
    return lambda _: lambda *_args, **_named: value


def out_of_reach(reach: Reach) -> Reach:
    """The last stage that a kind can reach is taken from it, if it has two."""
    mask = reach.mask.copy()
    for kind in range(mask.shape[1]):
        at = np.flatnonzero(mask[:, kind])
        mask[at[-1:], kind] = len(at) < 2
    return replace(reach, mask=mask, places=reach.places * mask)


def fuller(reach: Reach) -> Reach:
    return replace(reach, low=reach.low + (reach.low > 0))


def twice_drained(path: Path) -> Path:
    """The path counts the backward of the first stage once more."""
    counts = path.counts.copy()
    counts[np.flatnonzero(counts)[0]] += 1
    return replace(path, counts=counts)


def tighter_rows(lines: list[Linear]) -> list[Linear]:
    """Each layer needs an eighth more than it does."""
    return [Linear(x.constant, x.factors + -(-x.factors // 8)) for x in lines]


def less_room(rows: MemoryRows) -> MemoryRows:
    """A block less for what the row holds."""
    return replace(rows, budget=rows.budget - 1)


def less_in_each(every: tuple[MemoryRows, ...]) -> tuple[MemoryRows, ...]:
    return tuple(map(less_room, every))


def cut_one_short(true: Any) -> Any:
    return lambda self, at: true(self, at if at is None else at - 1)


INNER: dict[str, tuple[list[Any], str, Break]] = {
    "a kind out of reach": (
        [least, memory, program, variables],
        "reach_of",
        with_result(out_of_reach),
    ),
    "stages fuller than they need be": ([least], "reach_of", with_result(fuller)),
    "a path that is none": ([paths], "work_path", with_result(twice_drained)),
    "ranks hold less": ([memory], "_loads", with_result(lambda n: n - 1)),
    "idle ranks hold less": ([memory], "idle_rows", with_result(less_in_each)),
    "passing ranks hold less": ([memory], "passing_rows", with_result(less_in_each)),
    "transients of both ends": (
        [memory],
        "_least_at_work",
        with_result(lambda n: n + 1),
    ),
    "Lagrangian rounded up": (
        [LayerProgram],
        "exact_bound",
        with_result(lambda bound: bound + 1),
    ),
    "memory rows too short": ([program], "memory_lines", with_result(tighter_rows)),
    "horizon too near": (
        [solve],
        "worst_step",
        with_result(lambda step: step // 8),
    ),
    "cut off at equals": ([MeshSolver], "_cut_off", cut_one_short),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", INNER)
def test_a_broken_bound_of_one_mesh_is_caught(name: str, monkeypatch: Patch) -> None:
    places, attribute, breaks = INNER[name]
    for place in places:
        monkeypatch.setattr(place, attribute, breaks(getattr(place, attribute)))
    assert is_caught(name)


def more_memory_first(_: Any) -> Any:
    """The tie-break turned: of equal steps the larger plan is preferred."""

    def key(found: Found) -> tuple[Any, ...]:
        return found.step_s, -found.device_bytes, found.fields, found.variant

    return lambda one, other: key(one) < key(other)


def last_fields_first(_: Any) -> Any:
    def key(found: Found) -> tuple[Any, ...]:
        return found.step_s, found.device_bytes, [-n for n in found.fields]

    return lambda one, other: key(one) < key(other)


def without_ties(_: Any) -> Any:
    """Bounds that equal the incumbent are given up."""

    def matters(self: Any, candidate: int, bound: float, rule: str) -> bool:
        if bound < self.incumbents.threshold(self._key(candidate)):
            return True
        self.counted[rule] += 1
        return False

    return matters


def drops_the_next(true: Any) -> Any:
    """Where a candidate is settled, the one after it is taken for settled, too."""

    def visit(self: Any, *, cheaply: bool = False) -> int:
        work: int = true(self, cheaply=cheaply)
        del self.waiting.heap[:1]
        return work

    return visit


def all_fit(_: Break) -> Break:
    """Admits every split of several."""
    return lambda _, splits: np.ones(len(splits), dtype=bool)


OUTER: dict[str, tuple[Any, str, Break]] = {
    "a candidate passed over": (BestFirst, "visit", drops_the_next),
    "plans that do not fit": (local, "which_fit", all_fit),
    "nothing fits": (variant, "cannot_fit", constant(value=True)),
    "more memory first": (Found, "__lt__", more_memory_first),
    "last fields first": (Found, "__lt__", last_fields_first),
    "ties given up": (BestFirst, "_matters", without_ties),
    "all plans as large": (variant, "heaviest_bytes", constant(1.0)),
    "first bound too high": (
        first_tier,
        "space_bounds",
        with_result(lambda b: replace(b, step=b.step * 1.5)),
    ),
    "first memory verdict too strict": (
        first_tier,
        "space_bounds",
        with_result(lambda b: replace(b, fits=b.fits * (b.step > b.step.min()))),
    ),
    "relaxed bound too high": (
        variant,
        "relax",
        with_result(lambda r: replace(r, bound=r.bound * 2)),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OUTER)
def test_a_broken_search_of_many_meshes_is_caught(
    name: str, monkeypatch: Patch
) -> None:
    place, attribute, breaks = OUTER[name]
    monkeypatch.setattr(place, attribute, breaks(getattr(place, attribute)))
    assert is_caught(name)


def never_late(_: Any) -> Any:
    return lambda _together, _why: None


STOPPED: dict[str, tuple[Any, str, Break]] = {
    "the end of time kept quiet": (VariantSearch, "_stop", never_late),
    "more proven than is known": (
        BestFirst,
        "lower_bound",
        with_result(lambda bound: bound * 1.001),
    ),
    "bound of the refined alone": (
        BestFirst,
        "_first_bound",
        constant(float("inf")),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STOPPED)
def test_a_false_claim_of_a_stopped_search_is_caught(
    name: str, monkeypatch: Patch
) -> None:
    place, attribute, breaks = STOPPED[name]
    monkeypatch.setattr(place, attribute, breaks(getattr(place, attribute)))
    assert is_caught(name)
