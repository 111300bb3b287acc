"""Assignments of bash: scalars, arrays, elements, and declarations."""

import re

from tree_sitter import Node

from planner.launch.shell.bash.arithmetic import computed
from planner.launch.shell.bash.parse import text_of
from planner.launch.shell.bash.state import Array, Shell, Value
from planner.launch.shell.bash.words import fields, single
from planner.launch.shell.values import known, loose, plain

_ELEMENT = re.compile(r"\[([^]]*)\](\+?)=(.*)", re.DOTALL)
_FLAGS = frozenset("aAfgiprtx")
"""Options of declarations that are followed. [text]"""


def assign(shell: Shell, node: Node) -> str:
    """Assign to a variable, an array or an element."""
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


def _array(shell: Shell, name: str, node: Node, *, more: bool) -> Array:
    """Array of the words in brackets."""
    found: Array = {}
    if more:
        before = shell.array(name)
        if before is None:
            return {"0": loose(shell.unsaid(f"${{{name}}}"))}
        found = dict(before)
    at = _next(found)
    for each in node.named_children:
        if each.type == "comment":
            continue
        own = text_of(each).startswith("[")
        element = _ELEMENT.fullmatch(single(each, shell)) if own else None
        if element is None and name in shell.maps:
            shell.refuse(text_of(each), "is an element of a map without [...]=")
        if element:
            key = _key(shell, name, element[1])
            found[key] = (found.get(key, "") if element[2] else "") + element[3]
            at = int(key) + 1 if name not in shell.maps else 0
            continue
        for word in fields([each], shell):
            found[str(at)] = word
            at += 1
    return _ordered(shell, name, found)


def _next(array: Array) -> int:
    """Index behind the last one of an array."""
    return max((int(key) for key in array if key.isdigit()), default=-1) + 1


def _ordered(shell: Shell, name: str, array: Array) -> Array:
    """Elements in the order of their indices; those of a map have none."""
    if name in shell.maps:
        return array
    return dict(sorted(array.items(), key=lambda item: int(item[0])))


def element_key(shell: Shell, name: str, source: str) -> str:
    """Index that an element has: any text in a map, else a whole number."""
    if name in shell.maps:
        return source.strip("'\"")
    value = computed(source, shell)
    if value.startswith("-"):
        array = (shell.array(name) if name in shell.settled() else {}) or {}
        value = str(_next(array) + int(value))
    if not value.isdigit():
        shell.refuse(f"{name}[{plain(source)}]", "has an index that no file sets")
    return value


def _key(shell: Shell, name: str, source: str) -> str:
    if not known(source):
        shell.refuse(f"{name}[{plain(source)}]", "has an index that no file sets")
    return element_key(shell, name, source)


def _element(shell: Shell, name: str, target: Node, text: str, *, more: bool) -> None:
    index = target.child_by_field_name("index")
    assert index is not None
    key = _key(shell, name, single(index, shell))
    array = (shell.array(name) if name in shell.settled() else {}) or {}
    text = array.get(key, "") + text if more else text
    shell.assign(name, _ordered(shell, name, {**array, key: text}))


def declare(shell: Shell, node: Node) -> None:
    """Run `declare`, `local`, `export`, `readonly` or `typeset`."""
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
    if set(flags) - _FLAGS - ({"n"} if kind == "export" else set()):
        shell.refuse(text_of(node), "has an option that is not followed")
    if "p" in flags and shell.out is not None:
        shell.out.append(shell.unsaid(f"$({text_of(node)})"))
    if "f" in flags and kind == "export":
        shell.exported |= {
            f"{each if isinstance(each, str) else text_of(each)}()" for each in names
        }
    if "f" in flags or "p" in flags:
        return
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
    if kind == "export" and "n" in flags:
        shell.exported.discard(name)
    elif kind == "export" or "x" in flags:
        shell.exported.add(name)


def _given(shell: Shell, name: str, each: Node | str) -> Value | None:
    """Value that a declaration assigns; None where it assigns none."""
    if isinstance(each, str):
        head, equals, value = each.partition("=")
        del head
        return value if equals else None
    if each.type != "variable_assignment":
        return None
    its = shell.value(name)
    shell.scopes.append({name: dict(its) if isinstance(its, dict) else its})
    try:
        assign(shell, each)
        return shell.value(name)
    finally:
        shell.scopes.pop()
