"""Parameter expansion of bash: `$X`, `${X:-d}`, `${X[i]}`, `${X%.*}` and the like."""

import re
from collections.abc import Sequence
from dataclasses import replace

from planner.launch.shell.bash.arithmetic import computed
from planner.launch.shell.bash.operators import (
    ALL,
    Asked,
    Operand,
    Part,
    Parts,
    changed,
    joined,
    refuse,
    sliced,
)
from planner.launch.shell.bash.state import FAILED, ExitError, Shell
from planner.launch.shell.values import PART, known, plain

_FORM = re.compile(
    r"\$(?P<plain>\w+|[@*#?$!_-])$"
    r"|\$\{(?P<length>\#)?(?P<through>!)?(?P<name>\w+|[@*#?$!-])"
    r"(?:\[(?P<index>(?:[^][]|\[[^]]*\])*)\])?"
    r"(?P<sign>:?[-=+?]|\#\#?|%%?|//?(?:(?<!//)[#%])?|\^\^?|,,?|:|@)?",
    re.DOTALL,
)
_ANEW = frozenset(
    {"$", "!", "-", "_", "BASHPID", "BASH_COMMAND", "BASH_LINENO", "BASH_SUBSHELL"}
    | {"DIRSTACK", "EPOCHREALTIME", "EPOCHSECONDS", "FUNCNAME", "LINENO", "PIPESTATUS"}
    | {"PPID", "RANDOM", "SECONDS", "SRANDOM"}
)
"""Variables that the shell sets anew, command by command. [text]"""
_SET = frozenset(
    {"BASH", "BASHOPTS", "BASH_VERSINFO", "BASH_VERSION", "EUID", "GROUPS", "HOSTNAME"}
    | {"HOSTTYPE", "MACHTYPE", "OLDPWD", "OSTYPE", "PWD", "SHELLOPTS", "SHLVL", "UID"}
)
"""Variables that the shell sets at its start, so that no default counts. [text]"""


def parameter(source: str, shell: Shell, operand: Operand, *, in_quotes: bool) -> Parts:
    """Parts that an expansion stands for.

    Returns:
        Parts; None between the elements of `"$@"`. [-]
    """
    form = _FORM.match(source)
    if form is None or not (
        form["plain"] or form["sign"] or form.end() == len(source) - 1
    ):
        refuse(source, shell)
    asked = Asked(source, form, shell, operand, in_quotes)
    if form["through"] and form["index"] in ALL:
        array = shell.counted(asked.name)
        keys = [shell.unsaid(source)] if array is None else list(array)
        return _several(asked, _in_order(asked, keys))
    if form["through"]:
        return _through(asked)
    if asked.name in ALL or asked.index in ALL:
        return _all(asked)
    value = _value(asked)
    if (
        value is None
        and "nounset" in shell.options
        and asked.sign[-1:] not in tuple("-=+?")
    ):
        raise ExitError(FAILED)
    if form["length"]:
        text = value or ""
        return asked.value(str(len(text)) if known(text) else asked.unsaid(text))
    return _signed(asked, value)


def _through(asked: Asked) -> Parts:
    """Value of the variable that another one names."""
    name = asked.shell.value(asked.name)
    if not isinstance(name, str) or not re.fullmatch(r"\w+", name):
        return asked.value(asked.unsaid(name if isinstance(name, str) else ""))
    source = f"${{{name}{asked.source[asked.form.end('name') :]}"
    return parameter(source, asked.shell, asked.operand, in_quotes=asked.in_quotes)


def _value(asked: Asked) -> str | None:
    """Value of a single variable, element or parameter; None where it is unset."""
    shell, name = asked.shell, asked.name
    if name in _ANEW:
        return shell.unsaid("$(...)")
    if asked.index is not None:
        return _element(asked)
    if name in shell.settled() or not (_special(shell, name) or name.isdigit()):
        value = shell.value(name)
        return value.get("0") if isinstance(value, dict) else value
    return _positional(shell, int(name)) if name.isdigit() else _special(shell, name)


def _special(shell: Shell, name: str) -> str | None:
    """Value of a parameter that the shell itself sets; None for another one."""
    if name == "#":
        return _count(shell)
    if name == "?":
        return _status(shell)
    return f"./{shell.name}" if name == "BASH_SOURCE" else None


def _status(shell: Shell) -> str:
    if shell.status in (None, FAILED):
        return shell.unsaid(
            f"$(status of {shell.doubt.source if shell.doubt else '?'})"
        )
    return str(shell.status)


def _count(shell: Shell) -> str:
    known_ones = shell.bound or shell.record.arguments
    return str(len(shell.words)) if known_ones else shell.unsaid("$(#)")


def _positional(shell: Shell, at: int) -> str | None:
    if at == 0:
        return shell.zero or f"./{shell.name}"
    if at <= len(shell.words):
        return shell.words[at - 1]
    return None if shell.bound else shell.unsaid(f"${{{at}}}")


def _element(asked: Asked) -> str | None:
    array = asked.shell.counted(asked.name)
    if array is None:
        return asked.shell.unsaid(f"${{{asked.name}}}")
    index = index_of(asked.name, asked.index or "0", asked)
    if not known(index):
        return index
    if index.startswith("-") and array and asked.name not in asked.shell.maps:
        index = str(max(map(int, array)) + 1 + int(index))
    return array.get(index)


