"""Loops of bash: unrolled where the rounds are known, else with open variables."""

import re
from collections.abc import Callable

from tree_sitter import Node

from planner.launch.shell.bash.parse import line_of, text_of
from planner.launch.shell.bash.state import BreakError, ContinueError, Shell
from planner.launch.shell.values import LOOSE, plain

MOST = 1 << 12
"""Rounds of a loop. [1]"""
_SET = re.compile(
    r"([A-Za-z_]\w*)(?:\[[^]]*\])?(?:[-+*/%]?:?=(?!=)|\+\+|--)|(?:\+\+|--)([A-Za-z_]\w*)"
    r"|\b(?:for|select)\s+([A-Za-z_]\w*)"
    r"|\b(?:read|mapfile|readarray|getopts|unset|printf\s+-v)\b([^;\n|&<]*)"
)
_HIDDEN = re.compile(r"\b(?:eval|source|declare\s+-n)\b|(?:^|[\s;])\.\s")


def loop_over(shell: Shell, node: Node, name: str, words: list[str]) -> None:
    """Run a loop over words."""
    body = node.child_by_field_name("body")
    assert body is not None
    if not words:
        shell.status = 0
    open_one = next((word for word in words if word.startswith(LOOSE)), None)
    if open_one is not None:
        _once(shell, node, body, f"for {name} in {plain(open_one)}")
        return
    if len(words) > MOST:
        shell.refuse(f"for {name}", f"has more than {MOST:,} rounds")
    for word in words:
        shell.assign(name, word)
        if not _round(shell, body):
            return


def loop_while(
    shell: Shell, node: Node, body: Node, goes_on: Callable[[], bool]
) -> None:
    """Run a loop while a condition holds."""
    status: int | None = 0
    for _ in range(MOST):
        before = shell.record.choices.asked
        if not goes_on():
            shell.status = status
            return
        if shell.record.choices.asked > before:
            _opened(shell, node)
            _round(shell, body)
            _opened(shell, node)
            shell.status = 0
            return
        if not _round(shell, body):
            return
        status = shell.status
    shell.refuse(_head(node), f"has more than {MOST:,} rounds")


def _round(shell: Shell, body: Node) -> bool:
    """Run a round; tells if the loop goes on."""
    try:
        shell.run(shell, body)
    except ContinueError as left:
        if (left.status or 1) > 1:
            raise ContinueError((left.status or 1) - 1) from None
    except BreakError as left:
        if (left.status or 1) > 1:
            raise BreakError((left.status or 1) - 1) from None
        return False
    return True


def _once(shell: Shell, node: Node, body: Node, source: str) -> None:
    """Run a loop whose rounds are unknown: never, or once for any of its rounds."""
    if not shell.choose(source):
        return
    _opened(shell, node)
    _round(shell, body)
    _opened(shell, node)


def _opened(shell: Shell, node: Node) -> None:
    """Leave every variable open that a loop may set."""
    text = text_of(node)
    if _HIDDEN.search(text):
        shell.refuse(_head(node), "may run any number of times, and sets what it reads")
    source = f"$(a loop of line {shell.start + line_of(node)})"
    for name in _names(shell, text, set()):
        shell.scopes[_scope(shell, name)][name] = shell.unsaid(source)


def _scope(shell: Shell, name: str) -> int:
    for at in reversed(range(len(shell.scopes))):
        if name in shell.scopes[at]:
            return at
    return 0


def _names(shell: Shell, text: str, seen: set[str]) -> set[str]:
    """Variables that a text may set, with those of the functions that it names."""
    found = set[str]()
    for match in _SET.finditer(text):
        found |= {name for name in match.groups()[:3] if name}
        found |= set(re.findall(r"(?<![\w-])[A-Za-z_]\w*", match[4] or ""))
    called = shell.functions.keys() & set(re.findall(r"[\w-]+", text)) - seen
    for name in called:
        seen.add(name)
        found |= _names(shell, text_of(shell.functions[name]), seen)
    return found


def _head(node: Node) -> str:
    return text_of(node).partition("\n")[0]
