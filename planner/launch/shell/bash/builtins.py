"""Builtin commands of bash that change variables or the course of a script."""

import re
from collections.abc import Callable, Sequence

from tree_sitter import Node

from planner.launch.shell.bash.arithmetic import computed
from planner.launch.shell.bash.conditions import test
from planner.launch.shell.bash.flow import (
    BreakError,
    ContinueError,
    ExitError,
    ReturnError,
)
from planner.launch.shell.bash.parse import text_of
from planner.launch.shell.bash.programs import begun, started
from planner.launch.shell.bash.state import Shell
from planner.launch.shell.values import known, plain

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
    del node
    raise ExitError(_status(shell, words))


def _return(shell: Shell, words: Words, node: Node) -> None:
    del node
    raise ReturnError(_status(shell, words))


def _status(shell: Shell, words: Words) -> int | None:
    given = words[1] if len(words) > 1 else ""
    return int(given) % 256 if given.isdigit() else shell.status


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


def _set(shell: Shell, words: Words, node: Node) -> None:
    del node
    left = list(words[1:])
    while left and re.match(r"[-+]\w", left[0]):
        flags = left.pop(0)
        names = list(flags[1:].replace("o", ""))
        if "o" in flags and left:
            names.append({"errexit": "e", "nounset": "u"}.get(left[0], left.pop(0)))
        its = shell.options
        shell.options = its | set(names) if flags[0] == "-" else its - set(names)
    if left and left[0] in ("--", "-"):
        left = left[1:] or ([] if left[0] == "--" else list(shell.words))
        shell.words, shell.bound = left, True
    elif left:
        shell.words, shell.bound = left, True


def _shift(shell: Shell, words: Words, node: Node) -> None:
    del node
    count = _count(shell, words)
    if count <= len(shell.words):
        shell.words = shell.words[count:]
    else:
        shell.status = 1


def _unset(shell: Shell, words: Words, node: Node) -> None:
    del node
    names = [word for word in words[1:] if not word.startswith("-")]
    for name in names:
        element = re.fullmatch(r"(\w+)\[(.+)\]", name)
        if "-f" in words:
            shell.functions.pop(name, None)
        elif element:
            array = dict(shell.array(element[1]) or {})
            array.pop(element[2].strip("'\""), None)
            shell.assign(element[1], array)
        elif known(name):
            shell.assign(name, None)


def _eval(shell: Shell, words: Words, node: Node) -> None:
    text = " ".join(words[1:])
    if not known(text):
        # What is unknown stays so: it is read again as a script writes it.
        text = plain(text)
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


def _echo(shell: Shell, words: Words, node: Node) -> None:
    del node
    if shell.out is None:
        return
    rest = list(words[1:])
    end = "\n"
    while rest and re.fullmatch(r"-[neE]+", rest[0]):
        end = "" if "n" in rest.pop(0) else end
    shell.out.append(" ".join(rest) + end)


def _printf(shell: Shell, words: Words, node: Node) -> None:
    rest = list(words[1:])
    target = ""
    if rest[:1] == ["-v"]:
        target, rest = rest[1], rest[2:]
    rest = rest[1:] if rest[:1] == ["--"] else rest
    text = _formatted(rest)
    if text is None:
        text = shell.unsaid("$(printf)")
    if target:
        shell.assign(target, text)
    elif shell.out is not None:
        shell.out.append(text)
    del node


def _formatted(words: Words) -> str | None:
    """Output of printf; None where its format has more than %s, %d and escapes."""
    if not words or re.search(r"%(?![sd])", words[0]):
        return None
    form = words[0].replace("\\n", "\n").replace("\\t", "\t")
    slots = len(re.findall(r"%[sd]", form))
    rest, found = list(words[1:]), ""
    while True:
        taken = [*rest[:slots], *[""] * (slots - len(rest[:slots]))]
        found += re.sub("%[sd]", "{}", _escaped(form)).format(*taken)
        rest = rest[slots:]
        if not rest or not slots:
            return found


def _escaped(form: str) -> str:
    """Format of printf whose braces stand for themselves."""
    return form.replace("{", "{{").replace("}", "}}")


def _read(shell: Shell, words: Words, node: Node) -> None:
    flags, names = _names(words)
    if shell.lines is None or "d" in flags:
        for name in names or ["REPLY"]:
            shell.assign(name, shell.unsaid("$(read)"))
        shell.fail(node)
        return
    if not shell.lines:
        for name in names:
            shell.assign(name, "")
        shell.status = 1
        return
    line = shell.lines.pop(0)
    given = shell.value("IFS") if "IFS" in shell.settled() else None
    separators = given if isinstance(given, str) else ""
    if "a" in flags and names:
        words_of_line = _split(line, separators, -1)
        shell.assign(names[0], {str(i): w for i, w in enumerate(words_of_line)})
        return
    pieces = _split(line, separators, max(len(names) - 1, 0))
    for at, name in enumerate(names or ["REPLY"]):
        shell.assign(name, pieces[at].strip() if at < len(pieces) else "")


