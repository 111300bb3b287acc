"""A merged test tells every value that fails, and is none without a value."""

import pytest
from each import each


def test_every_value_that_fails_is_told() -> None:
    @each(("n", "most"), [(1, 2), (3, 2), (5, 2)])
    def small(n: int, most: int) -> None:
        assert n <= most

    with pytest.raises(AssertionError, match=r"(?s)\(3, 2\).*\(5, 2\)") as told:
        small()
    assert "(1, 2)" not in str(told.value)


def test_no_value_is_no_test() -> None:
    @each("n", [])
    def never(n: int) -> None:
        raise AssertionError(n)

    with pytest.raises(AssertionError, match="no value"):
        never()


@pytest.mark.parametrize("base", [0, 10])
@each("n", [1, 2])
@each("more", [3, 4])
def test_merged_values_stand_beside_others(base: int, n: int, more: int) -> None:
    assert base + n + more in range(base + 4, base + 7)
