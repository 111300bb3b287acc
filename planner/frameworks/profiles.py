"""Reads the profile, the options, the formats, the modules and targets of a room."""

from collections.abc import Collection
from importlib import import_module
from importlib.resources import files

from hardware.reading.yaml_text import parse_yaml
from planner.specs.frameworks.framework import Option
from planner.specs.frameworks.lacks import Writer
from planner.specs.frameworks.profile import Profile
from planner.specs.frameworks.sourced import Sourced
from planner.specs.frameworks.switches import Needs
from planner.specs.layouts.formats import Formats
from planner.specs.layouts.recompute import RecomputeModule


def read_profile(room: str) -> Profile:
    """Read ``planner/frameworks/<room>/profile.yaml``.

    Args:
        room: Name of the framework's folder. [text]

    Returns:
        The default software stack of that framework.
    """
    blocks = Sourced.model_fields
    given = {k: v for k, v in _profile(room).items() if k not in blocks}
    return Profile.model_validate(given)


def usual_attention(room: str, archs: Collection[str]) -> frozenset[str]:
    """Kernels of attention that a framework runs where it is not told.

    Args:
        room: Name of the framework's folder. [text]
        archs: Architectures of the GPUs. [text]

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
    """Read the sources beside the values of ``planner/frameworks/<room>/profile.yaml``.

    Args:
        room: Name of the framework's folder. [text]

    Returns:
        Source or assumption of every value that the file gives. [-]
    """
    given = _profile(room)
    return Sourced.model_validate({k: given.get(k, {}) for k in Sourced.model_fields})


def default_sources() -> Sourced:
    """Read the sources of the values that a profile leaves at their default.

    Returns:
        Source or assumption of every field that has a default. [-]
    """
    text = (files("planner.frameworks") / "defaults.yaml").read_text("utf-8")
    return Sourced.model_validate(parse_yaml(text))


def read_options(room: str) -> dict[str, dict[str, Option]]:
    """Read ``planner/frameworks/<room>/options.yaml``.

    Args:
        room: Name of the framework's folder. [text]

    Returns:
        Changes that every word of every setting makes. [-]
    """
    text = (files("planner.frameworks") / room / "options.yaml").read_text("utf-8")
    given: dict[str, dict[str, object]] = parse_yaml(text)
    return {
        name: {word: Option.model_validate(entry) for word, entry in words.items()}
        for name, words in given.items()
    }


def read_formats(room: str) -> Formats:
    """Read ``planner/frameworks/<room>/formats.yaml``.

    Args:
        room: Name of the framework's folder. [text]

    Returns:
        Formats that gradients and parameters can be sent in.
    """
    text = (files("planner.frameworks") / room / "formats.yaml").read_text("utf-8")
    return Formats.model_validate(parse_yaml(text))


def read_switches(room: str) -> dict[str, Needs]:
    """Read ``planner/frameworks/<room>/switches.yaml``.

    Args:
        room: Name of the framework's folder. [text]

    Returns:
        Needs of a switch in the layout, by field of the profile. [-]
    """
    text = (files("planner.frameworks") / room / "switches.yaml").read_text("utf-8")
    given: dict[str, object] = parse_yaml(text)
    return {name: Needs.model_validate(asked) for name, asked in given.items()}


def read_modules(room: str) -> dict[str, RecomputeModule]:
    """Read ``planner/frameworks/<room>/modules.yaml``.

    Args:
        room: Name of the framework's folder. [text]

    Returns:
        Recompute of each module of a layer, by name, in the file's order. [-]
    """
    text = (files("planner.frameworks") / room / "modules.yaml").read_text("utf-8")
    given: dict[str, object] = parse_yaml(text)
    return {name: RecomputeModule.model_validate(m) for name, m in given.items()}


def read_recipes(room: str) -> tuple[str, ...]:
    """Read ``planner/frameworks/<room>/recompute.yaml``.

    Args:
        room: Name of the framework's folder. [text]

    Returns:
        Combinations of modules that published recipes run again. [text]
    """
    text = (files("planner.frameworks") / room / "recompute.yaml").read_text("utf-8")
    given: dict[str, str] = parse_yaml(text)
    return tuple(given)


def writers(room: str, *folders: str) -> tuple[Writer, ...]:
    """Import ``planner/frameworks/<room>/<folder>/lacks.py`` of every target.

    Args:
        room: Name of the framework's folder. [text]
        folders: Folders of the targets, the preferred target first. [text]

    Returns:
        Writers of launch files, without the code that writes. [-]
    """
    every = (f"planner.frameworks.{room}.{folder}.lacks" for folder in folders)
    return tuple(import_module(name).WRITER for name in every)
