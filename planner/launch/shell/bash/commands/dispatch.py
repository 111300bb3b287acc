"""Commands by their first word: functions, builtins, and programs."""

from collections.abc import Mapping, Sequence

from tree_sitter import Node

from planner.launch.shell.bash.assigning import assign
from planner.launch.shell.bash.commands.table import BUILTINS, KEEPS
from planner.launch.shell.bash.programs import started
from planner.launch.shell.bash.state import ReturnError, Shell


def dispatch(
    shell: Shell, words: list[str], node: Node, own: Sequence[Node] = ()
) -> None:
    """Run the words of a command."""
    environment = dict[str, str]()
    if own:
        inner = shell.child()
        for each in own:
            environment[assign(inner, each)] = ""
        values = {name: inner.value(name) for name in environment}
        environment = {n: v for n, v in values.items() if isinstance(v, str)}
    before = environment.keys() - shell.exported
    shell.exported |= before
    if environment:
        shell.scopes.append(dict(environment))
    try:
        _dispatched(shell, words, node, environment)
    finally:
        if environment:
            shell.scopes.pop()
        shell.exported -= before


def _dispatched(
    shell: Shell, words: list[str], node: Node, environment: Mapping[str, str]
) -> None:
    name = words[0]
    bare = name in ("command", "builtin") and name not in shell.functions
    if bare and len(words) > 1 and not words[1].startswith("-"):
        name, words = words[1], words[1:]
    if name in shell.functions and not bare:
        _call(shell, words)
    elif name in BUILTINS:
        shell.status = shell.status if name in KEEPS else 0
        BUILTINS[name](shell, words, node)
    else:
        started(shell, words, node, environment)


def _call(shell: Shell, words: list[str]) -> None:
    """Run the body of a function, with its own parameters and local variables."""
    if shell.depth > 60:
        shell.refuse(words[0], "calls itself too often")
    before = shell.words, shell.bound, shell.depth
    shell.words, shell.bound, shell.depth = words[1:], True, shell.depth + 1
    shell.scopes.append({})
    try:
        shell.run(shell, shell.functions[words[0]])
    except ReturnError as ended:
        shell.status = ended.status
    finally:
        shell.scopes.pop()
        shell.words, shell.bound, shell.depth = before
