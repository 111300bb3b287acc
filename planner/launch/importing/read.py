"""Reads launch files of a framework by the target that they are for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

from planner.errors import BadInputError, did_you_mean
from planner.job.resolve import about
from planner.launch.brief import Reading
from planner.launch.importing.files import (
    filled,
    may_be,
    near,
    refuse_two_values,
    settings_text,
    texts_of,
)
from planner.launch.methods.settings import settings_of_files
from planner.launch.methods.table import (
    in_sequences,
    method_of,
    refuse_commands,
    tool_of,
)
from planner.launch.other_tools.recognise import refuse_others
from planner.launch.registry import TARGETS
from planner.launch.shell.runs import (
    Alternative,
    alternatives,
    launch_of,
    refuse_alternatives,
)
from planner.launch.shell.seen import check_seen
from planner.launch.shell.values import UnsetError, unset
from planner.launch.target import Files, Target
from planner.launch.text.nodes import NODES, PLACE, pools_of, ranks_of
from planner.launch.unknown import Unknown, absent, lines_of, placed

SETTINGS = (".json", ".toml", ".yaml", ".yml")
"""Endings of files of settings that a command may name. [text]"""
BY_TRAINER = ("accelerate", "deepspeed")
"""Frameworks whose runs are of one rank where `python` starts them. [text]"""
OF_SETTINGS = frozenset(
    {"accelerate_config", "config", "config_file", "job.config_file"}
    | {"deepspeed", "deepspeed_config"}
)
"""Options whose value is a file of settings. [text]"""
DEEPEST = 4
"""Files that name each other in a row. [1]"""


def read_launch(
    paths: Sequence[Path],
    name: str | None,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Reading:
    """Read the launch files of a run.

    Args:
        paths: Files, or folders of them. [-]
        name: Target of the files; None to recognise the target. [text]
        variables: Variables of the environment that scripts run in. [text]

    Raises:
        BadInputError: A file cannot be read, or no target fits the files.
    """
    texts = dict(texts_of(paths))
    nodes = texts.pop(NODES, "")
    given = {**ranks_of(nodes), **variables}
    files = {file: filled(given, file, text) for file, text in texts.items()}
    if nodes:
        files[PLACE] = ""
    reading = _followed(files, name, paths, given)
    pools = pools_of(nodes, int(str(reading.layout.get("pp", 1))))
    layout = {**reading.layout, **({"pools": pools} if pools else {})}
    return replace(reading, layout=layout)


def _followed(
    files: dict[str, str],
    name: str | None,
    paths: Sequence[Path],
    given: Mapping[str, str],
) -> Reading:
    """Read files, and those that their commands and settings name, where near."""
    where = ", ".join(map(str, paths))
    with about(where), lines_of(files):
        files |= _named(_of_commands(files, given), files, paths, given)
    for _ in range(DEEPEST):
        reading = read_texts(files, name, where, given)
        wanted = [its.wants for its in reading.unknown if its.wants]
        new = _named(wanted, files, paths, given)
        if not new:
            break
        files |= new
    return reading


def _of_commands(files: Files, given: Mapping[str, str]) -> list[str]:
    """Names of files of settings among the words of the commands that scripts start."""
    launches = (each.launch for each in alternatives(files, given))
    words = (word.rpartition("=")[2] for launch in launches for word in launch.words)
    return [word for word in words if word.endswith(SETTINGS)]


def _lacking(words: Sequence[str], files: Files) -> Iterator[Unknown]:
    """Files of settings that a command names, and that are not among those given."""
    parts = [p for w in words for p in (w.split("=", 1) if w[:2] == "--" else [w])]
    for before, word in pairwise(parts):
        option = before.lstrip("-").replace("-", "_")
        # A second value of an option is data: `--train_file a.json b.json`.
        plain = not before.startswith("-") and not before.endswith(SETTINGS)
        names = (
            plain and "=" not in word if before[:1] != "-" else option in OF_SETTINGS
        )
        file = word.rpartition("/")[2]
        if names and word.endswith(SETTINGS) and file not in files and not unset(file):
            yield absent(option, word)


def _named(
    names: Sequence[str],
    files: Files,
    paths: Sequence[Path],
    given: Mapping[str, str],
) -> dict[str, str]:
    """Text by name of the files that are named and near, and not read yet."""
    found = [path for text in names if (path := near(text, paths)) and may_be(path)]
    new = {path.name: settings_text(path) for path in found if path.name not in files}
    return {file: filled(given, file, text) for file, text in new.items()}


def read_texts(
    files: Files,
    name: str | None,
    where: str,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Reading:
    """Read launch files from texts.

    Args:
        files: Text by name. [text]
        name: Target of the files; None to recognise the target. [text]
        where: Name of the files in messages. [text]
        variables: Variables of the environment that scripts run in. [text]

    Raises:
        BadInputError: No target fits the files, or several targets do; or scripts can
            be meant in ways that are different jobs.
    """
    with about(where), lines_of(files):
        reading = _meant(files, name, variables)
    unknown = (
        replace(its, place=placed(files, its.name) or where) for its in reading.unknown
    )
    copies = reading.copies
    if copies:
        copies = replace(copies, place=placed(files, copies.name) or where)
    sizes = (replace(s, file=placed(files, s.field) or s.file) for s in reading.sizes)
    return replace(reading, unknown=tuple(unknown), copies=copies, sizes=tuple(sizes))


def _meant(files: Files, name: str | None, variables: Mapping[str, str]) -> Reading:
    """Reading of the run that scripts start, the same however they can be meant."""
    found = alternatives(files, variables)
    if not found:
        return _read(files, name)
    first, *others = found
    reading = _placed(first, name)
    for other in others:
        if replace(_placed(other, name), ignored=()) != replace(reading, ignored=()):
            refuse_alternatives(first, other)
    return reading


def _placed(its: Alternative, name: str | None) -> Reading:
    """Reading of a run; a variable that no file sets is refused with its line."""
    try:
        return _read(its.files, name)
    except UnsetError as error:
        known = (its.lines[n] for n in error.names if n in its.lines)
        error.file = next(known, f"{its.launch.file}:{its.launch.line}")
        raise


def _read(files: Files, name: str | None) -> Reading:
    """Read files by the target that is named, or by the only target that fits."""
    if name is not None:
        return _by(_target_named(name), files)
    refuse_others(files)
    able = [target for target in TARGETS if target.reads(files)]
    held = frozenset[str]().union(*(target.holds for target in able))
    able = [target for target in able if target.name not in held]
    if len(able) == 1:
        return _by(able[0], files)
    refuse_commands(files)
    for file, text in files.items():
        refuse_two_values(file, text)
    found = "several" if able else "none"
    raise BadInputError(
        f"{found} of the known targets write files like these; say which",
        field="--target",
        allowed=", ".join(target.name for target in able or TARGETS),
    )


def _by(target: Target, files: Files) -> Reading:
    """Reading by the method that the files train with."""
    tool = tool_of(target.name)
    method = method_of(files, tool)
    reading, launch = target.read(files), launch_of(files)
    gpus = reading.gpus or launch.ranks
    asked = {"ranks": gpus or 0, "nodes": reading.nodes or launch.nodes or 1}
    check_seen(asked, launch.visible, f"{launch.file}:{launch.line}")
    by_trainer = reading.framework in BY_TRAINER and launch.alone and not reading.gpus
    told = {its.wants for its in reading.unknown}
    lacking = [each for each in _lacking(launch.words, files) if each.wants not in told]
    shares = by_trainer and reading.framework == "accelerate"
    reading = replace(
        reading,
        gpus=1 if by_trainer else gpus,
        nodes=reading.nodes or launch.nodes,
        shares_gpus=shares and launch.visible != 1,
        unknown=(*reading.unknown, *lacking),
        named=reading.named or _weights(files),
    )
    return in_sequences(reading, files, tool) if method.pairs else reading


def _weights(files: Files) -> str:
    """Weights by the name that every script of Trainer has for them; or empty."""
    name = settings_of_files(files).get("model_name_or_path")
    return name if isinstance(name, str) else ""


def _target_named(name: str) -> Target:
    known = {target.name: target for target in TARGETS}
    if name not in known:
        raise BadInputError(
            f"no such target; {did_you_mean(name, known)}",
            field="--target",
            value=name,
            allowed=", ".join(known),
        )
    return known[name]
