"""Reads a job's YAML file, and what the command line sets, into a JobSpec."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from planner.errors import BadInputError, did_you_mean
from planner.hardware.catalog import cluster
from planner.hardware.reading.documents import (
    LARGEST_FILE,
    DocumentError,
    absence,
    beside,
    is_folder,
    is_there,
    plain_json,
    plain_yaml,
    read_text,
    yaml_files,
)
from planner.hardware.reading.files import SHIPPED, Catalog
from planner.hardware.reading.names import LONGEST_NAME
from planner.hardware.reading.shipped import shipped
from planner.hardware.reading.yaml_text import DuplicateKeyError
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout
from planner.specs.reading.command_layout import replace_layouts
from planner.specs.reading.invalid import explained, refuse_answer
from planner.specs.training import ONLY_WITH

Fields = dict[str, Any]
"""A YAML mapping."""

EXCLUSIVE = {
    "training.global_batch": "global_batch_tokens",
    "training.global_batch_tokens": "global_batch",
    "training.tokens": "compute",
    "training.compute": "tokens",
    "training.document": "lengths",
    "training.lengths": "document",
}
"""Field that can be set, and the rival field in its block, which is then cleared."""

_CHANGED = " (changed)"
"""End of a cluster's name where the command line set a field."""


def read_spec(
    path: Path,
    assignments: Sequence[str] = (),
    catalog: Catalog = SHIPPED,
    layout: PartialLayout | None = None,
) -> JobSpec:
    """A job as its file and the assignments of the command line describe it.

    Args:
        path: YAML file, or the name of a job in `configs/jobs`. [-]
        assignments: `a.b.c=value` each, applied in order; values are YAML. [text]
        catalog: Files of facts. [-]
        layout: In place of the layouts of the job. [-]

    Raises:
        BadInputError: Unreadable, no mapping, or a field is wrong.
    """
    file = locate(path)
    fields = read_mapping(file, pipes=True)
    return assigned(fields, assignments, file.parent, str(path), catalog, layout)


def reassigned(
    spec: JobSpec,
    assignments: Sequence[str],
    *,
    base: Path,
    file: str,
    catalog: Catalog,
) -> JobSpec:
    """A job with more assignments, as if the command line had made them.

    Args:
        spec: The job as read. [-]
        assignments: `a.b.c=value` each, applied in order; values are YAML. [text]
        base: Folder that relative paths in the job start from. [-]
        file: File as the user named it, for messages. [text]
        catalog: Files of facts. [-]
    """
    fields = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return assigned(fields, assignments, base, file, catalog)


def assigned(
    fields: Fields,
    assignments: Sequence[str],
    base: Path,
    file: str,
    catalog: Catalog,
    layout: PartialLayout | None = None,
) -> JobSpec:
    """Fields of a job with a layout and assignments put in, checked.

    Args:
        fields: Fields of a job, changed in place. [-]
        assignments: `a.b.c=value` each, applied in order; values are YAML. [text]
        base: Folder that relative paths start from. [-]
        file: File as the user named it, for messages. [text]
        catalog: Files of facts. [-]
        layout: In place of the layouts of the job and its phases; None: they stay. [-]
    """
    refuse_answer(fields, file)
    if layout is not None:
        replace_layouts(fields, layout, assignments)
    for assignment in assignments:
        _assign(fields, assignment, base, catalog)
    _forget_other_methods(fields, assignments)
    # An empty block of YAML is null, which means the same as its absence.
    given = {key: value for key, value in fields.items() if value is not None}
    try:
        spec = JobSpec.model_validate(given)
    except ValidationError as error:
        told = explained(error, JobSpec, file=file)
    else:
        _refuse_unread(spec, assignments)
        return spec
    if any(a.partition("=")[0].strip() == told.field for a in assignments):
        told.file = "--set"
    raise told


def locate(path: Path) -> Path:
    """The file of a job: the path itself, or the file of a known job of this name.

    Raises:
        BadInputError: No such file or job; names the nearest.
    """
    if is_there(path):
        return path
    known = known_jobs()
    if str(path) in known:
        return known[str(path)]
    near = did_you_mean(str(path), [*known, *yaml_files(path.parent)])
    raise BadInputError(
        f"{absence(path, 'no such file or job')}; {near}",
        file=str(path),
    )


def known_jobs() -> dict[str, Path]:
    """Jobs that come with planner: inside a wheel, beside a checkout."""
    every = (shipped("configs") / "jobs").glob("*.yaml")
    return {path.stem: path for path in every}


def read_mapping(file: Path, *, pipes: bool = False) -> Fields:
    """Read the mapping that a YAML or JSON file holds.

    Args:
        file: The file. [-]
        pipes: True where a pipe may be read. [-]
    """
    text = user_text(file, pipes=pipes)
    if file.suffix == ".json":
        return _mapping(_json(text, file), str(file))
    return mapping_of(text, str(file))


def mapping_of(text: str, file: str) -> Fields:
    """The mapping that a YAML text holds.

    Raises:
        BadInputError: Too long, empty, no YAML, or no mapping.
    """
    if len(text) > LARGEST_FILE:
        raise BadInputError(f"has more than {LARGEST_FILE} characters", file=file)
    return _mapping(value_of(text, file), file)


def _mapping(content: Any, file: str) -> Fields:
    """Content of a file, if it is a mapping."""
    if content is None:
        raise BadInputError("the file is empty", file=file)
    if not isinstance(content, dict):
        kind = "list" if isinstance(content, list) else "single value"
        raise BadInputError(
            f"holds a {kind}",
            file=file,
            allowed="a mapping, `field: value` on each line",
        )
    return content


