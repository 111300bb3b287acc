"""Statements of bash, run in order: only variables change, and no program starts."""

import re
from collections.abc import Callable, Iterator, Sequence

from tree_sitter import Node

from planner.launch.shell.bash.arithmetic import computed
from planner.launch.shell.bash.assigning import assign, declare
from planner.launch.shell.bash.commands.dispatch import dispatch
from planner.launch.shell.bash.commands.table import BUILTINS
from planner.launch.shell.bash.conditions import holds, matches
from planner.launch.shell.bash.loops import loop_over, loop_while
from planner.launch.shell.bash.parse import text_of
from planner.launch.shell.bash.programs import begun
from planner.launch.shell.bash.redirects import redirected
from planner.launch.shell.bash.state import (
    FAILED,
    BreakError,
    ContinueError,
    ExitError,
    ReturnError,
    Shell,
)
from planner.launch.shell.bash.words import Span, fields, pattern, quoted, single
from planner.launch.shell.values import known, plain

_SKIPPED = frozenset({"comment", "heredoc_body", "heredoc_end", "heredoc_start"})


def run(shell: Shell, node: Node) -> None:
    """Run a statement."""
    if node.type in _SKIPPED:
        return
    handler = _KINDS.get(node.type)
    if handler is None:
        shell.at(node)
        shell.refuse(text_of(node), f"is no bash that is followed ({node.type})")
    handler(shell, node)


def _sequence(shell: Shell, nodes: Sequence[Node]) -> None:
    """Run statements in order; those before `&` in a shell of their own."""
    for at, node in enumerate(nodes):
        if not node.is_named:
            continue
        following = nodes[at + 1].type if at + 1 < len(nodes) else ""
        if following == "&":
            _apart(shell, node, out=None)
            shell.status = 0
            continue
        run(shell, node)


def _apart(shell: Shell, node: Node, **others: object) -> Shell:
    """Run a statement in a subshell."""
    inner = shell.child(**others)
    try:
        run(inner, node)
    except ExitError as ended:
        inner.status = ended.status
    except (BreakError, ContinueError, ReturnError):
        inner.status = 0
    return inner


def _block(shell: Shell, node: Node) -> None:
    if node.children and node.children[0].type == "((":
        shell.at(node)
        span = Span(node, node.start_byte + 2, node.end_byte - 2)
        value = computed(quoted(span, shell), shell)
        if known(value):
            shell.status = int(int(value) == 0)
        else:
            shell.status = int(not shell.choose(f"{plain(value)} != 0"))
        _checked(shell)
        return
    _sequence(shell, node.children)


def _subshell(shell: Shell, node: Node) -> None:
    inner = shell.child()
    try:
        _sequence(inner, node.children)
    except ExitError as ended:
        inner.status = ended.status
    shell.status, shell.doubt = inner.status, inner.doubt
    _checked(shell)


def _checked(shell: Shell) -> None:
    """End a script under `set -e` whose command fails."""
    if "errexit" in shell.options and shell.status and not shell.testing:
        raise ExitError(shell.status)


def _list(shell: Shell, node: Node) -> None:
    """Run `a && b` or `a || b`; a failure of all but the last part ends nothing."""
    left, sign, right = (c for c in node.children if c.type not in _SKIPPED)
    shell.testing += 1
    try:
        run(shell, left)
        go_on = shell.holds() == (sign.type == "&&")
    finally:
        shell.testing -= 1
    if go_on:
        run(shell, right)


def _negated(shell: Shell, node: Node) -> None:
    shell.testing += 1
    try:
        run(shell, node.named_children[0])
        shell.status = int(shell.holds())
    finally:
        shell.testing -= 1