def _split(line: str, separators: str, most: int) -> list[str]:
    """Fields of a line, at most so many splits; -1 for all."""
    if not separators.strip():
        return line.split(None, most)
    if most == 0:
        return [line]
    every = re.split(f"[{re.escape(separators)}]", line, maxsplit=max(most, 0))
    return every[:-1] if every[-1] == "" else every


def _names(words: Words) -> tuple[str, list[str]]:
    """Flags and variables of `read`."""
    flags, names, rest = "", list[str](), list(words[1:])
    while rest:
        word = rest.pop(0)
        if word.startswith("-"):
            flags += word[1:]
            if word[-1] in "dnNptu" and rest:
                rest.pop(0)
        else:
            names.append(word)
    return flags, names


def _mapfile(shell: Shell, words: Words, node: Node) -> None:
    del node
    name = words[-1] if len(words) > 1 and not words[-1].startswith("-") else "MAPFILE"
    lines = shell.lines
    if lines is None:
        shell.assign(name, shell.unsaid("$(mapfile)"))
        shell.scopes[0].pop(name, None)
        return
    kept = [] if lines == [""] else lines
    shell.assign(name, {str(at): line for at, line in enumerate(kept)})


def _cat(shell: Shell, words: Words, node: Node) -> None:
    """Copy what is read to the output, which may be a file of the run."""
    names = [word.rpartition("/")[2] for word in words[1:] if word != "-"]
    texts = [shell.record.files.get(name) for name in names]
    if not names and shell.lines is not None:
        texts = ["\n".join(shell.lines) + "\n"]
    text = "".join(text for text in texts if text is not None)
    if None in texts or not texts:
        shell.fail(node)
        text = shell.unsaid(f"$({' '.join(map(plain, words))})")
    if shell.out is not None:
        shell.out.append(text)


def _tee(shell: Shell, words: Words, node: Node) -> None:
    names = [word for word in words[1:] if not word.startswith("-")]
    if shell.lines is None:
        shell.fail(node)
        return
    for name in filter(known, names):
        shell.record.files[name.rpartition("/")[2]] = "\n".join(shell.lines) + "\n"


def _path(shell: Shell, words: Words, node: Node) -> None:
    """Print the folder or the last part of a path."""
    text = words[1] if len(words) > 1 else ""
    if not known(*words) or len(words) > 3:
        shell.fail(node)
        text = shell.unsaid(f"$({' '.join(map(plain, words))})")
    elif words[0] == "basename":
        text = text.rstrip("/").rpartition("/")[2]
        text = text.removesuffix(words[2]) if len(words) > 2 else text
    else:
        text = text.rpartition("/")[0] or "."
    if shell.out is not None:
        shell.out.append(text + "\n")


def _seq(shell: Shell, words: Words, node: Node) -> None:
    if not all(re.fullmatch(r"-?\d{1,6}", word) for word in words[1:]):
        started(shell, words, node, {})
        return
    numbers = [int(word) for word in words[1:]]
    first, step, last = {1: (1, 1, numbers[-1]), 2: (numbers[0], 1, numbers[-1])}.get(
        len(numbers), (numbers[0], numbers[len(numbers) // 2], numbers[-1])
    )
    end = last + (1 if step > 0 else -1)
    if shell.out is not None and step:
        shell.out.append("".join(f"{n}\n" for n in range(first, end, step)))


def _hosts(shell: Shell, words: Words, node: Node) -> None:
    """Print the nodes of a job, whose number the head of its script says."""
    if list(words[1:2]) == ["show"] and words[2].startswith("hostname"):
        count = shell.record.hosts
        if shell.out is not None and count:
            hosts = (shell.unsaid(f"$(host {at})") for at in range(count))
            shell.out.append("".join(f"{host}\n" for host in hosts))
            return
    started(shell, words, node, {})


BUILTINS: dict[str, Callable[[Shell, Words, Node], None]] = {
    **dict.fromkeys(
        (":", "true", "wait", "trap", "shopt", "ulimit", "umask", "hash", "alias"),
        _nothing,
    ),
    "false": _false,
    "exit": _exit,
    "return": _return,
    "break": _break,
    "continue": _continue,
    "test": _test,
    "[": lambda shell, words, node: _test(shell, words[:-1], node),
    "let": _let,
    "set": _set,
    "shift": _shift,
    "unset": _unset,
    "eval": _eval,
    "source": _source,
    ".": _source,
    "exec": _exec,
    "echo": _echo,
    "printf": _printf,
    "read": _read,
    "mapfile": _mapfile,
    "readarray": _mapfile,
    "cat": _cat,
    "tee": _tee,
    "basename": _path,
    "dirname": _path,
    "seq": _seq,
    "scontrol": _hosts,
}
"""Commands that are followed, by name. [-]"""
