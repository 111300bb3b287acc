"""Parse trees of bash, by tree-sitter's grammar of the language."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

_NO_NEXT_LINE = re.compile(r"((?<!\\)(?:\\\\)*)\\\n\Z")
"""A last line that goes on, which the grammar does not know. [text]"""

_BASE = re.compile(rb"\d+#")
"""Base of a number that an expansion gives, which the grammar does not know. [text]"""


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


def tree_of(text: str) -> Node:
    """Root of the parse tree of a script."""
    source = _NO_NEXT_LINE.sub(r"\1\n", text.replace("\r\n", "\n")).encode()
    while True:
        root = _parser().parse(source).root_node
        ends = sorted(_run_on(root), reverse=True)
        if not ends:
            return root
        for end in ends:
            source = source[:end] + b";" + source[end:]


def _run_on(root: Node) -> set[int]:
    """Ends of assignments that the grammar joins with the line behind them.

    It takes the end of a line of several assignments for a space.
    """
    found = set[int]()
    for node in walk(root):
        if node.type not in ("command", "variable_assignments"):
            continue
        text = node.text or b""
        for one, other in pairwise(node.children):
            between = text[one.end_byte - node.start_byte :][
                : other.start_byte - one.end_byte
            ]
            if one.type == "variable_assignment" and b"\n" in between.replace(
                b"\\\n", b""
            ):
                found.add(one.end_byte)
    return found


def text_of(node: Node) -> str:
    """Source of a node. [text]."""
    return (node.text or b"").decode()


def line_of(node: Node) -> int:
    """Line of a node in its script, from 1. [1]."""
    return node.start_point.row + 1


def first_error(node: Node) -> Node | None:
    """First node that the grammar does not know; None in a sound tree. [-]."""
    if not node.has_error:
        return None
    return next((each for each in walk(node) if _is_wrong(each)), None)


def _is_wrong(node: Node) -> bool:
    """Tell if a node is no bash: all that is no base of a number, as in 10#$TP."""
    return node.is_missing or (node.is_error and not _BASE.fullmatch(node.text or b""))


def walk(node: Node) -> Iterator[Node]:
    """Nodes of a tree, from the top, in the order of the source."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += reversed(each.children)
