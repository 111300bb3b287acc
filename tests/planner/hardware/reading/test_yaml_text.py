"""One reader of YAML: no key twice, no nesting that ends the process."""

import ast
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.hardware.reading.yaml_text import (
    DEEPEST,
    DuplicateKeyError,
    NestingError,
    parse_yaml,
)

ROOT = Path(__file__).resolve().parents[4]
KEYS = st.one_of(st.text(min_size=1, max_size=8), st.integers(), st.booleans())
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=12))
DATA = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=12,
)


@given(data=DATA, flow=st.booleans())
def test_text_without_twins_is_read_as_before(*, data: object, flow: bool) -> None:
    text = yaml.safe_dump(data, allow_unicode=True, default_flow_style=flow)
    assert parse_yaml(text) == yaml.safe_load(text)


@given(
    st.dictionaries(KEYS, DATA, min_size=1, max_size=4), st.data(), st.integers(0, 3)
)
def test_a_key_twice_in_one_block_is_refused_at_any_depth(
    block: dict[object, object], draw: st.DataObject, depth: int
) -> None:
    key = draw.draw(st.sampled_from(list(block)))
    lines = yaml.safe_dump(block).splitlines()
    twin = yaml.safe_dump({key: 1}).splitlines()
    indent = "  " * depth
    text = [f"{'  ' * at}outer:" for at in range(depth)]
    text += [indent + line for line in [*lines, *twin]]
    with pytest.raises(DuplicateKeyError) as told:
        parse_yaml("\n".join(text))
    assert told.value.second > told.value.first > depth


@pytest.mark.parametrize(
    "text",
    ["a: 1\n'a': 2", "{a: 1, a: 1}", "- {x: {b: 1, c: 2, b: 3}}", "1: a\n1: b"],
)
def test_two_spellings_of_a_key_are_one(text: str) -> None:
    with pytest.raises(DuplicateKeyError):
        parse_yaml(text)


@pytest.mark.parametrize(
    "text",
    ["a: 1\nb: {a: 1}", "- {a: 1}\n- {a: 1}", "1: a\n'1': b", "a: {a: {a: a}}", ""],
)
def test_equal_keys_of_different_blocks_are_two(text: str) -> None:
    assert parse_yaml(text) == yaml.safe_load(text)


def test_a_block_that_merges_another_may_replace_its_keys() -> None:
    text = "base: &b {x: 1, y: 2}\nmine: {<<: *b, x: 3}"
    assert parse_yaml(text)["mine"] == {"x": 3, "y": 2}


@pytest.mark.parametrize("opening", ["[", "{a: "])
@pytest.mark.parametrize("times", [DEEPEST + 1, 3_000, 200_000])
def test_endless_nesting_is_an_error_not_a_crash(opening: str, times: int) -> None:
    with pytest.raises(NestingError):
        parse_yaml(opening * times)


def test_the_last_line_of_a_twin_is_named() -> None:
    with pytest.raises(DuplicateKeyError, match="'a' is given twice, first on line 1"):
        parse_yaml("a: 1\nb: 2\na: 3")


def test_no_other_code_parses_yaml() -> None:
    loaders = {"load", "safe_load", "full_load", "unsafe_load", "load_all"}
    guilty = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / "planner").rglob("*.py"))
        if "yaml" in path.read_text()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in loaders
        and ast.unparse(node.value) == "yaml"
        and path.name != "yaml_text.py"
    ]
    assert guilty == []
