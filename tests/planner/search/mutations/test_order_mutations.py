"""A fleet of three shows each fault in the prices and limits that orders share."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from shared_by_orders import CHECKS

from planner.search import waiting
from planner.search.bounds import group_bounds, memory_bounds
from planner.search.priced import FamilyPrices

Break = Callable[[Any], Any]
"""From the true function to the broken one."""


def as_listed(_: Any) -> Any:
    """The pools stay in the order of their names."""
    return lambda _self, workload: list(range(len(workload.stage_pools)))


def back_to_front(true: Any) -> Any:
    """Ranks lie on the pools in the opposite order."""

    def found(costs: Any, *args: Any) -> Any:
        return true(replace(costs, pool_of_rank=costs.pool_of_rank[::-1]), *args)

    return found


def one_fewer(true: Any) -> Any:
    return lambda *args: true(*args) - 1


BROKEN: dict[str, tuple[str, Any, str, Break]] = {
    "prices of another order": ("prices", FamilyPrices, "turn", as_listed),
    "memory of another pool": ("memory", memory_bounds, "_by_rank", back_to_front),
    "a group on other pools": ("times", group_bounds, "pool_of_stage", back_to_front),
    "ranks in a group that hold less": ("rooms", waiting, "most_on_ranks", one_fewer),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_mistake_about_what_orders_share_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, place, attribute, breaks = BROKEN[name]
    CHECKS[check]()
    monkeypatch.setattr(place, attribute, breaks(getattr(place, attribute)))
    memory_bounds._most_at_any_time.cache_clear()
    with pytest.raises(AssertionError):
        CHECKS[check]()
    memory_bounds._most_at_any_time.cache_clear()
