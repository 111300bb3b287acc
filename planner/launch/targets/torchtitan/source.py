"""Reads a Python configuration without running it, as far as its values are written."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planner.errors import BadInputError

CASTS = {"int": int, "float": float, "bool": bool, "str": str}
CONFIGURATIONS = ("Trainer", "TrainerConfig", "JobConfig")
"""Classes that a function of a configuration registry returns. [text]"""
DEPTH = 8
"""Levels of functions within functions that are followed. [1]"""


@dataclass
class Built:
    """A call, with name and arguments.

    Attributes:
        name: Name as written, with dots. [text]
        args: Values by place. [-]
        given: Values by name; assignments to attributes change them. [-]
        skipped: Statements left out of the function that made the call. [text]
    """

    name: str
    args: list[Any] = field(default_factory=list)
    given: dict[str, Any] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    @property
    def word(self) -> str:
        """Last part of the name: `FullAC` of `FullAC.Config`. [text]."""
        parts = self.name.removesuffix(".Config").split(".")
        return parts[-1]


@dataclass(frozen=True)
class Unread:
    """An expression whose value is not written down.

    Attributes:
        text: The expression. [text]
    """

    text: str


class Module:
    """A Python file, with the values that are written in the text.

    Functions are followed statement by statement. Neither branch of a condition counts.
    Statements left out are listed beside the value that a function returns.
    """

    def __init__(self, name: str, text: str) -> None:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise BadInputError(f"is no Python: {error}", file=name) from error
        self.name = name
        self.functions = {
            n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)
        }
        self.imports = dict(_imports(tree))
        self.constants: dict[str, Any] = {}
        try:
            self.constants = self._assigned(tree.body)
        except RecursionError as error:
            raise BadInputError("is nested too deeply", file=name) from error

    def _assigned(self, body: Sequence[ast.stmt]) -> dict[str, Any]:
        names: dict[str, Any] = {}
        for node in body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                names[node.targets[0].id] = self._value(node.value, names, DEPTH)
        return names

    def result(self, name: str, depth: int = DEPTH) -> Any:
        """Value that a function returns.

        Raises:
            BadInputError: The function's expressions are nested too deeply to follow.
        """
        try:
            return self._returned(name, depth)
        except RecursionError as error:
            raise BadInputError("is nested too deeply", file=self.name) from error

    def _returned(self, name: str, depth: int) -> Any:
        local, skipped = dict(self.constants), list[str]()
        for node in self.functions[name].body:
            if isinstance(node, ast.Return) and node.value is not None:
                found = self._value(node.value, local, depth)
                if isinstance(found, Built):
                    found.skipped += skipped
                return found
            skipped += self._step(node, local, depth)
        return Unread(f"{name}()")

    def _step(self, node: ast.stmt, local: dict[str, Any], depth: int) -> list[str]:
        """Follow a statement; return the first line of a statement that is left out."""
        if isinstance(node, _PLAIN) or _says_nothing(node):
            return []
        if isinstance(node, ast.If) and ast.unparse(node.test) == _STARTED:
            return []
        target = value = None
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign):
            target, value = node.target, node.value
        if target is not None and value is not None:
            found = self._value(value, local, depth)
            if self._set(target, found, local):
                return []
        return [ast.unparse(node).splitlines()[0]]

    def _set(self, target: ast.expr, value: Any, local: dict[str, Any]) -> bool:
        """Assign a value to a target; True where the target could be found."""
        if isinstance(target, ast.Name):
            local[target.id] = value
            return True
        if not isinstance(target, ast.Attribute):
            return False
        path = _dotted(target).split(".")
        owner = local.get(path[0])
        for part in path[1:-1]:
            if not isinstance(owner, Built):
                return False
            owner = owner.given.setdefault(part, Built(""))
        if not isinstance(owner, Built):
            return False
        owner.given[path[-1]] = value
        return True

    def _value(self, node: ast.expr, local: Mapping[str, Any], depth: int) -> Any:  # noqa: PLR0911  # one return for each kind of node
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return local.get(node.id, Unread(node.id))
        if isinstance(node, ast.List | ast.Tuple):
            return [self._value(one, local, depth) for one in node.elts]
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            return {
                self._value(k, local, depth): self._value(v, local, depth)
                for k, v in pairs
                if k is not None
            }
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self._value(node.operand, local, depth)
            return -value if isinstance(value, int | float) else Unread(_text(node))
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            every = [self._value(one, local, depth) for one in node.values]
            return next((one for one in every if one), every[-1])
        if isinstance(node, ast.BinOp):
            return self._joined(node, local, depth)
        if isinstance(node, ast.Call):
            return self._called(node, local, depth)
        return Unread(_text(node))

    def _joined(self, node: ast.BinOp, local: Mapping[str, Any], depth: int) -> Any:
        """Sum or product of numbers and lists, such as `[3] + [4] * 7`."""
        left, right = (
            self._value(one, local, depth) for one in (node.left, node.right)
        )
        plain = all(isinstance(one, int | float | list) for one in (left, right))
        try:
            if plain and isinstance(node.op, ast.Add):
                return left + right
            if plain and isinstance(node.op, ast.Mult) and _short(left, right):
                return left * right
        except TypeError:
            pass
        return Unread(_text(node))

    def _called(self, node: ast.Call, local: Mapping[str, Any], depth: int) -> Any:
        call = self._call(node, local, depth)
        if call.name in CASTS and len(call.args) == 1:
            return _cast(call, _text(node))
        if call.name in ("os.environ.get", "os.getenv", "environ.get"):
            return call.args[1] if len(call.args) > 1 else None
        if call.name in self.functions and depth and not (call.args or call.given):
            return self._returned(call.name, depth - 1)
        return call

    def _call(
        self, node: ast.Call, local: Mapping[str, Any], depth: int = DEPTH
    ) -> Built:
        args = [self._value(one, local, depth) for one in node.args]
        given = {
            one.arg or "**": self._value(one.value, local, depth)
            for one in node.keywords
        }
        return Built(_dotted(node.func), args, given)


_STARTED = "'RANK' in os.environ"
"""Condition of the renumbering of processes, which `ORDER` describes. [text]"""


LONGEST = 1 << 16
"""Largest product, in entries of a list or as a number. [1]"""


def _short(left: float | list[Any], right: float | list[Any]) -> bool:
    sizes = [len(one) if isinstance(one, list) else one for one in (left, right)]
    return bool(sizes[0] * sizes[1] <= LONGEST)


_PLAIN = (ast.Import, ast.ImportFrom, ast.Assert, ast.Pass, ast.FunctionDef)


def _says_nothing(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _text(node: ast.expr) -> str:
    return ast.unparse(node)


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else _text(node)


def _cast(call: Built, text: str) -> Any:
    value = call.args[0]
    if isinstance(value, Unread | Built):
        return Unread(text)
    try:
        return CASTS[call.name](value)
    except (TypeError, ValueError):
        return Unread(text)


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names that are imported, each with a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, node.module
