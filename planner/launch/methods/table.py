"""The method that a run trains with, looked up in one table for all readers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files as resources
from typing import Annotated, Any, NoReturn

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from planner.errors import BadInputError
from planner.hardware.reading.yaml_text import parse_yaml
from planner.launch.brief import Reading
from planner.launch.methods.settings import settings_of_files
from planner.launch.shell.runs import launch_of
from planner.launch.shell.values import refuse_unset, unset

NEXT_TOKENS = "sft"
"""Method of a run that no word says another of. [text]"""
OFF = ("", "false", "none", "null")
"""Values by which a setting is not used. [text]"""


def _listed(given: object) -> object:
    return [given] if isinstance(given, str) else given


Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]
"""Methods that a word leaves possible. [text]"""


class Method(BaseModel):
    """A way of training.

    Attributes:
        title: Name in messages. [text]
        why: What is missing, of a method that is not planned; else empty. [text]
        pairs: True where a batch counts pairs, against a frozen reference. [-]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    why: str = ""
    pairs: bool = False


class Tool(BaseModel):
    """Words of a tool that say the method.

    Attributes:
        title: Name in messages. [text]
        targets: Targets whose files are the tool's. [text]
        commands: Expressions whose group holds words of the table. [text]
        words: Methods by word of a command. [text]
        settings: Methods by expression over the value, by setting. [text]
        defaults: Values where a setting is not given. [text]
        precomputed: Setting that runs the reference before training; empty without.
            [text]
        source: Where the words are documented. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    targets: tuple[str, ...]
    commands: tuple[str, ...] = ()
    words: dict[str, Names] = Field(default_factory=dict)
    settings: dict[str, dict[str, Names]] = Field(default_factory=dict)
    defaults: dict[str, str] = Field(default_factory=dict)
    precomputed: str = ""
    source: str


class Table(BaseModel):
    """Methods by name, and the words of tools.

    Attributes:
        methods: Methods by name. [-]
        tools: Words by tool. [-]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    methods: dict[str, Method]
    tools: tuple[Tool, ...]


@dataclass(frozen=True)
class _Word:
    """A word with the methods that it leaves, and the field and value to name."""

    field: str
    value: object
    methods: tuple[str, ...]


@cache
def table() -> Table:
    """Read ``planner/launch/methods/methods.yaml``. [-]."""
    text = (resources("planner.launch.methods") / "methods.yaml").read_text("utf-8")
    its = parse_yaml(text)
    return Table(methods=its["methods"], tools=its["tools"])


def tool_of(target: str) -> Tool:
    """Tool whose words say the method of a target's files."""
    return next(tool for tool in table().tools if target in tool.targets)


def in_sequences(reading: Reading, files: Mapping[str, str], tool: Tool) -> Reading:
    """Count sequences in a reading of files that count pairs.

    Returns:
        Settings of a batch of twice as many sequences, with the reference: the base of
        adapters, or a copy of the model. [-]

    Raises:
        BadInputError: The files pack texts, which no trainer of pairs does.
    """
    training, layout = dict[str, Any](reading.training), dict[str, Any](reading.layout)
    if training.get("padding") == "packed":
        raise BadInputError("pairs are not packed", field="packing", allowed="false")
    before = str(settings_of_files(files).get(tool.precomputed)).lower() == "true"
    beside = "copy" if training.get("method", "full") == "full" else "adapters"
    training["reference"] = "precomputed" if before else beside
    layout["micro_batch"] = 2 * layout.get("micro_batch", 1)
    if "global_batch" in training:
        training["global_batch"] *= 2
    each = reading.per_replica and 2 * reading.per_replica
    return replace(reading, training=training, layout=layout, per_replica=each)


def refuse_commands(files: Mapping[str, str]) -> None:
    """Refuse a command that trains by a method which is not planned.

    Raises:
        BadInputError: A tool's command says such a method.
    """
    launch = launch_of(files)
    for tool in table().tools:
        for word in _commands(tool, launch.words):
            if all(table().methods[name].why for name in word.methods):
                _refuse(word, launch.file)


