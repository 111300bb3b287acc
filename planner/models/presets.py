"""Models known by name, and models described by a file."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from planner.hardware.reading.documents import (
    DocumentError,
    beside,
    is_file,
    is_there,
    plain_json,
    read_text,
)
from planner.hardware.reading.nearest import alike
from planner.hardware.reading.numbers import PositiveInt
from planner.hardware.reading.shipped import shipped
from planner.hardware.reading.yaml_text import parse_yaml
from planner.models.architecture import Architecture
from planner.models.errors import ModelConfigError
from planner.models.hub import hub_config, is_hub_id
from planner.models.registry import from_config

MOST_SHOWN = 12
"""Names in a message where none is near. [1]"""
MOST_KINDS = 2
"""Kinds of layers of a plain model: full attention and a window beside it. [1]"""
_ON_HUB = re.compile(r"Hugging Face ([^\s,]+/[^\s,]+), config\.json")
_HUB_ID = re.compile(rf"^source: '?{_ON_HUB.pattern}", re.MULTILINE)
_FOLDER = re.compile(r"/[\w./+@-]+")
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_PARAMETERS = re.compile(r"^published_parameters:\s*(\d+)", re.MULTILINE)


class Preset(BaseModel):
    """A named model as configs/models holds it.

    Args:
        source: Citation of the fields and of the count.
        published_parameters: Parameters as the source prints them, maybe rounded. [1]
        config: Hugging Face fields.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    source: str
    published_parameters: PositiveInt
    config: dict[str, Any]

    @property
    def hub_id(self) -> str:
        """Owner and name of the weights on the Hugging Face hub.

        Returns:
            The id that the source names first; empty where the fields are from
            elsewhere. [text]
        """
        found = _ON_HUB.match(self.source)
        return found[1] if found else ""


def preset_names() -> tuple[str, ...]:
    """Names of all presets, sorted.

    Returns:
        Names. [1], shape (presets,)
    """
    return tuple(_named(_directory()))


@cache
def preset_sizes() -> dict[str, int]:
    """Published parameters of every preset, read without the rest of its file.

    Returns:
        Parameters by name; 0 where a file does not state them. [1]
    """
    found = {
        path.stem: _PARAMETERS.search(path.read_text("utf-8")) for path in _files()
    }
    return {name: int(match[1]) if match else 0 for name, match in found.items()}


@cache
def preset_hub_ids() -> dict[str, str]:
    """Ids on the Hugging Face hub of the presets that are there.

    Returns:
        Name of a preset by lower-case owner and name. [text]
    """
    found = {path.stem: _HUB_ID.search(path.read_text("utf-8")) for path in _files()}
    return {match[1].lower(): name for name, match in found.items() if match}


def read_preset(name: str) -> Preset:
    """Preset as written, with its source and published count.

    Raises:
        ModelConfigError: No preset has that name, or its file is malformed.
    """
    return _read(_file(name)).model_copy(deep=True)


@cache
def _read(path: Path) -> Preset:
    """A preset's file, which many questions about memory ask for."""
    try:
        return Preset.model_validate(parse_yaml(path.read_text("utf-8")))
    except (yaml.YAMLError, ValidationError) as error:
        raise ModelConfigError(f"{path}: {error}") from error


def preset(name: str) -> Architecture:
    """Architecture of a named model.

    Raises:
        ModelConfigError: No preset has that name, or its file is malformed.
    """
    return _built(_file(name))


@cache
def dense_names(positions: int) -> tuple[str, ...]:
    """Presets whose every parameter meets every token, the smallest first.

    Left out: models of more than :data:`MOST_KINDS` kinds of layers, as some hybrids
    and those cut from a larger model layer by layer. Few train a size in such a form.

    Args:
        positions: Tokens of a sequence that the model has to take. [token]

    Returns:
        Names. [1], shape (presets,)
    """
    found = [(preset(name), name) for name in preset_names()]
    return tuple(
        name
        for model, name in sorted(found, key=lambda pair: pair[0].parameters)
        if model.active_parameters == model.parameters
        and len(model.kinds) <= MOST_KINDS
        and (model.max_position or positions) >= positions
    )


@cache
def _built(path: Path) -> Architecture:
    """Architecture of a preset's file."""
    found = _read(path)
    return from_config(found.config, source=found.source, name=path.stem)


