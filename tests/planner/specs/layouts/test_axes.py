"""Axes are listed once: their records agree with layouts, limits and frameworks."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.frameworks import FRAMEWORKS
from planner.specs.frameworks.limits import Limits
from planner.specs.layouts.axes import AXES, AXIS, FIELDS, NUMBERS, WORDS, Axis
from planner.specs.layouts.layout import Layout
from planner.specs.search import SearchSpec

ROOT = Path(__file__).resolve().parents[4]
LISTED = 3
"""Axis names beside each other that make a list of axes. [1]"""
PARTS = {"comm_dtype", "offload", "stages", "pools"}
"""Fields of a layout that are blocks of their own."""
ALLOWED = {
    "planner/calibration/rows/skeleton.py": "fields that a row has to state",
    "planner/frameworks/deepspeed/limits.py": "pairs that DeepSpeed has only apart",
    "planner/launch/copies.py": "ranks of one copy of the states",
    "planner/search/space/fleet.py": "axes of pairs that a framework has only apart",
    "planner/search/incumbents.py": "columns of a mesh",
    "planner/questions/tuning/readings.py": "degrees that a log states",
    "planner/verify/legality.py": "the verifier states every rule anew",
}
"""Modules that list axes all the same, and the reason."""


def names(elements: list[ast.expr]) -> set[str]:
    """Axis names among elements, or first in their own elements."""
    firsts = [e.elts[0] if isinstance(e, ast.Tuple) and e.elts else e for e in elements]
    words = {each.value for each in firsts if isinstance(each, ast.Constant)}
    return {axis for axis in AXIS if axis in words}


def elements(node: ast.AST, *, top: bool) -> list[ast.expr]:
    """Elements of a display, arguments of a call, keys of a table.

    A dict inside a function whose values are computed is a layout in the making, or
    the case of another program: no table.
    """
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return node.elts
    if isinstance(node, ast.Call):
        return node.args
    if isinstance(node, ast.Dict):
        plain = all(isinstance(value, ast.Constant) for value in node.values)
        return [key for key in node.keys if key is not None] if plain or top else []
    return []


def lists(source: str) -> Iterator[set[str]]:
    """Lists of axes in a module, each as the names in it."""
    if sum(f'"{axis}"' in source for axis in AXIS) < LISTED:
        return
    tree = ast.parse(source)
    above = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, above)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        found = names(elements(node, top=id(node) not in inside))
        if len(found) >= LISTED:
            yield found


def test_no_other_module_lists_the_axes() -> None:
    found = {
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "planner").rglob("*.py"))
        if list(lists(path.read_text()))
    }
    assert found == ALLOWED.keys()


@pytest.mark.parametrize(
    "source",
    [
        'X = ("tp", "pp", "cp")',
        'def f():\n    return [("tp", 1), ("pp", 2), ("cp", 3)]',
        'X = {"tp": f(1), "pp": f(2), "cp": f(3)}',
        'def f():\n    return {"tp": 1, "pp": 1, "cp": 1}',
        'g = attrgetter("tp", "order", "recompute")',
        'X = {"zero_stage", "micro_batch", "vpp"}',
    ],
)
def test_every_form_of_a_list_is_seen(source: str) -> None:
    assert len(list(lists(source))) == 1


def test_a_layout_in_the_making_is_no_list() -> None:
    source = 'def f(its):\n    return {"tp": its.tp, "pp": its.pp, "cp": 1}'
    assert list(lists(source)) == []


def test_axes_are_the_fields_of_a_layout_with_their_defaults() -> None:
    fields = {n: f.default for n, f in Layout.model_fields.items() if n not in PARTS}
    assert [(axis.name, axis.default) for axis in FIELDS] == list(fields.items())
    assert [axis.name for axis in AXES if axis not in FIELDS] == ["recompute"]


def test_the_search_block_limits_every_axis_but_those_that_follow() -> None:
    limited = {axis.name for axis in AXES if axis.is_limited}
    assert limited <= SearchSpec.model_fields.keys()
    assert {axis.name for axis in AXES} - SearchSpec.model_fields.keys() == {
        "grad_accum"
    }


@pytest.mark.parametrize("axis", NUMBERS, ids=lambda axis: axis.name)
def test_a_limit_below_the_least_number_is_refused(axis: Axis) -> None:
    assert getattr(SearchSpec(**{axis.name: axis.least}), axis.name) == axis.least
    with pytest.raises(ValueError, match=f"from {axis.least}"):
        SearchSpec(**{axis.name: axis.least - 1})


def test_an_axis_depends_on_a_degree() -> None:
    assert {axis.under for axis in AXES if axis.under} == {"tp", "cp"}
    for axis in AXES:
        assert not axis.under or AXIS[axis.under].is_degree
        alone = Layout(cp=2, tp=1) if axis.under == "tp" else Layout(cp=1, tp=2)
        assert axis.matters(alone) is not bool(axis.under)


@pytest.mark.parametrize(
    "limits", [f.limits for f in FRAMEWORKS], ids=[f.name for f in FRAMEWORKS]
)
def test_frameworks_have_legal_values_only(limits: Limits) -> None:
    for axis in AXES:
        if axis.limit and axis.values:
            assert set(getattr(limits, axis.limit)) <= set(axis.values), axis.name
        if axis.limit and not axis.values and axis not in WORDS:
            assert isinstance(getattr(limits, axis.limit), bool)
            assert axis.feature