def portable(
    spec: JobSpec, base: Path, models: Collection[str], catalog: Catalog
) -> Fields:
    """Fields of a job that mean the same from any folder."""
    fields = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    known = {"model": models, "cluster": catalog.names("clusters")}
    for name, names in known.items():
        given = fields[name]
        if isinstance(given, str) and given not in names:
            path = beside(base, given)
            fields[name] = str(path.resolve()) if is_there(path) else given
    return fields


def user_text(file: Path, *, pipes: bool = False) -> str:
    """Text of a file that a user names.

    Args:
        file: The file. [-]
        pipes: True where a pipe may be read. [-]

    Raises:
        BadInputError: Unreadable, no UTF-8, or too large.
    """
    try:
        return read_text(file, pipes=pipes)
    except DocumentError as error:
        raise BadInputError(error.problem, file=str(file)) from error


def _json(text: str, file: Path) -> Any:
    """JSON as Python data: YAML would take its 1e-05 for a word."""
    try:
        return plain_json(text)
    except DocumentError as error:
        place = error.field or None
        raise BadInputError(error.problem, file=str(file), field=place) from error


def value_of(text: str, file: str) -> Any:
    """YAML as Python data."""
    try:
        return plain_yaml(text)
    except DocumentError as error:
        place = error.field or None
        raise BadInputError(error.problem, file=file, field=place) from error
    except DuplicateKeyError as error:
        raise given_twice(error, file) from error
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}" if error.problem_mark else None
        problem = f"is no YAML: {error.problem or error.context}"
        raise BadInputError(problem, file=file, field=line) from error
    except yaml.YAMLError as error:
        raise BadInputError(f"is no YAML: {error}", file=file) from error


def given_twice(error: DuplicateKeyError, file: str) -> BadInputError:
    """The refusal of a file that has a key twice in one block."""
    return BadInputError(
        f"the key is given twice in one block, first on line {error.first}",
        file=file,
        field=f"line {error.second}",
        value=error.key,
        allowed="each key once",
    )


def _assign(fields: Fields, assignment: str, base: Path, catalog: Catalog) -> None:
    """Put one `a.b.c=value` in its place, and clear its rival."""
    dotted, equals, text = assignment.partition("=")
    keys = dotted.strip().split(".")
    if not equals or not all(keys):
        raise BadInputError(
            "is no assignment", file="--set", value=assignment, allowed="a.b.c=value"
        )
    block = fields
    for depth, key in enumerate(keys[:-1], start=1):
        block = _enter(block, key, ".".join(keys[:depth]), base, catalog)
    value = value_of(text, f"--set {dotted}")
    if value is not None:
        block.pop(EXCLUSIVE.get(dotted.strip(), ""), None)
    block[keys[-1]] = value


def _forget_other_methods(fields: Fields, assignments: Sequence[str]) -> None:
    """Drop what the file gives a method that the command line replaced."""
    given = _named(assignments)
    training = fields.get("training")
    if "training.method" not in given or not isinstance(training, dict):
        return
    for name, methods in ONLY_WITH.items():
        if training.get("method") not in methods and not _asked(given, name):
            training.pop(name, None)


def _named(assignments: Sequence[str]) -> set[str]:
    """Fields that the command line sets, by path."""
    return {a.partition("=")[0].strip() for a in assignments}


def _asked(given: Iterable[str], name: str) -> bool:
    """Tell if the command line sets a field of the training block, or inside it."""
    field = f"training.{name}"
    return any(g == field or g.startswith(f"{field}.") for g in given)


def _refuse_unread(spec: JobSpec, assignments: Sequence[str]) -> None:
    """Refuse a field that the command line sets, and the method does not read."""
    given, training = _named(assignments), spec.training
    for name, methods in ONLY_WITH.items() if training else ():
        value, method = getattr(training, name), getattr(training, "method", "")
        if method not in methods and value and _asked(given, name):
            raise BadInputError(
                f"is not read by method {method}",
                file="--set",
                field=f"training.{name}",
                allowed=f"method {' or '.join(methods)} beside it",
            )


def _enter(
    block: Fields, key: str, dotted: str, base: Path, catalog: Catalog
) -> Fields:
    """The block inside another, made if absent; a cluster's name becomes fields."""
    inner = block.get(key)
    if inner is None:
        inner = {}
    if dotted == "cluster" and isinstance(inner, str):
        inner = cluster_fields(inner, base, catalog)
        named = str(inner.get("name", key))[: LONGEST_NAME - len(_CHANGED)]
        inner["name"] = named + _CHANGED
    if not isinstance(inner, dict):
        raise BadInputError(
            "holds one value, so no field inside it can be set",
            file="--set",
            field=dotted,
            value=inner,
            allowed=f"a block in the file, or --set {dotted}=value",
        )
    block[key] = inner
    return inner


def cluster_fields(reference: str, base: Path, catalog: Catalog) -> Fields:
    """Fields of a cluster by its name, or from a YAML file.

    Raises:
        BadInputError: Neither a name nor a file; names the nearest.
    """
    known = catalog.names("clusters")
    if reference in known:
        return cluster(reference, catalog).model_dump(mode="json")
    path = beside(base, reference)
    if is_there(path) and not is_folder(path):
        return read_mapping(path)
    raise BadInputError(
        f"no cluster of this name, and no such file; {did_you_mean(reference, known)}",
        field="cluster",
        value=reference,
    )