def _pipeline(shell: Shell, node: Node) -> None:
    """Run the parts of a pipeline in shells of their own; the last one gives status."""
    stages = [child for child in node.named_children if child.type not in _SKIPPED]
    lines, script, ended = shell.lines, shell.script, list[Shell]()
    for stage in stages[:-1]:
        out = list[str]()
        ended.append(_apart(shell, stage, out=out, lines=lines, script=script))
        script = "".join(out)
        lines = script.splitlines() if known(script) else None
    ended.append(_apart(shell, stages[-1], lines=lines, script=script))
    piped = ended if "pipefail" in shell.options else ended[-1:]
    last = next((its for its in reversed(piped) if its.status != 0), ended[-1])
    shell.status, shell.doubt = last.status, last.doubt
    if last.status is None and any(its.status for its in piped):
        shell.status = FAILED
    _checked(shell)


def _if(shell: Shell, node: Node) -> None:
    """Run the branch whose condition holds."""
    branches = [c for c in node.children if c.type in ("elif_clause", "else_clause")]
    if _tested(shell, *_halves(node)):
        return
    for branch in branches:
        if branch.type == "else_clause":
            _sequence(shell, branch.children[1:])
            return
        if _tested(shell, *_halves(branch)):
            return
    shell.status = 0


def _halves(node: Node) -> tuple[list[Node], list[Node]]:
    """Condition and body of a branch."""
    kinds = [child.type for child in node.children]
    then = kinds.index("then")
    ends = ("elif_clause", "else_clause", "fi")
    end = next((i for i, k in enumerate(kinds) if k in ends), len(kinds))
    return node.children[1:then], node.children[then + 1 : end]


def _tested(shell: Shell, condition: list[Node], body: list[Node]) -> bool:
    """Run a body if a condition holds; tells if it did."""
    if not any(node.is_named and node.type != "comment" for node in body):
        shell.refuse("then", "has no command, which is no bash")
    if not succeeds(shell, condition):
        return False
    shell.status = 0
    _sequence(shell, body)
    return True


def succeeds(shell: Shell, condition: list[Node]) -> bool:
    """Tell if the commands of a condition succeed. [-]."""
    shell.testing += 1
    try:
        _sequence(shell, condition)
        return shell.holds()
    finally:
        shell.testing -= 1


def _case(shell: Shell, node: Node) -> None:
    """Run the first item that a word fits, and those that it falls through to."""
    shell.at(node)
    value = node.child_by_field_name("value")
    text = single(value, shell) if value else ""
    falls = fitted = False
    for item in (c for c in node.children if c.type == "case_item"):
        globs = item.children_by_field_name("value")
        if not falls and not any(_fits(text, glob, shell) for glob in globs):
            continue
        close = next(i for i, c in enumerate(item.children) if c.type == ")")
        body = [c for c in item.children[close + 1 :] if c.type != ";&"]
        fitted = any(c.is_named and c.type not in _SKIPPED for c in body)
        _sequence(shell, body)
        shell.status = shell.status if fitted else 0
        last = item.children[-1].type
        if last == ";;" or last not in (";&", ";;&"):
            return
        falls = last == ";&"
    if not fitted:
        shell.status = 0


def _fits(text: str, glob: Node, shell: Shell) -> bool:
    return matches(text, pattern(glob, shell), shell)


def _test(shell: Shell, node: Node) -> None:
    shell.at(node)
    shell.status = int(not holds(node, shell))
    _checked(shell)


def _assignment(shell: Shell, node: Node) -> None:
    shell.at(node)
    _assigned(
        shell, [node] if node.type == "variable_assignment" else node.named_children
    )


def _assigned(shell: Shell, every: Sequence[Node]) -> None:
    """Assign; the status is that of a command that a value ran."""
    shell.substituted = False
    for each in every:
        assign(shell, each)
    if not shell.substituted:
        shell.status = 0
    _checked(shell)


def _declaration(shell: Shell, node: Node) -> None:
    shell.at(node)
    declare(shell, node)
    shell.status = 0


def _unset(shell: Shell, node: Node) -> None:
    shell.at(node)
    words = fields(node.named_children, shell)
    shell.status = 0
    BUILTINS["unset"](shell, ["unset", *words], node)


