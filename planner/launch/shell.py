"""Reads launch scripts without running them: variables, arrays, words of a command."""

import ast
import operator
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NoReturn

from planner.errors import BadInputError

_ASSIGNED = re.compile(
    r"^\s*(?:export\s+|declare\s+-[aA]\s+|local\s+)?([A-Za-z_]\w*)(\+?)=(.*)$",
    re.DOTALL,
)
_DEFAULTED = re.compile(r'^\s*:\s+"?\$\{(\w+):?=([^}]*)\}"?')
_USED = re.compile(r"\$\{(\w+)(?:\[[@*]\])?(?::?-([^}]*))?\}|\$(\w+)")
_SUM = re.compile(r"\$\(\(([^()]*)\)\)")
_TERMS = re.compile(r"\d{1,9}(?:[-+*/%]\d{1,9}){0,8}")
"""Arithmetic that is evaluated: a few plain numbers. [text]"""
DEPTH = 8
"""Levels of variables within variables that are followed. [1]"""
MOST = 1 << 14
"""Most variables that are filled in; a real script has some hundred. [1]"""


class Script:
    """Settings of a bash script: variables, arrays and commands.

    Assignments are kept in order, and the last assignment of a variable wins.
    Conditions and loops are not evaluated: both branches of a condition count as run.
    """

    def __init__(self, text: str) -> None:
        self.scalars: dict[str, str] = {}
        self.arrays: dict[str, list[str]] = {}
        self.lines: list[str] = []
        self.left = MOST
        for line in logical_lines(text):
            self._read(line)

    def _read(self, line: str) -> None:
        default = _DEFAULTED.match(line)
        if default:
            self.scalars.setdefault(default.group(1), default.group(2))
            return
        assigned = _ASSIGNED.match(line)
        if assigned is None:
            self.lines.append(line)
            return
        name, more, value = assigned.groups()
        if value.startswith("("):
            words = split(value.strip().removeprefix("(").removesuffix(")"))
            self.arrays[name] = [*(self.arrays.get(name, []) if more else []), *words]
            return
        words = split(self._without_itself(name, value))
        # NAME=value command ...: the variable is the command's.
        self.scalars[name] = (self.scalars.get(name, "") if more else "") + (
            words[0] if words else ""
        )
        if len(words) > 1:
            self.lines.append(shlex.join(words[1:]))

    def _without_itself(self, name: str, value: str) -> str:
        """Fill the earlier value of a variable into the variable's new value."""

        def before(match: re.Match[str]) -> str:
            if (match.group(1) or match.group(3)) != name:
                return match.group(0)
            return self.scalars.get(name) or match.group(2) or match.group(0)

        return _USED.sub(before, value)

    def words(self) -> list[str]:
        """Every word of every command and array, variables filled in.

        Returns:
            Words; an unknown variable keeps its dollar sign. [text]
        """
        found = [word for line in self.lines for word in split(line)]
        used: set[str] = set()
        for word in found:
            self._use(word, used)
        loose = [a for name, a in self.arrays.items() if name not in used]
        every = [*found, *(word for array in loose for word in array)]
        return [filled for word in every for filled in self._filled(word, DEPTH)]

    def _use(self, word: str, used: set[str]) -> None:
        """Add the variables of a word, and of the arrays among them, each once."""
        waiting = [word]
        while waiting:
            for match in _USED.finditer(waiting.pop()):
                name = match.group(1) or match.group(3)
                if name not in used:
                    used.add(name)
                    waiting += self.arrays.get(name, [])

    def _filled(self, word: str, depth: int) -> list[str]:
        """Fill in the variables of a word; a variable alone may give several words."""
        alone = _USED.fullmatch(word)
        if depth and alone:
            name = alone.group(1) or alone.group(3)
            self._count(word)
            if name in self.arrays:
                return [
                    w for v in self.arrays[name] for w in self._filled(v, depth - 1)
                ]
            value = self.scalars.get(name, alone.group(2))
            if value is not None and value != word:
                inner = split(value)
                return [w for v in inner for w in self._filled(v, depth - 1)]
            return [word]
        return [self._inside(word, depth)]

    def _count(self, text: str) -> None:
        """Refuse variables that fill each other without end."""
        self.left -= 1 + len(text) // 64
        if self.left < 0:
            raise BadInputError(
                f"shell variables fill each other in more than {MOST:,} times"
            )

    def _inside(self, word: str, depth: int) -> str:
        return _SUM.sub(self._computed, self._replaced(word, depth))

    def _computed(self, match: re.Match[str]) -> str:
        """Value of `$((...))` where all variables in it are whole numbers."""

        def number(name: re.Match[str]) -> str:
            return self._replaced(f"${name.group(0)}", DEPTH)

        plain = re.sub(r"[A-Za-z_]\w*", number, match.group(1))
        value = _arithmetic(plain)
        return match.group(0) if value is None else str(value)

    def _replaced(self, word: str, depth: int) -> str:
        def value(match: re.Match[str]) -> str:
            name = match.group(1) or match.group(3)
            found = self.scalars.get(name, match.group(2))
            if found is None or found == word:
                return match.group(0)
            self._count(found)
            return self._replaced(found, depth - 1) if depth else found

        return _USED.sub(value, word)


