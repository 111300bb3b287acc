"""Prices by hand: what brute force and search share, checked against neither."""

import pytest
from hand_worked import WORKED


@pytest.mark.parametrize("name", WORKED)
def test_a_split_costs_what_the_sum_on_paper_says(name: str) -> None:
    assert WORKED[name].holds()
