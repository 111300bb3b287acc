"""Options of a shell: the words of `set`, `shopt` and `trap` that are followed."""

import re
from collections.abc import Sequence

from tree_sitter import Node

from planner.launch.shell.bash.state import Shell

Words = Sequence[str]
LETTERS = {
    "a": "allexport",
    "B": "braceexpand",
    "b": "notify",
    "E": "errtrace",
    "e": "errexit",
    "f": "noglob",
    "H": "histexpand",
    "h": "hashall",
    "m": "monitor",
    "P": "physical",
    "T": "functrace",
    "u": "nounset",
    "v": "verbose",
    "x": "xtrace",
}
"""Options of `set` that are followed, or that change no word of a command. [text]"""
_NAMES = frozenset({*LETTERS.values(), "pipefail", "emacs", "vi", "history"})
_PASSED = frozenset(
    {
        "autocd",
        "cdspell",
        "checkjobs",
        "checkwinsize",
        "cmdhist",
        "dirspell",
        "dotglob",
        "extglob",
        "globstar",
        "histappend",
        "huponexit",
        "inherit_errexit",
        "lithist",
        "nocaseglob",
        "progcomp",
        "promptvars",
    }
)
"""Words of `shopt` that are followed, or that change no word of a command. [text]"""
_OFF = frozenset({"expand_aliases", "failglob", "lastpipe", "nocasematch", "nullglob"})
"""Words of `shopt` that are off in a script from its start. [text]"""
_HANDLED = re.compile(r"\bexit\b|(?<![=<>!])=(?!=)|\+\+|--(?!\w)|\b(read|unset|eval)\b")


def switch(shell: Shell, name: str, *, on: bool) -> None:
    """Set an option of `set -o`.

    Args:
        shell: State of the shell. [-]
        name: Name of the option. [text]
        on: False to unset it. [-]
    """
    if name not in _NAMES or (name == "braceexpand" and not on):
        _refuse(shell, f"set {'-' if on else '+'}o {name}", _NAMES)
    (shell.options.add if on else shell.options.discard)(name)


def _refuse(shell: Shell, what: str, allowed: frozenset[str]) -> None:
    why = "changes what a script does, which is not followed"
    shell.refuse(what, why, ", ".join(sorted(allowed)))


def switched(shell: Shell, words: Words) -> list[str]:
    """Set the options at the start of the words of `set` or `bash`."""
    left = list(words)
    while left and re.match(r"[-+]\w", left[0]):
        flags = left.pop(0)
        for letter in flags[1:]:
            if letter == "o" and not left:
                continue
            name = left.pop(0) if letter == "o" else LETTERS.get(letter, letter)
            switch(shell, name, on=flags[0] == "-")
    return left


def set_(shell: Shell, words: Words, node: Node) -> None:
    """Run `set`: options, and positional parameters."""
    del node
    left = switched(shell, words[1:])
    if left and left[0] in ("--", "-"):
        left = left[1:] or ([] if left[0] == "--" else list(shell.words))
    elif not left:
        return
    shell.words, shell.bound = left, True


def shopt(shell: Shell, words: Words, node: Node) -> None:
    """Run `shopt`; a word that changes what the script does is refused."""
    flags = "".join(word[1:] for word in words[1:] if word.startswith("-"))
    if not {"s", "u"} & set(flags):
        shell.fail(node)
        return
    on = "s" in flags
    for name in (word for word in words[1:] if not word.startswith("-")):
        if "o" in flags:
            switch(shell, name, on=on)
        elif name not in (_PASSED if on else _PASSED | _OFF):
            _refuse(shell, f"shopt -{'s' if on else 'u'} {name}", _PASSED)
        elif name == "inherit_errexit":
            (shell.options.add if on else shell.options.discard)(name)


def trap(shell: Shell, words: Words, node: Node) -> None:
    """Run `trap`: what runs at the end is kept, what runs amid commands is refused."""
    del node
    left = list(words[1:])
    if left[:1] == ["--"]:
        left.pop(0)
    if len(left) < 2 or left[0] in ("-l", "-p"):
        return
    action, signals = left[0], {word.upper().removeprefix("SIG") for word in left[1:]}
    if signals & {"EXIT", "0"}:
        shell.ending = "" if action == "-" else action
    amid = signals & {"DEBUG", "RETURN", "ERR"} and action not in ("-", "")
    stops = signals <= {"ERR", "EXIT", "INT", "TERM"} and "errexit" in shell.options
    called = shell.functions.keys() & set(re.findall(r"[\w-]+", action))
    if amid and not stops and (called or _HANDLED.search(action)):
        shell.refuse(
            f"trap {' '.join(left[1:])}", "runs amid commands, which is not followed"
        )
