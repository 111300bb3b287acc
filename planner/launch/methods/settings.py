"""Settings of files and of the command that starts a run, by name."""

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from planner.hardware.reading.yaml_text import parse_yaml
from planner.launch.shell.runs import launch_of
from planner.launch.shell.settings import settings_of


def settings_of_files(files: Mapping[str, str]) -> dict[str, Any]:
    """Every setting of the files of a run; options of the command win.

    Returns:
        Values by name, with dots where blocks hold it; those of a model's config.json
        are left out. [-]
    """
    found: dict[str, Any] = {}
    for name, text in files.items():
        its = _parsed(name, text)
        found |= {} if "model_type" in its and "hidden_size" in its else its
    return dict(_flat(found)) | settings_of(launch_of(files).words)


def _parsed(name: str, text: str) -> dict[str, Any]:
    """Content of a file with names at the top; empty for any other."""
    try:
        if name.endswith(".toml"):
            return tomllib.loads(text)
        if not name.endswith((".yaml", ".yml", ".json")):
            return {}
        its = parse_yaml(text.expandtabs())
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return its if isinstance(its, dict) else {}


def _flat(its: Mapping[Any, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Values with dotted names; blocks have their value too."""
    for name, value in its.items():
        yield f"{above}{name}", value
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
