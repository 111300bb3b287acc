"""Orders of the same pools share prices, memory and lessons, and each keeps its own."""

import pytest
from shared_by_orders import CHECKS, orders, problems

from planner.search.bounds import bounds
from planner.search.bounds.bounds import relax
from planner.search.bounds.paths import ShapePaths, lessons_of, shape_of
from planner.search.solver.dual import tighten


@pytest.mark.parametrize("name", CHECKS)
def test_orders_share_what_is_equal_alone(name: str) -> None:
    CHECKS[name]()


def test_orders_of_one_family_have_their_prices_in_common() -> None:
    tables = {id(tier.prices) for _, tier in orders()}
    assert len(orders()) == 6
    assert len(tables) == 1
    (_, one), (_, other) = orders()[:2]
    assert one.space.meshes is other.space.meshes


def test_problems_teach_those_whose_slow_pools_lie_alike() -> None:
    """Both kinds of A100 are as fast: an order is known by the place of the H100s."""
    keys: dict[int, set[object]] = {}
    shapes = {shape_of(each) for each in problems()[0]}
    for (variant, _), costs in zip(orders(), problems(), strict=True):
        place = [pool.name for pool in variant.stage_pools].index("fast")
        own = {lessons_of(each) for each in costs}
        assert keys.setdefault(place, own) == own
        assert {shape_of(each) for each in costs} == shapes
    assert not keys[0] & keys[1] | keys[0] & keys[2] | keys[1] & keys[2]


def test_where_multipliers_are_known_means_are_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    costs, shapes = problems()[0][0], ShapePaths()
    tighten(costs, relax(costs, None, shapes), None, shapes)
    monkeypatch.setattr(bounds, "path_bounds", lambda *_: pytest.fail("looked at"))
    assert relax(costs, None, shapes).bound > 0