def method_of(files: Mapping[str, str], tool: Tool) -> Method:
    """Method that a tool's run trains with."""
    launch = launch_of(files)
    given = settings_of_files(files)
    said = _commands(tool, launch.words) if launch.words else _programs(tool, files)
    words = [*said, *_settings(tool, given, launch.file)]
    left, last = tuple(table().methods), None
    for word in words:
        kept = tuple(name for name in word.methods if name in left)
        if not kept and last is not None:
            _refuse_both(last, word)
        # A word that leaves what is left already decides nothing.
        last = word if last is None or kept != left else last
        left = kept
    if last is None:
        return table().methods[NEXT_TOKENS]
    found = [table().methods[name] for name in left]
    if all(method.why for method in found):
        _refuse(replace(last, methods=left))
    if len({(method.why, method.pairs) for method in found}) > 1:
        _refuse_open(replace(last, methods=left), tool)
    return found[0]


def _commands(tool: Tool, words: Sequence[str]) -> Iterator[_Word]:
    """Words of the table in the command that starts the run, the longest first."""
    every = "|".join(sorted(map(re.escape, tool.words), key=len, reverse=True))
    for expression in tool.commands:
        for match in re.finditer(expression, " ".join(words)):
            for word in re.findall(f"(?<![a-z])(?:{every})(?![a-z])", match[1]):
                yield _Word(match[0].strip(" /"), None, tool.words[word])


def _programs(tool: Tool, files: Mapping[str, str]) -> list[_Word]:
    """Word of the one program among files without a command; none of several."""
    programs = [name for name in files if name.endswith(".py")]
    found = {word.methods: word for word in _commands(tool, programs)}
    return list(found.values()) if len(found) == 1 else []


def _settings(tool: Tool, given: Mapping[str, Any], file: str) -> Iterator[_Word]:
    """Values of the table, of files and options."""
    for name, methods in tool.settings.items():
        value = given.get(name)
        values = value if isinstance(value, list) else [value]
        used = [one for one in values if str(one).lower() not in OFF]
        default = [tool.defaults[name]] if name in tool.defaults else []
        for one in used or default:
            if fits := _fitting(methods, name, one, file):
                yield _Word(name, one, fits)


def _fitting(
    methods: Mapping[str, Names], name: str, value: object, file: str
) -> Names:
    if unset(str(value)):
        refuse_unset(name, str(value), file=file)
    for expression, fits in methods.items():
        if re.fullmatch(expression, str(value).lower(), re.DOTALL):
            return fits
    raise BadInputError(
        "says no method that is known",
        field=name,
        value=value,
        allowed=", ".join(methods).replace("|", ", "),
    )


def _titles(names: Sequence[str], word: str) -> str:
    titles = [table().methods[name].title for name in names]
    return f" {word} ".join([", ".join(titles[:-1]), titles[-1]][not titles[:-1] :])


def _refuse(word: _Word, file: str | None = None) -> NoReturn:
    why = table().methods[word.methods[0]].why
    raise BadInputError(
        f"this trains by {_titles(word.methods, 'or')}; {why}",
        file=file,
        field=word.field,
        value=word.value,
        allowed="files of pretraining, supervised fine-tuning or DPO",
    )


def _refuse_both(one: _Word, other: _Word) -> NoReturn:
    raise BadInputError(
        f"is of {_titles(other.methods, 'or')}, and {one.field} of "
        f"{_titles(one.methods, 'or')}",
        field=other.field,
        value=other.value,
        allowed="the files of one run",
    )


def _refuse_open(word: _Word, tool: Tool) -> NoReturn:
    raise BadInputError(
        f"is of {_titles(word.methods, 'and of')}, and no file says which method this "
        "is",
        field=word.field,
        value=word.value,
        allowed=f"the script that starts {tool.title} beside the file, or its program "
        "(planner import FILE run_dpo.py)",
    )
