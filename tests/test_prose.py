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
