"""Builtins and small programs that print or read text."""

import posixpath
import re
from collections.abc import Sequence

from tree_sitter import Node

from planner.launch.shell.bash.escapes import decoded
from planner.launch.shell.bash.parse import text_of
from planner.launch.shell.bash.programs import started
from planner.launch.shell.bash.state import Shell
from planner.launch.shell.bash.words import cut, separators
from planner.launch.shell.values import known, plain

Words = Sequence[str]


def echo(shell: Shell, words: Words, node: Node) -> None:
    """Print words; escapes count with -e alone."""
    del node
    rest, flags = list(words[1:]), ""
    while rest and re.fullmatch(r"-[neE]+", rest[0]):
        flags += rest.pop(0)[1:]
    text = " ".join(rest) + ("" if "n" in flags else "\n")
    if shell.out is not None:
        escaped = flags.rfind("e") > flags.rfind("E")
        shell.out.append(_decoded(text, shell) if escaped else text)


def _decoded(text: str, shell: Shell) -> str:
    """Text of `echo -e`, whose octal numbers begin with a zero."""
    if re.search(r"(?<!\\)(?:\\\\)*\\[c0-9]", text):
        return shell.unsaid("$(echo -e)")
    return decoded(text)


def printf(shell: Shell, words: Words, node: Node) -> None:
    """Print words in a format; the output is unknown with more than %s and %d."""
    del node
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


def _formatted(words: Words) -> str | None:
    """Output of printf; None where its format has more than %s, %d and escapes."""
    if not words or re.search(r"%(?![sd])|\\[^nt\\]", words[0]):
        return None
    kinds = re.findall(r"%([sd])", words[0])
    rest, found = list(words[1:]), ""
    while True:
        taken = [*rest[: len(kinds)], *[""] * (len(kinds) - len(rest))]
        whole = (w for w, kind in zip(taken, kinds, strict=True) if kind == "d")
        if not all(re.fullmatch(r"-?[1-9]\d*|0", word) for word in whole):
            return None
        pieces = iter(taken)
        parts = re.split("(%[sd])", words[0])
        found += "".join(
            next(pieces) if part in ("%s", "%d") else decoded(part) for part in parts
        )
        rest = rest[len(kinds) :]
        if not rest or not kinds:
            return found


def read(shell: Shell, words: Words, node: Node) -> None:
    """Read a line into variables; unknown where the input or an option is."""
    flags, names = _names(words)
    if shell.lines is None or set(flags) - set("rase"):
        for name in names or ["REPLY"]:
            shell.assign(name, shell.unsaid("$(read)"))
        shell.fail(node)
        return
    shell.status = int(not shell.lines)
    line = shell.lines.pop(0) if shell.lines else ""
    if "\\" in line and "r" not in flags:
        shell.refuse(text_of(node), "reads backslashes, which is not followed", "-r")
    by = separators(shell)
    if "a" in flags and names:
        shell.assign(names[0], {str(i): w for i, w in enumerate(cut(line, by))})
        return
    if not names:
        shell.assign("REPLY", line)
        return
    for name, piece in zip(names, _pieces(line, by, len(names)), strict=True):
        shell.assign(name, piece)


def _pieces(line: str, by: str, count: int) -> list[str]:
    """Words of a line for so many variables; the last one takes the rest."""
    blank = "".join(c for c in by if c in " \t\n")
    found, left = list[str](), line.lstrip(blank) if blank else line
    for _ in range(count - 1):
        end = next((i for i, c in enumerate(left) if c in by), len(left))
        found.append(left[:end])
        left = left[end:].lstrip(blank) if blank else left[end:]
        if left[:1] and left[0] in by:
            left = left[1:].lstrip(blank) if blank else left[1:]
    left = left.rstrip(blank) if blank else left
    only = cut(left, by)
    return [*found, only[0] if len(only) == 1 else left]