def logical_lines(text: str) -> Iterator[str]:
    """Lines of a script: continued ones joined, comments gone, arrays on one line.

    Args:
        text: The script. [text]

    Yields:
        Lines that say something. [text]
    """
    joined = re.sub(r"\\\n", " ", _without_comments(text))
    joined = _SUM.sub(lambda match: re.sub(r"\s", "", match.group(0)), joined)
    pending = ""
    for line in joined.splitlines():
        pending = f"{pending} {line.strip()}" if pending else line.strip()
        opened = _ASSIGNED.match(pending)
        inside = opened is not None and opened.group(3).startswith("(")
        if inside and not _closed(pending):
            continue
        if pending:
            yield pending
        pending = ""
    if pending:
        yield pending


def _without_comments(text: str) -> str:
    return "\n".join(
        re.sub(r"(^|\s)#(?![^\"']*[\"'][^\"']*$).*$", r"\1", line)
        for line in text.splitlines()
    )


def _closed(line: str) -> bool:
    """Tell if the bracket of an array is closed, outside of quotes."""
    bare = re.sub(r"\"[^\"]*\"|'[^']*'", "", line)
    return bare.count("(") <= bare.count(")")


def _arithmetic(text: str) -> int | None:
    """Value of shell arithmetic; None where it has more than plain numbers."""
    if not _TERMS.fullmatch(text):
        return None
    try:
        return int(_value(ast.parse(text, mode="eval").body))
    except ZeroDivisionError:
        return None


def _value(node: ast.expr) -> int:
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    return int(ast.unparse(node))


_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}


def unset(text: str) -> tuple[str, ...]:
    """Variables and commands in filled words, whose values no file holds.

    Args:
        text: Words as `Script.words` gives them. [text]

    Returns:
        Names; `$(...)` for the output of a command. [text]
    """
    names = [match.group(1) or match.group(3) for match in _USED.finditer(text)]
    commands = ["$(...)"] if "$(" in text or "`" in text else []
    return tuple(dict.fromkeys([*names, *commands]))


def fill_words(names: Iterable[str]) -> str:
    """Options by which a user fills variables that no file sets.

    Args:
        names: Names that `unset` returns. [text]

    Returns:
        Options of `planner import`; for commands alone, advice. [text]
    """
    plain = [name for name in names if not name.startswith("$(")]
    each = [f"--env {name}=VALUE" for name in plain]
    return " ".join(each) or "a script with the value in place of the command"


def refuse_unset(field: str, value: str, *, file: str) -> NoReturn:
    """Refuse a setting whose value the files do not hold.

    Args:
        field: The option. [text]
        value: Value as written. [text]
        file: File of the setting. [text]

    Raises:
        BadInputError: Always; names the variables, and the options that fill them.
    """
    raise BadInputError(
        "is set by no file",
        file=file,
        field=field,
        value=value,
        allowed=fill_words(unset(value)),
    )


def with_variables(text: str, variables: Mapping[str, str]) -> str:
    """Set variables at the top of a script.

    Args:
        text: The script. [text]
        variables: Values by name; what the script itself assigns wins. [text]

    Returns:
        The script with the variables. [text]
    """
    given = "".join(f': "${{{name}:={value}}}"\n' for name, value in variables.items())
    return given + text


def split(text: str) -> list[str]:
    """Split a line into words as a shell does, or by spaces where quotes are open.

    Args:
        text: A line. [text]

    Returns:
        Words without quotes. [text]
    """
    try:
        return shlex.split(text, comments=False)
    except ValueError:
        return text.split()