def load_model(reference: str, base: Path | None = None) -> Architecture:
    """Architecture by preset name, from a config.json or its folder, or by hub id.

    A preset name wins over a path of the same name, a path over a hub id.

    Args:
        reference: Preset name, path, or owner and name on the Hugging Face hub.
        base: Folder that relative paths start from; the working directory if None.

    Raises:
        ModelConfigError: The reference is none of them, the hub does not answer, or
            the file does not describe a model.
    """
    if reference in preset_names():
        return preset(reference)
    file = find_config(reference, base)
    if is_hub_id(reference) and not is_file(_local(reference, base)):
        source = f"Hugging Face {reference}, config.json"
        return from_config(_read_json(file), source=source, name=reference)
    name = file.parent.name if file.name == "config.json" else file.stem
    return from_config(_read_json(file), source=str(file), name=name or None)


def find_config(reference: str, base: Path | None = None) -> Path:
    """File that describes a model which is no preset; fetched if it is a hub id.

    Args:
        reference: Path of a config.json or of its folder, or a hub id.
        base: Folder that relative paths start from; the working directory if None.

    Returns:
        Path of the file.

    Raises:
        ModelConfigError: There is no such file, and the hub does not give one.
    """
    file = _local(reference, base)
    if is_file(file):
        return file
    if is_hub_id(reference):
        return hub_config(reference)
    raise ModelConfigError(
        f"model {reference!r} is neither a preset nor a file: {file} "
        f"{'is no file' if is_there(file) else 'does not exist'}",
        _nearest(reference),
    )


def read_config(reference: str, base: Path | None = None) -> dict[str, Any]:
    """Fields of a model which is no preset, as its config.json has them.

    Where weights lie beside it, `_name_or_path` is that folder.

    Args:
        reference: Path of a config.json or of its folder, or a hub id.
        base: Folder that relative paths start from; the working directory if None.

    Returns:
        Hugging Face fields.

    Raises:
        ModelConfigError: There is no such file, or it holds no JSON object.
    """
    file = find_config(reference, base)
    config = _read_json(file)
    if any(any(file.parent.glob(pattern)) for pattern in _WEIGHTS):
        config["_name_or_path"] = str(file.parent.resolve())
    return config


def weights_of(config: Mapping[str, Any], name: str) -> str:
    """Name or folder of the weights that a model's fields and name stand for.

    Args:
        config: Hugging Face fields.
        name: Name of the model: a preset, a hub id, or anything else.

    Returns:
        A preset's hub id where all fields are the preset's; else the name or
        `_name_or_path`, where it is a hub id or a whole path; else empty. [text]
    """
    if name in preset_names():
        found = read_preset(name)
        if dict(config).items() <= found.config.items():
            return found.hub_id
    for said in (name, config.get("_name_or_path")):
        if isinstance(said, str) and (is_hub_id(said) or _FOLDER.fullmatch(said)):
            return said
    return ""


def _local(reference: str, base: Path | None) -> Path:
    path = beside(base or Path(), reference)
    return path / "config.json" if is_there(path) and path.is_dir() else path


def _read_json(file: Path) -> dict[str, Any]:
    try:
        config = plain_json(read_text(file))
    except DocumentError as error:
        raise ModelConfigError(f"{file}: {error}") from error
    if not isinstance(config, dict):
        raise ModelConfigError(
            f"{file}: holds a {type(config).__name__}; it has to be a JSON object with "
            "Hugging Face fields"
        )
    return config


def _files() -> list[Path]:
    """Files of all presets, by name."""
    return list(_named(_directory()).values())


@cache
def _named(directory: Path) -> dict[str, Path]:
    """Files of a folder by name; every model that is looked up asks for them."""
    files = sorted(directory.glob("*.yaml"), key=lambda path: path.stem)
    return {path.stem: path for path in files}


def _file(name: str) -> Path:
    """File of a preset; refused where there is none."""
    found = _named(_directory()).get(name)
    if found is None:
        raise ModelConfigError(f"no model is named {name!r}", _nearest(name))
    return found


def _directory() -> Path:
    return shipped("configs") / "models"


def _nearest(name: str) -> str:
    names = preset_names()
    near = alike(name.lower(), names)
    if near:
        return f"nearest: {', '.join(near)}"
    return f"known: {', '.join(names[:MOST_SHOWN])}, ... (planner catalog models)"