def index_of(name: str, source: str, asked: Asked) -> str:
    """Index of an element: any text in a map, else arithmetic. [text]."""
    start = asked.form.start("index")
    text = joined(asked.operand(start, start + len(source), quoted=True))
    if name in asked.shell.maps:
        return text.strip("'\"")
    return computed(text, asked.shell)


def _all(asked: Asked) -> Parts:
    """Elements of an array, or the positional parameters."""
    shell, form = asked.shell, asked.form
    elements = _elements(asked)
    if elements is None:
        source = f"${{{asked.name}}}" if asked.index else "$(@)"
        unsaid = shell.unsaid(source if not form["length"] else f"${{#{asked.name}}}")
        return [Part(unsaid, split=True)]
    if form["length"]:
        return asked.value(str(len(elements)))
    sign = asked.sign
    if sign in (":-", "-", ":+", "+", ":=", "=", ":?", "?"):
        empty = not elements or (sign[0] == ":" and not any(elements))
        if (sign[-1] == "+") == (not empty) or (empty and sign[-1] != "+"):
            return _default(asked)
        return _several(asked, elements)
    if sign == ":":
        array = shell.array(asked.name) if asked.index else None
        places = [int(key) for key in array or {} if key.isdigit()]
        if asked.name in shell.maps:
            refuse(asked.source, shell)
        return _several(asked, sliced(asked, elements, places))
    if sign:
        elements = [changed(asked, each) for each in elements]
    return _several(asked, elements)


def _elements(asked: Asked) -> list[str] | None:
    shell = asked.shell
    if asked.index is not None:
        whole = not (asked.form["length"] or asked.sign == ":")
        get = shell.array if whole else shell.counted
        array = None if asked.name in _ANEW else get(asked.name)
        return None if array is None else _in_order(asked, list(array.values()))
    if not shell.bound and not shell.record.arguments:
        return None
    return list(shell.words)


def _in_order(asked: Asked, its: list[str]) -> list[str]:
    """Keys or values of an array; those of a map stand in an order of bash's own."""
    if asked.name not in asked.shell.maps or len(its) < 2:
        return its
    kind = "key" if asked.form["through"] else "value"
    each = (f"$({kind} {at} of {asked.name})" for at in range(len(its)))
    return [asked.shell.unsaid(source) for source in each]


def _several(asked: Asked, elements: Sequence[str]) -> Parts:
    star = (asked.index or asked.name) == "*"
    if star and asked.in_quotes:
        shell = asked.shell
        given = shell.value("IFS") if "IFS" in shell.settled() else " "
        between = given[:1] if isinstance(given, str) else " "
        return [Part(between.join(elements), quoted=True)]
    found: Parts = []
    for element in elements:
        found += [None] if found else []
        found += asked.value(element)
    return found


def _signed(asked: Asked, value: str | None) -> Parts:
    sign = asked.sign
    if not sign:
        return asked.value(value or "")
    if sign[-1] in "-=+?" and sign not in ("//", "/"):
        return _default_or(asked, value)
    text = value or ""
    if sign == ":":
        its = sliced(asked, list(text)) if known(text) else None
        return asked.value(asked.unsaid(text) if its is None else "".join(its))
    return asked.value(changed(asked, text))


def _default_or(asked: Asked, value: str | None) -> Parts:
    """Value of `${X:-d}` and its kin; an unset variable takes the default.

    What nobody has set has the default that the script gives it; whether it is set
    at all is asked for by `+`.
    """
    sign, shell = asked.sign, asked.shell
    there = _is_there(asked, value)
    if sign[-1] == "+":
        if there is None:
            source = asked.unsaid(value or "")
            there = shell.choose(plain(source))
        return _default(asked) if there else asked.value("")
    if there or (there is None and value and not _nobody(asked, value)):
        return asked.value(value or "")
    if sign[-1] == "?":
        if there is False:
            raise ExitError(FAILED)
        return asked.value(value or "")
    found = _default(asked)
    if there is None and value and not joined(found):
        shell.record.blanks.setdefault(asked.name)
        if asked.name in shell.record.open:
            return asked.value(value)
    if sign[-1] == "=":
        if asked.index is not None or asked.name.isdigit():
            refuse(asked.source, shell)
        shell.assign(asked.name, joined(found))
    return found


def _nobody(asked: Asked, value: str) -> bool:
    """Tell if a value is that of the variable itself, which nobody sets."""
    part = PART.fullmatch(value)
    own = part is not None and part[1] == f"${{{asked.name}}}"
    return own and asked.name not in _SET


def _is_there(asked: Asked, value: str | None) -> bool | None:
    """Tell if a variable is set, and not empty with a colon; None where unknown."""
    if value is None:
        return False
    if asked.sign[0] != ":":
        return None if _nobody(asked, value) else True
    rest = PART.sub("", value)
    return bool(rest) if known(value) or rest else None


def _default(asked: Asked) -> Parts:
    """Words behind `:-` or `:+`, which are split where nothing quotes them."""
    found = asked.rest(quoted=asked.in_quotes)
    if asked.in_quotes:
        return found or [Part("", quoted=True)]
    return [p and replace(p, split=not p.quoted) for p in found]