def _names(words: Words) -> tuple[str, list[str]]:
    """Flags and variables of `read`."""
    flags, names, rest = "", list[str](), list(words[1:])
    while rest:
        word = rest.pop(0)
        if word.startswith("-"):
            taking = re.match(r"-([^adinNptu]*)([adinNptu])?(.*)", word)
            assert taking is not None
            flags += taking[1].replace("p", "") + (taking[2] or "").replace("p", "")
            if taking[2] == "a":
                names.append(taking[3] or (rest.pop(0) if rest else ""))
            elif taking[2] and not taking[3] and rest:
                rest.pop(0)
        else:
            names.append(word)
    return flags, names


def mapfile(shell: Shell, words: Words, node: Node) -> None:
    """Read lines into an array; unknown where the input is, or lines keep their end."""
    del node
    names = [word for word in words[1:] if not word.startswith("-")]
    flags = [word for word in words[1:] if word.startswith("-")]
    name, lines = (names or ["MAPFILE"])[-1], shell.lines
    if lines is None or flags != ["-t"]:
        shell.forget(name)
        return
    kept = [] if lines == [""] else lines
    shell.assign(name, {str(at): line for at, line in enumerate(kept)})


def cat(shell: Shell, words: Words, node: Node) -> None:
    """Copy what is read to the output, which may be a file of the run."""
    names = [word.rpartition("/")[2] for word in words[1:] if word != "-"]
    texts = [shell.record.files.get(name) for name in names]
    if not names and shell.lines is not None:
        texts = ["\n".join(shell.lines) + "\n"]
    elif not names and shell.script:
        texts = [shell.script]
    text = "".join(text for text in texts if text is not None)
    if None in texts or not texts:
        _unknown(shell, words, node)
    elif shell.out is not None:
        shell.out.append(text)


def _unknown(shell: Shell, words: Words, node: Node) -> None:
    """Leave status and output of a command open."""
    shell.fail(node)
    if shell.out is not None:
        shell.out.append(shell.unsaid(f"$({' '.join(map(plain, words))})"))


def tee(shell: Shell, words: Words, node: Node) -> None:
    """Copy what is read to files and to the output."""
    names = [word for word in words[1:] if not word.startswith("-")]
    if shell.lines is None:
        _unknown(shell, words, node)
        return
    text, files = "\n".join(shell.lines) + "\n", shell.record.files
    for name in (name.rpartition("/")[2] for name in filter(known, names)):
        files[name] = (files.get(name, "") if "-a" in words else "") + text
    if shell.out is not None:
        shell.out.append(text)


def path(shell: Shell, words: Words, node: Node) -> None:
    """Print the folder or the last part of a path."""
    its, folder = list(words[1:]), words[0] == "dirname"
    most = 1 if folder else 2
    if not known(*words) or not 0 < len(its) <= most or its[0].startswith("-"):
        _unknown(shell, words, node)
        return
    bare = its[0].rstrip("/") or its[0][:1]
    if folder:
        text = posixpath.dirname(bare).rstrip("/") or ("/" if bare[:1] == "/" else ".")
    else:
        text = posixpath.basename(bare) or bare
        rest = text.removesuffix(its[1]) if len(its) > 1 else text
        text = rest or text
    if shell.out is not None:
        shell.out.append(text + "\n")


def seq(shell: Shell, words: Words, node: Node) -> None:
    """Print numbers of a range."""
    if not all(re.fullmatch(r"-?\d{1,6}", word) for word in words[1:]):
        started(shell, words, node, {})
        return
    if not 2 <= len(words) <= 4:
        _unknown(shell, words, node)
        return
    numbers = [int(word) for word in words[1:]]
    first = numbers[0] if len(numbers) > 1 else 1
    step = numbers[1] if numbers[2:] else 1
    end = numbers[-1] + (1 if step > 0 else -1)
    if shell.out is not None and step:
        shell.out.append("".join(f"{n}\n" for n in range(first, end, step)))
