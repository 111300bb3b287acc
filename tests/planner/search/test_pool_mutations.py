"""A rule, bound or price of mixed fleets, broken once, is seen on random fleets."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from against_every_plan import check_space
from hypothesis import Phase, given, seed, settings
from test_whole_jobs import check_flow
from whole_jobs import whole_jobs

from planner import variants
from planner.cost.mixed import MixedTable, price_meshes
from planner.cost.pricing import Pricing
from planner.search import fleet, pools, space
from planner.search.exhaustive import candidate_costs, cheapest_split
from planner.search.fleet import PoolShapes
from planner.search.space import Enumerator, enumerate_space

Break = Callable[[Any], Any]
"""From the true function to the broken one."""
Check = Callable[[Pricing], None]
JOBS = 60
"""Random jobs on mixed fleets, of which one has to show the mistake. [1]"""


MORE_JOBS = 480
"""The same for mistakes that few jobs show. [1]"""


def is_caught(check: Check, jobs: int = JOBS) -> bool:
    """Whether a check fails on any of the jobs; the first one ends it."""
    few = settings(
        max_examples=jobs,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        print_blob=False,
    )
    try:
        seed(0)(few(given(whole_jobs("megatron", 100, 1))(check)))()
    except (AssertionError, RuntimeError):
        return True
    return False


def check_bound(job: Pricing) -> None:
    """The first bound over pools is above no plan of its candidate."""
    for variant in variants.variants([job]):
        found = enumerate_space(variant)
        if not (variant.mixed and len(found)):
            continue
        table = price_meshes(variant, found.meshes, found.recompute)
        bounds = pools.pooled_bound(table, found)
        for at, bound in enumerate(bounds.tolist()):
            costs = candidate_costs(table, found, at)
            best = cheapest_split(costs)
            assert best is None or bound <= best[0] * costs.slowdown / 1e9


def test_the_bound_over_pools_is_above_no_plan() -> None:
    assert not is_caught(check_bound, 20)


def but_last(true: Any) -> Any:
    """One less wherever there are two or more."""

    def fewer(*args: Any, **named: Any) -> Any:
        found = tuple(true(*args, **named))
        return found[:-1] if len(found) > 1 else found

    return fewer


def always(value: Any) -> Break:
    return lambda _: lambda *_args, **_named: value


def not_shared(true: Any) -> Any:
    """A bound that adds up what all ranks do, where the mean belongs."""
    return lambda table, held: true(table, held) * held.meshes.pp[held.mesh]


def turned(true: Any) -> Any:
    """Ranks are priced on the pools in the opposite order."""

    def priced(*args: Any, **named: Any) -> Any:
        costs = true(*args, **named)
        return replace(costs, pool_of_rank=costs.pool_of_rank[::-1])

    return priced


def no_border(true: Any) -> Any:
    """What leaves one pool for the next costs nothing."""

    def priced(self: MixedTable, row: int, **named: Any) -> Any:
        assert self.border is not None
        return true(replace(self, border=self.border * 0), row, **named)

    return priced


def any_order(_: Any) -> Any:
    return lambda _self, _pp, _dp, _inner, _experts: (0, 1)


MUTATIONS: dict[str, tuple[Any, str, Break, Check]] = {
    "the bound over pools too high": (
        pools,
        "pooled_bound",
        not_shared,
        check_bound,
    ),
    "an order of the pools lost": (variants, "arrangements", but_last, check_space),
    "a number of stages lost": (PoolShapes, "_ranks", but_last, check_space),
    "degrees that do not divide": (
        space,
        "keeps_to_pools",
        always(value=True),
        check_space,
    ),
    "heads that do not divide": (
        fleet,
        "heads_divide",
        always(value=False),
        check_space,
    ),
    "data ranks around pools": (Enumerator, "_orders", any_order, check_space),
    "ranks on the wrong pool": (MixedTable, "stage_costs", turned, check_flow),
    "borders cost nothing": (MixedTable, "stage_costs", no_border, check_flow),
}


LONG = {"ranks on the wrong pool", "borders cost nothing", "heads that do not divide"}
"""Mistakes that take many jobs to show."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in MUTATIONS],
)
def test_a_mistake_about_pools_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, attribute, breaks, check = MUTATIONS[name]
    monkeypatch.setattr(place, attribute, breaks(getattr(place, attribute)))
    assert is_caught(check, MORE_JOBS if name in LONG else JOBS)
