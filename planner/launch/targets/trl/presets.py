"""Files of accelerate's that TRL brings along, by the name that it takes."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

from planner.hardware.reading.yaml_text import parse_yaml

FILE = Path(__file__).with_name("presets.yaml")


class _Presets(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    presets: dict[str, dict[str, Any]]


@cache
def presets() -> Mapping[str, Mapping[str, Any]]:
    """Keys of accelerate.yaml by name of the preset. [-]."""
    return _Presets.model_validate(parse_yaml(FILE.read_text())).presets


def with_preset(files: Mapping[str, str], name: object) -> dict[str, str]:
    """Files with the one of accelerate's that a name stands for."""
    preset = presets().get(str(name))
    if preset is None or str(name) in files:
        return dict(files)
    return {**files, str(name): yaml.safe_dump(dict(preset))}
