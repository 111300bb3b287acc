"""Assignments of bash: scalars, arrays, elements, and declarations."""

import re

from tree_sitter import Node

from planner.launch.shell.bash.arithmetic import computed
from planner.launch.shell.bash.parse import text_of
from planner.launch.shell.bash.state import Array, Shell, Value
from planner.launch.shell.bash.words import fields, single
from planner.launch.shell.values import known

_ELEMENT = re.compile(r"\[([^]]*)\]\+?=")


def assign(shell: Shell, node: Node) -> str:
    """Assign to a variable, an array or an element.

    Args:
        shell: State of the shell. [-]
        node: The assignment. [-]

    Returns:
        Name of the variable. [text]
    """
    target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    assert target is not None
    more = any(child.type == "+=" for child in node.children)
    name = re.match(r"\w*", text_of(target))
    assert name is not None
    if value is not None and value.type == "array":
        shell.assign(name[0], _array(shell, name[0], value, more=more))
        return name[0]
    text = single(value, shell) if value is not None else ""
    if name[0] in shell.whole:
        before = f"{shell.value(name[0]) or 0} + " if more else ""
        text, more = computed(f"{before}({text or 0})", shell), False
    if target.type == "subscript":
        _element(shell, name[0], target, text, more=more)
    elif more:
        shell.assign(name[0], _longer(shell, name[0], text))
    else:
        _scalar(shell, name[0], text)
    return name[0]


def _scalar(shell: Shell, name: str, text: str) -> None:
    before = shell.value(name) if name in shell.settled() else None
    if isinstance(before, dict):
        shell.assign(name, {**before, "0": text})
    else:
        shell.assign(name, text)


def _longer(shell: Shell, name: str, text: str) -> Value:
    """Value of a variable with more at its end; numbers of `declare -i` are not."""
    before = shell.value(name)
    if isinstance(before, dict):
        return {**before, "0": before.get("0", "") + text}
    return (before or "") + text


def _array(shell: Shell, name: str, node: Node, *, more: bool) -> Value:
    """Array of the words in brackets."""
    found: Array = {}
    if more:
        before = shell.array(name)
        if before is None:
            return shell.unsaid(f"${{{name}}}")
        found = dict(before)
    for each in node.named_children:
        if each.type == "comment":
            continue
        element = _ELEMENT.match(text_of(each))
        if element:
            key = _index(shell, name, element[1])
            rest = fields([each], shell)[0]
            found[key] = rest.partition("=")[2]
            continue
        for word in fields([each], shell):
            found[str(_next(found))] = word
    return found


def _next(array: Array) -> int:
    """Index behind the last one of an array."""
    return max((int(key) for key in array if key.isdigit()), default=-1) + 1


def _index(shell: Shell, name: str, source: str) -> str:
    if name in shell.maps:
        return source.strip("'\"")
    value = computed(source, shell)
    if not known(value):
        shell.refuse(f"{name}[{source}]", "has an index that no file sets")
    return value


def _element(shell: Shell, name: str, target: Node, text: str, *, more: bool) -> None:
    index = target.child_by_field_name("index")
    assert index is not None
    source = single(index, shell)
    if not known(source):
        shell.refuse(text_of(target), "has an index that no file sets")
    key = source if name in shell.maps else _index(shell, name, source)
    array = (shell.array(name) if name in shell.settled() else {}) or {}
    text = array.get(key, "") + text if more else text
    kept = {**array, key: text}
    if name not in shell.maps:
        kept = dict(sorted(kept.items(), key=lambda item: int(item[0])))
    shell.assign(name, kept)


def declare(shell: Shell, node: Node) -> None:
    """Run `declare`, `local`, `export`, `readonly` or `typeset`.

    Args:
        shell: State of the shell. [-]
        node: The declaration. [-]
    """
    kind = node.children[0].type
    flags, names = "", list[Node | str]()
    for child in node.named_children:
        if child.type in ("variable_assignment", "variable_name"):
            names.append(child)
            continue
        for word in fields([child], shell):
            if word.startswith("-") and not names:
                flags += word[1:]
            else:
                names.append(word)
    if "f" in flags or "p" in flags:
        return
    if "n" in flags and kind != "export":
        shell.refuse(text_of(node), "declares another name, which is not followed")
    for each in names:
        _declared(shell, kind, flags, each)


def _declared(shell: Shell, kind: str, flags: str, each: Node | str) -> None:
    source = each if isinstance(each, str) else text_of(each)
    match = re.match(r"\w+", source)
    if match is None:
        shell.refuse(source, "is no name of a variable that is followed")
    name = match[0]
    inside = len(shell.scopes) > 1
    own = kind == "local" or (kind in ("declare", "typeset") and "g" not in flags)
    if "A" in flags:
        shell.maps.add(name)
    value = _given(shell, name, each)
    if own and inside:
        shell.scopes[-1].setdefault(name, None)
    elif own and name not in shell.settled():
        shell.assign(name, None)
    if "i" in flags:
        shell.whole.add(name)
    if value is not None:
        whole = isinstance(value, str) and "i" in flags
        shell.assign(name, computed(str(value), shell) if whole else value)
    if kind == "readonly" or "r" in flags:
        shell.fixed.add(name)
    if kind == "export" or "x" in flags:
        shell.exported.add(name)


def _given(shell: Shell, name: str, each: Node | str) -> Value | None:
    """Value that a declaration assigns; None where it assigns none."""
    if isinstance(each, str):
        head, equals, value = each.partition("=")
        del head
        return value if equals else None
    if each.type != "variable_assignment":
        return None
    inner = shell.child()
    assign(inner, each)
    return inner.value(name)
