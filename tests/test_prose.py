"""Docstrings begin with the quantity or the verb, in every package."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("planner", "benchmarks")
RELATIVE = re.compile(r"(What|Whether|How|Where|Which|Who|Why|When|The same)\b")
"""Openings that say what a sentence is about only at its end, or elsewhere."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
NAMELESS = {
    "beside",
    "each",
    "found",
    "given",
    "held",
    "its",
    "least",
    "one",
    "told",
    "whole",
}
"""Words that say nothing of the thing that a local or an argument is."""
NAMED = ("cost", "hardware", "schedules")
"""Rooms without such names."""
NODES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def described(node: ast.AST) -> Iterator[ast.Module | ast.ClassDef | Function]:
    """A module or block and every block inside, without walking expressions."""
    if isinstance(node, NODES):
        yield node
    if isinstance(node, ast.mod | ast.stmt):
        for inner in ast.iter_child_nodes(node):
            yield from described(inner)


def relative(source: str) -> Iterator[str]:
    """First lines of docstrings that open with such a word. [text]."""
    for node in described(ast.parse(source)):
        docstring = ast.get_docstring(node)
        if docstring and RELATIVE.match(docstring):
            yield docstring.splitlines()[0]


def test_docstrings_begin_with_what_they_speak_of() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {line}"
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for line in relative(path.read_text())
    ]
    assert found == []


def test_the_rule_sees_what_it_forbids() -> None:
    source = '"""Names."""\n\ndef f():\n    """Whether a file is there."""\n'
    assert list(relative(source)) == ["Whether a file is there."]
    inner = (
        'class A:\n    if True:\n        def f(self):\n            """How it is."""\n'
    )
    assert list(relative(inner)) == ["How it is."]


def nameless(source: str) -> Iterator[str]:
    """Locals and arguments of functions whose names say nothing. [text]."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, Function | ast.Lambda):
            for node in ast.walk(function):
                stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                name = node.id if stored else getattr(node, "arg", None)
                if name in NAMELESS and not isinstance(node, ast.keyword):
                    yield f"{name} at line {node.lineno}"


def test_locals_are_named_by_the_thing() -> None:
    names = [
        f"{path.relative_to(ROOT)}: {name}"
        for room in NAMED
        for path in sorted((ROOT / "planner" / room).rglob("*.py"))
        for name in nameless(path.read_text())
    ]
    assert names == []


def test_the_rule_sees_names_that_say_nothing() -> None:
    source = (
        "def f(its):\n    for one in its: pass\n    return g(whole=lambda held: 1)\n"
    )
    assert sorted({name.split()[0] for name in nameless(source)}) == [
        "held",
        "its",
        "one",
    ]