def _function(shell: Shell, node: Node) -> None:
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name is None or body is None:
        shell.refuse(text_of(node), "is no function of bash")
    shell.functions[text_of(name)] = body
    shell.status = 0


def _for(shell: Shell, node: Node) -> None:
    shell.at(node)
    variable = node.child_by_field_name("variable")
    body = node.child_by_field_name("body")
    if node.children[0].type != "for" or variable is None or body is None:
        shell.refuse(text_of(node), "is no loop that is followed")
    named = [c for c in node.children if c.type == "in"]
    values = node.children_by_field_name("value")
    words = fields(values, shell) if named else list(shell.words)
    loop_over(shell, node, text_of(variable), words)


def _while(shell: Shell, node: Node) -> None:
    shell.at(node)
    body = node.child_by_field_name("body")
    condition = node.children_by_field_name("condition")
    until = node.children[0].type == "until"
    assert body is not None
    loop_while(shell, node, body, lambda: succeeds(shell, condition) != until)


def _counted(shell: Shell, node: Node) -> None:
    """Run `for ((...; ...; ...))`."""
    shell.at(node)
    body = node.child_by_field_name("body")
    head = re.match(r"for\s*\(\((.*?);(.*?);(.*?)\)\)", text_of(node), re.DOTALL)
    if head is None or body is None or "$(" in head[0]:
        shell.refuse(text_of(node), "is no loop that is followed")
    first, test, step = (
        re.sub(r"\$\{?(\w+)\}?", r"\1", part) for part in head.groups()
    )
    computed(first, shell)
    rounds = iter(_rounds(step, shell))

    def goes_on() -> bool:
        next(rounds)
        value = computed(test or "1", shell)
        return value != "0" if known(value) else shell.choose(f"{plain(value)} != 0")

    loop_while(shell, node, body, goes_on)


def _rounds(step: str, shell: Shell) -> Iterator[None]:
    """Step a loop before every round but the first."""
    yield
    while True:
        computed(step, shell)
        yield


def _command(shell: Shell, node: Node) -> None:
    """Run a command: a function, a builtin, or a program that is only noted."""
    shell.at(node)
    kept = ("variable_assignment", "file_redirect", "herestring_redirect", "comment")
    its = [c for c in node.children if c.type not in kept and c.is_named]
    its = [c.named_children[0] if c.type == "command_name" else c for c in its]
    if its and node.children[0] == its[0].parent and text_of(its[0]) == "time":
        _timed(shell, node)
        return
    lines = shell.lines
    for child in node.children:
        if child.type == "herestring_redirect":
            text = single(child.named_children[-1], shell)
            lines = text.split("\n") if known(text) else None
    own = [c for c in node.children if c.type == "variable_assignment"]
    shell.substituted = False
    words = fields(its, shell)
    if not words:
        substituted = shell.substituted
        if own or not substituted:
            _assigned(shell, own)
        _checked(shell)
        return
    before, shell.lines = shell.lines, lines
    try:
        dispatch(shell, words, node, own)
    finally:
        shell.lines = before if lines is not before else shell.lines
    _checked(shell)


def _timed(shell: Shell, node: Node) -> None:
    """Run what stands behind `time`, a word of the language."""
    source = text_of(node)[len("time") :]
    begun(shell, re.sub(r"\A\s+-p(?!\S)", "", source), node)


_KINDS: dict[str, Callable[[Shell, Node], None]] = {
    "program": _block,
    "compound_statement": _block,
    "do_group": _block,
    "command_substitution": _subshell,
    "subshell": _subshell,
    "list": _list,
    "pipeline": _pipeline,
    "negated_command": _negated,
    "if_statement": _if,
    "case_statement": _case,
    "test_command": _test,
    "variable_assignment": _assignment,
    "variable_assignments": _assignment,
    "declaration_command": _declaration,
    "unset_command": _unset,
    "function_definition": _function,
    "for_statement": _for,
    "while_statement": _while,
    "c_style_for_statement": _counted,
    "command": _command,
    "redirected_statement": redirected,
}
