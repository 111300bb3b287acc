"""Docstrings begin with the quantity or the verb, in every package."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("planner", "hardware", "benchmarks")
RELATIVE = re.compile(r"(What|Whether|How|Where|Which|Who|Why|When|The same)\b")
"""Openings that say what a sentence is about only at its end, or elsewhere."""
NODES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def relative(source: str) -> Iterator[str]:
    """First lines of docstrings that open with such a word. [text]."""
    for node in ast.walk(ast.parse(source)):
        docstring = ast.get_docstring(node) if isinstance(node, NODES) else None
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
