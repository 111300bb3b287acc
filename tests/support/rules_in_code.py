"""Names of every rule under which a search counts what it removes, read from code."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from planner.search.stop import INTERRUPTED, OUT_OF_MEMORY, OUT_OF_TIME
from planner.search.variant import NOT_VISITED

ROOT = Path(__file__).resolve().parents[2]
COUNTERS = re.compile(r"(.*\.)?(removed|counted|dropped)")
"""Counters of removed candidates, as variables or as attributes."""
NAMES = re.compile(r"rules?|BY_\w+|NO_FIT|BEATEN|OUT_OF_\w+|\w+_ENOUGH")
"""Variables that hold the name of a rule, or a table of them."""


@cache
def rules() -> frozenset[str]:
    """Names that code can count under; an ellipsis stands for what varies. [text]."""
    modules = (ROOT / "planner" / "search").rglob("*.py")
    trees = [ast.parse(p.read_text()) for p in modules if p.name != "stop.py"]
    limits = {NOT_VISITED + why for why in (OUT_OF_TIME, OUT_OF_MEMORY, INTERRUPTED)}
    counted = {rule for tree in trees for rule in _rules_of(tree)}
    return frozenset(counted | limits | set(_shard_rules()))


def _rules_of(tree: ast.Module) -> Iterator[str]:
    """What stands between a counter's brackets, or in a variable that does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and COUNTERS.fullmatch(
            ast.unparse(node.value)
        ):
            yield from _texts(node.slice)
        if isinstance(node, ast.Assign) and NAMES.fullmatch(
            ast.unparse(node.targets[0])
        ):
            yield from _texts(node.value)


def _shard_rules() -> Iterator[str]:
    """What a framework's limits say of a shard group."""
    text = (ROOT / "planner" / "specs" / "frameworks" / "limits.py").read_text()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Return) and node.value is not None:
            yield from _texts(node.value)


def _texts(node: ast.expr) -> Iterator[str]:
    """Texts that an expression can be; those of names are read where they are set."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            fixed = (
                part.value if isinstance(part, ast.Constant) else "…" for part in parts
            )
            yield "".join(map(str, fixed))
        case ast.Dict(keys=keys):
            for key in keys:
                yield from _texts(key) if key is not None else ()
        case ast.IfExp(body=one, orelse=other):
            yield from (*_texts(one), *_texts(other))
