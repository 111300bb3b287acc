"""Tables of the reference pages, from the types, commands and files they describe."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer
import yaml
from pydantic import BaseModel

from planner.calibration.accuracy.validation import Validation
from planner.cli import app
from planner.cost.why.terms import Why
from planner.frameworks import FRAMEWORKS
from planner.hardware.fleets import ClusterSpec
from planner.planning.comparison.answer import Comparison
from planner.planning.comparison.purchase import PurchaseSpec
from planner.specs.answer.difference import Difference
from planner.specs.answer.explanation import Explained
from planner.specs.answer.memory import InferenceMemory, TrainingMemory
from planner.specs.answer.prediction import Prediction
from planner.specs.answer.result import Plan, Result
from planner.specs.answer.size import SizeAnswer
from planner.specs.answer.tuning import Tuning
from planner.specs.job import JobSpec
from planner.specs.layouts.context import TOLD

ROOT = Path(__file__).resolve().parents[2]
Schema = dict[str, Any]
UNITS = re.compile(r"\\s\*\(([^()]+)\)\\s\*\$$")
"""Units at the end of the pattern of a quantity."""


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Markdown of a table.

    Args:
        head: Words above the columns. [text]
        rows: Cells of each row. [text]

    Returns:
        Lines, each with its newline. [text]
    """
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return re.sub(r"\\?\|", r"\\|", " ".join(text.split()))


def commands() -> str:
    """Every command with its arguments and options.

    Returns:
        A section for each command. [Markdown]
    """
    every = typer.main.get_command(app).commands
    return "\n".join(_command(name, each) for name, each in every.items())


def _command(name: str, command: typer.core.TyperCommand) -> str:
    rows = ((_parameter(each), _default(each), each.help) for each in command.params)
    head = ("argument or option", "default", "meaning")
    return f"## planner {name}\n\n{command.help}\n\n{table(head, rows)}"


def _parameter(parameter: Any) -> str:
    """Name as it is typed, and the words for a value. [Markdown]."""
    metavar = getattr(parameter, "metavar", None) or ""
    if parameter.param_type_name == "argument":
        return f"`{metavar or parameter.human_readable_name}`"
    return f"`{' '.join((*parameter.opts, metavar)).strip()}`"


def _default(parameter: Any) -> str:
    plain = isinstance(parameter.default, str | int | float)
    flag = getattr(parameter, "is_flag", False)
    return f"`{parameter.default}`" if plain and not flag else ""


def fields(*roots: type[BaseModel], mode: str = "validation") -> str:
    """Every field of some types and of the types in them.

    Args:
        roots: Outermost types, in the order of the page. [-]
        mode: `validation` for what is read, `serialization` for what is written. [-]

    Returns:
        A section for each type. [Markdown]
    """
    every: dict[type[BaseModel], None] = {}
    for root in roots:
        _collect(root, every)
    return "\n".join(_section(each, mode) for each in every)


def _collect(model: type[BaseModel], every: dict[type[BaseModel], None]) -> None:
    """Add a type and, in the order of its fields, the types in it."""
    if model in every:
        return
    every[model] = None
    hints = get_type_hints(model)
    for name in model.model_fields:
        for inner in _models_in(hints[name]):
            _collect(inner, every)


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _section(model: type[BaseModel], mode: str) -> str:
    about = inspect.cleandoc(model.__doc__ or "").split("\n\n")[0]
    rows = list(_rows(model, mode))
    head = ["field", "value", "default", "meaning"]
    if mode == "serialization":  # Everything is written, so there are no defaults.
        head, rows = [head[i] for i in (0, 1, 3)], [[r[0], r[1], r[3]] for r in rows]
    return f"## {model.__name__}\n\n{_plainly(about)}\n\n{table(head, rows)}"


def _rows(model: type[BaseModel], mode: str) -> Iterator[list[str]]:
    """Field, legal values, default and meaning."""
    schema = model.model_json_schema(mode=mode)
    schema = schema["$defs"][model.__name__] if "$ref" in schema else schema
    notes = {key: text for each in model.__mro__[::-1] for key, text in _notes(each)}
    names = {field.alias or name: name for name, field in model.model_fields.items()}
    for name, each in schema.get("properties", {}).items():
        note = notes.get(names.get(name, name), each.get("description", ""))
        default = _value(each.get("default"))
        yield [f"`{name}`", _words(each), default, _plainly(note)]


def _plainly(docstring: str) -> str:
    return docstring.replace("``", "`").replace("].", "]").strip()


def _notes(model: type) -> Iterator[tuple[str, str]]:
    """Names of fields and the docstrings below them."""
    if not issubclass(model, BaseModel) or model is BaseModel:
        return
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    for field, note in pairwise(body):
        match field, note:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, text


