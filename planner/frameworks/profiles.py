"""Reads the profile, the options, the formats, the modules and targets of a room."""

from collections.abc import Collection
from importlib import import_module
from importlib.resources import files

from planner.hardware.reading.yaml_text import parse_yaml
from planner.specs.frameworks.framework import Option
from planner.specs.frameworks.lacks import Writer
from planner.specs.frameworks.profile import Profile
from planner.specs.frameworks.sourced import Sourced
from planner.specs.frameworks.switches import Needs
from planner.specs.layouts.formats import Formats
from planner.specs.layouts.recompute import RecomputeModule


def read_profile(room: str) -> Profile:
    """Read ``planner/frameworks/<room>/profile.yaml``."""
    blocks = Sourced.model_fields
    given = {k: v for k, v in _profile(room).items() if k not in blocks}
    return Profile.model_validate(given)


def usual_attention(room: str, archs: Collection[str]) -> frozenset[str]:
    """Kernels of attention that a framework runs where it is not told.

    Returns:
        Names; empty where no architecture has a kernel of its own. [text]
    """
    kernel = read_profile(room).attention_kernel
    if isinstance(kernel, str):
        return frozenset({kernel})
    return frozenset(kernel[arch] for arch in archs if arch in kernel)


def _profile(room: str) -> dict[str, object]:
    text = (files("planner.frameworks") / room / "profile.yaml").read_text("utf-8")
    fields: dict[str, object] = parse_yaml(text)
    return fields


def profile_sources(room: str) -> Sourced:
    """Read the sources in ``planner/frameworks/<room>/profile.yaml``."""
    given = _profile(room)
    return Sourced.model_validate({k: given.get(k, {}) for k in Sourced.model_fields})


def default_sources() -> Sourced:
    """Read the sources of the values that a profile leaves at their default."""
    text = (files("planner.frameworks") / "defaults.yaml").read_text("utf-8")
    return Sourced.model_validate(parse_yaml(text))


def read_options(room: str) -> dict[str, dict[str, Option]]:
    """Read ``planner/frameworks/<room>/options.yaml``."""
    text = (files("planner.frameworks") / room / "options.yaml").read_text("utf-8")
    given: dict[str, dict[str, object]] = parse_yaml(text)
    return {
        name: {word: Option.model_validate(entry) for word, entry in words.items()}
        for name, words in given.items()
    }


def read_formats(room: str) -> Formats:
    """Read ``planner/frameworks/<room>/formats.yaml``."""
    text = (files("planner.frameworks") / room / "formats.yaml").read_text("utf-8")
    return Formats.model_validate(parse_yaml(text))


def read_switches(room: str) -> dict[str, Needs]:
    """Read ``planner/frameworks/<room>/switches.yaml``."""
    text = (files("planner.frameworks") / room / "switches.yaml").read_text("utf-8")
    given: dict[str, object] = parse_yaml(text)
    return {name: Needs.model_validate(asked) for name, asked in given.items()}


def read_modules(room: str) -> dict[str, RecomputeModule]:
    """Read ``planner/frameworks/<room>/modules.yaml``."""
    text = (files("planner.frameworks") / room / "modules.yaml").read_text("utf-8")
    given: dict[str, object] = parse_yaml(text)
    return {name: RecomputeModule.model_validate(m) for name, m in given.items()}


def read_recipes(room: str) -> tuple[str, ...]:
    """Read ``planner/frameworks/<room>/recompute.yaml``."""
    text = (files("planner.frameworks") / room / "recompute.yaml").read_text("utf-8")
    given: dict[str, str] = parse_yaml(text)
    return tuple(given)


def writers(room: str, *folders: str) -> tuple[Writer, ...]:
    """Import ``planner/frameworks/<room>/<folder>/lacks.py`` of every target."""
    every = (f"planner.frameworks.{room}.{folder}.lacks" for folder in folders)
    return tuple(import_module(name).WRITER for name in every)
