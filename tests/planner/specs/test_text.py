"""An answer as JSON: the same values, a value that fits on one line."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import RootModel

from planner.specs.text import WIDTH, json_text

LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=40,
)


@given(VALUES)
def test_the_values_are_those_of_the_answer(value: Any) -> None:
    model = RootModel[Any](value)
    assert json.loads(json_text(model)) == json.loads(model.model_dump_json())


def test_an_object_that_fits_is_one_line() -> None:
    stages = [{"layers": 1, "recompute": []}] * 6
    text = json_text(RootModel[Any]({"tp": 4, "stages": stages}))
    row = '    {"layers": 1, "recompute": []}'
    assert text.splitlines() == [
        "{",
        '  "tp": 4,',
        '  "stages": [',
        *[f"{row},"] * 5,
        row,
        "  ]",
        "}",
    ]


@pytest.mark.parametrize("spare", [0, 1])
def test_a_line_is_no_wider_than_its_limit(spare: int) -> None:
    names = ["a" * (WIDTH - 28 - spare), "b"]
    lines = json_text(RootModel[Any]({"names": names, "n": 1})).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert (len(lines) == 1) is bool(spare)
