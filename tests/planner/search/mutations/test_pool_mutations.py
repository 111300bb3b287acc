"""A rule, bound or price of mixed fleets, broken once, is seen on random fleets."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from cases import is_caught

from planner.cost.pricing import Pricing
from planner.cost.table.mixed import MixedTable
from planner.job import variants
from planner.search.bounds import columns
from planner.search.bounds import pool_bounds as pools
from planner.search.space import fleet, space
from planner.search.space.fleet import PoolShapes
from planner.search.space.space import Enumerator

Break = Callable[[Any], Any]
"""From the true function to the broken one."""


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
    """Sends from a pool to the next one cost nothing."""

    def priced(self: MixedTable, row: int, **named: Any) -> Any:
        assert self.border is not None
        return true(replace(self, border=self.border * 0), row, **named)

    return priced


def any_order(_: Any) -> Any:
    return lambda _self, _pp, _dp, _inner, _experts: (0, 1)


def one_fewer(true: Any) -> Any:
    return lambda *args: true(*args) - 1


def all_thrice(true: Any) -> Any:
    """Times of layers that are three times as long."""
    return lambda *args: 3 * true(*args)


def one_more_trip(true: Any) -> Any:
    """Paths that go through all ranks once more than there are micro-batches for."""

    def paths(*args: Any) -> Any:
        return [
            way._replace(whole=way.whole + 1, before=way.before / way.whole * 2)
            for way in true(*args)[1:2]
        ]

    return paths


def one_maker(_: Any) -> Any:
    return property(lambda _self: ("any",))


MUTATIONS: dict[str, tuple[Any, str, Break]] = {
    "the bound over pools too high": (pools, "pooled_bound", not_shared),
    "ranks of a pool that hold less": (pools, "most_on_rank", one_fewer),
    "layers of a pool too long": (pools, "_layers", all_thrice),
    "a way through all ranks too many": (pools, "_trips", one_more_trip),
    "stages of a pool that hold less": (columns, "_most_on_pools", one_fewer),
    "an order of the pools lost": (variants, "arrangements", but_last),
    "pools of two makers joined": (Pricing, "makers", one_maker),
    "a number of stages lost": (PoolShapes, "_ranks", but_last),
    "degrees that do not divide": (space, "keeps_to_pools", always(value=True)),
    "heads that do not divide": (fleet, "heads_divide", always(value=False)),
    "data ranks around pools": (Enumerator, "_orders", any_order),
    "ranks on the wrong pool": (MixedTable, "stage_costs", turned),
    "borders cost nothing": (MixedTable, "stage_costs", no_border),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mistake_about_pools_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, attribute, breaks = MUTATIONS[name]
    monkeypatch.setattr(place, attribute, breaks(getattr(place, attribute)))
    assert is_caught(name)
