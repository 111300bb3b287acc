"""Builtin commands of bash by name, and those that change the course of a script."""

import re
from collections.abc import Callable, Sequence

from tree_sitter import Node

from planner.launch.shell.bash.arithmetic import computed
from planner.launch.shell.bash.assigning import element_key
from planner.launch.shell.bash.commands.options import set_, shopt, trap
from planner.launch.shell.bash.commands.texts import (
    cat,
    echo,
    mapfile,
    path,
    printf,
    read,
    seq,
    tee,
)
from planner.launch.shell.bash.conditions import test
from planner.launch.shell.bash.parse import text_of
from planner.launch.shell.bash.programs import begun, started
from planner.launch.shell.bash.state import (
    BreakError,
    ContinueError,
    ExitError,
    ReturnError,
    Shell,
)
from planner.launch.shell.values import HOST, known, plain

Words = Sequence[str]
ELSEWHERE = re.compile(
    r"(^|/)(activate|\.?bashrc|\.?bash_profile|\.?profile|conda\.sh|setvars\.sh"
    r"|modules?\.sh|lmod\.sh|bash|init\.sh|[\w.-]*setup-env\.sh|secrets?[\w.]*|\.env)$"
)
"""Files that make a machine's environment, and set no option of a run. [text]"""


def _nothing(shell: Shell, words: Words, node: Node) -> None:
    del shell, words, node


def _false(shell: Shell, words: Words, node: Node) -> None:
    del words, node
    shell.status = 1


def _exit(shell: Shell, words: Words, node: Node) -> None:
    shell.at(node)
    shell.record.ended = shell.place
    raise ExitError(_status(shell, words, node))


def _return(shell: Shell, words: Words, node: Node) -> None:
    raise ReturnError(_status(shell, words, node))


def _status(shell: Shell, words: Words, node: Node) -> int | None:
    if not words[1:]:
        return shell.status
    if re.fullmatch(r"-?\d+", words[1]):
        return int(words[1]) % 256
    shell.fail(node)
    return None


def _break(shell: Shell, words: Words, node: Node) -> None:
    del node
    raise BreakError(_count(shell, words))


def _continue(shell: Shell, words: Words, node: Node) -> None:
    del node
    raise ContinueError(_count(shell, words))


def _count(shell: Shell, words: Words) -> int:
    given = words[1] if len(words) > 1 else "1"
    if not given.isdigit():
        shell.refuse(words[0], "takes a number that no file sets")
    return int(given)


def _test(shell: Shell, words: Words, node: Node) -> None:
    del node
    shell.status = int(not test(words[1:], shell))


def _let(shell: Shell, words: Words, node: Node) -> None:
    value = "0"
    for word in words[1:]:
        value = computed(word, shell)
    if known(value):
        shell.status = int(value == "0")
    else:
        shell.fail(node)


def _shift(shell: Shell, words: Words, node: Node) -> None:
    del node
    count = _count(shell, words)
    if count <= len(shell.words):
        shell.words = shell.words[count:]
    else:
        shell.status = 1


def _getopts(shell: Shell, words: Words, node: Node) -> None:
    """Read an option of the script; there is none where it has no arguments."""
    given = words[3:] or shell.words
    name = words[2] if len(words) > 2 else ""
    if given or not (shell.bound or shell.record.arguments):
        shell.refuse(text_of(node), "reads options, which is not followed")
    shell.assign(name, "?")
    shell.assign("OPTIND", "1")
    shell.status = 1


def _unset(shell: Shell, words: Words, node: Node) -> None:
    flags = [word for word in words[1:] if word.startswith("-")]
    if set(flags) - {"-v", "-f"}:
        shell.refuse(text_of(node), "is an option that is not followed", "-v, -f")
    for name in words[1 + len(flags) :]:
        element = re.fullmatch(r"(\w+)\[(.+)\]", name)
        if "-f" in flags:
            shell.functions.pop(name, None)
        elif element:
            _unset_element(shell, element[1], element[2])
        elif known(name) and name not in shell.settled() and name in shell.functions:
            shell.functions.pop(name)
        elif known(name):
            shell.assign(name, None)
            for kind in (shell.exported, shell.maps, shell.whole):
                kind.discard(name)


def _unset_element(shell: Shell, name: str, source: str) -> None:
    key = element_key(shell, name, source)
    if name not in shell.settled():
        return
    if not isinstance(shell.value(name), dict):
        shell.assign(name, None)
        return
    array = dict(shell.array(name) or {})
    array.pop(key, None)
    shell.assign(name, array)


def _eval(shell: Shell, words: Words, node: Node) -> None:
    text = " ".join(words[1:])
    if not text.strip():
        shell.status = 0
    begun(shell, text, node)


def _source(shell: Shell, words: Words, node: Node) -> None:
    if len(words) < 2:
        shell.refuse(text_of(node), "names no file")
    name = plain(words[1]).rpartition("/")[2].rstrip('"}')
    text = shell.record.files.get(name)
    if text is None:
        if not ELSEWHERE.search(plain(words[1])) and words[1] != "/dev/null":
            shell.refuse(
                text_of(node), "reads a file that is not among those given", "the file"
            )
        shell.fail(node)
        return
    shell.record.used.add(name)
    before = shell.name, shell.start, shell.words, shell.bound
    shell.name, shell.start = name, 0
    if len(words) > 2:
        shell.words, shell.bound = list(words[2:]), True
    try:
        begun(shell, text)
    except ReturnError as ended:
        shell.status = ended.status
    finally:
        shell.name, shell.start = before[:2]
        if len(words) > 2:
            shell.words, shell.bound = before[2:]


def _exec(shell: Shell, words: Words, node: Node) -> None:
    rest = list(words[1:])
    while rest and rest[0] in ("-c", "-l"):
        rest.pop(0)
    if rest and rest[0] == "-a":
        rest = rest[2:]
    if rest:
        started(shell, rest, node, {})
        raise ExitError(shell.status)


def _hosts(shell: Shell, words: Words, node: Node) -> None:
    """Print the nodes of a job, whose number the head of its script says."""
    if list(words[1:2]) == ["show"] and words[2].startswith("hostname"):
        count = shell.record.hosts
        if shell.out is not None and count:
            hosts = (shell.unsaid(f"{HOST}{at})") for at in range(count))
            shell.out.append("".join(f"{host}\n" for host in hosts))
            return
    started(shell, words, node, {})


KEEPS = frozenset({"exit", "return", "eval", "source", "."})
"""Commands that see the status of the command before them. [text]"""
BUILTINS: dict[str, Callable[[Shell, Words, Node], None]] = {
    **dict.fromkeys((":", "true", "alias"), _nothing),
    "false": _false,
    "exit": _exit,
    "return": _return,
    "break": _break,
    "continue": _continue,
    "test": _test,
    "[": lambda shell, words, node: _test(shell, words[:-1], node),
    "let": _let,
    "set": set_,
    "shopt": shopt,
    "trap": trap,
    "getopts": _getopts,
    "shift": _shift,
    "unset": _unset,
    "eval": _eval,
    "source": _source,
    ".": _source,
    "exec": _exec,
    "echo": echo,
    "printf": printf,
    "read": read,
    "mapfile": mapfile,
    "readarray": mapfile,
    "cat": cat,
    "tee": tee,
    "basename": path,
    "dirname": path,
    "seq": seq,
    "scontrol": _hosts,
}
"""Commands that are followed, by name. [-]"""