def _words(schema: Schema) -> str:
    """Legal values of a field, in words. [Markdown]."""
    match schema:
        case {"$ref": str(path)}:
            name = path.rpartition("/")[2]
            return f"[{name}](#{name.lower()})"
        case {"anyOf": list(each)}:
            words = dict.fromkeys(_words(one) for one in each)
            return ", or ".join(word for word in words if word != "null")
        case {"allOf": [one]}:
            return _words(one)
        case {"type": "array", "items": items}:
            return f"list of {_words(items)}"
    return _listed(schema) or _plain(schema)


def _listed(schema: Schema) -> str:
    """Values that are listed, or the units of a quantity; else empty. [Markdown]."""
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        return ", ".join(f"`{value}`" for value in values)
    if units := UNITS.search(schema.get("pattern", "")):
        return f"number and unit: {units[1].replace('|', ', ')}"
    return ""


def _plain(schema: Schema) -> str:
    """A number with its bounds, text, a mapping. [Markdown]."""
    names = {"string": "text", "object": "mapping", "boolean": "`true`, `false`"}
    word = names.get(schema.get("type", ""), schema.get("type", "any"))
    bounds = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤"}
    told = [f"{sign} {schema[key]:,}" for key, sign in bounds.items() if key in schema]
    return " ".join((word, *told))


def _value(default: object) -> str:
    """A default as YAML, empty where a block's fields say it. [Markdown]."""
    if default is None or isinstance(default, dict):
        return ""
    return (
        f"`{yaml.safe_dump(default, default_flow_style=True).split('...')[0].strip()}`"
    )


def stacks() -> str:
    """Every named software stack.

    Returns:
        A section for each framework. [Markdown]
    """
    return "\n".join(
        f"## Stacks of {name}\n\n"
        + table(
            ("stack", "software", "era"),
            (
                (f"`{each['name']}`", each.get("title", ""), each.get("era", ""))
                for each in _stacks(name)
            ),
        )
        for name in _frameworks()
    )


def _stacks(framework: str) -> Iterator[dict[str, Any]]:
    folder = _room(framework) / "stacks"
    for path in sorted(folder.iterdir(), key=lambda each: each.name):
        if path.name.endswith(".yaml"):
            yield yaml.safe_load(path.read_text())


def _room(framework: str) -> Traversable:
    return files("planner.frameworks") / framework


def _frameworks() -> list[str]:
    return [each.name for each in FRAMEWORKS]


def settings() -> str:
    """Every word of the frameworks' own settings.

    Returns:
        A section for each framework. [Markdown]
    """
    return "\n".join(
        f"## Settings of {name}\n\n"
        + table(
            ("setting", "value", "source"),
            (
                (f"`{setting}`", f"`{value}`", each.get("source", ""))
                for setting, values in _settings(name).items()
                for value, each in values.items()
            ),
        )
        for name in _frameworks()
    )


def _settings(framework: str) -> dict[str, dict[str, dict[str, Any]]]:
    return yaml.safe_load((_room(framework) / "options.yaml").read_text())


def context_kinds() -> str:
    """Every kind of context parallelism, and the frameworks that have it.

    Returns:
        A table. [Markdown]
    """
    return table(
        ("cp_kind", "exchange", "frameworks"),
        (
            (
                f"`{kind}`",
                told,
                ", ".join(f.name for f in FRAMEWORKS if kind in f.limits.cp_kinds),
            )
            for kind, told in TOLD.items()
        ),
    )


def modules(folder: str) -> str:
    """Every module below a folder, by the first line of its docstring.

    Args:
        folder: A room of `planner`. [path]

    Returns:
        A table. [Markdown]
    """
    paths = sorted((ROOT / folder).rglob("*.py"))
    first = ((ast.get_docstring(ast.parse(p.read_text())) or "", p) for p in paths)
    return table(
        ("module", "purpose"),
        (
            (f"`{path.relative_to(ROOT / folder)}`", docstring.split("\n\n")[0])
            for docstring, path in first
            if path.name != "__init__.py"
        ),
    )


written = partial(fields, mode="serialization")
TABLES: dict[str, Callable[[], str]] = {
    "commands": commands,
    "job": partial(fields, JobSpec),
    "cluster": partial(fields, ClusterSpec),
    "purchase": partial(fields, PurchaseSpec),
    "cost": partial(modules, "planner/cost"),
    "stacks": stacks,
    "settings": settings,
    "context-kinds": context_kinds,
    "answers": partial(
        written,
        *(
            Result,
            Plan,
            Prediction,
            Why,
            TrainingMemory,
            InferenceMemory,
            Explained,
            Difference,
            SizeAnswer,
            Tuning,
        ),
    ),
    "comparison": partial(written, Comparison),
    "validation": partial(written, Validation),
}
"""Name in `<!-- table: NAME -->` to the function that writes the table."""
