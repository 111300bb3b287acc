"""The model of one line: a preset in any spelling, a file, or a hub id."""

import re
from dataclasses import dataclass
from pathlib import Path

from planner.errors import BadInputError, did_you_mean
from planner.models import (
    Architecture,
    ModelConfigError,
    UnsupportedModelError,
    find_config,
    from_config,
    load_model,
    preset_hub_ids,
    preset_names,
    read_config,
    read_preset,
)
from planner.models.likeness import PLANNED_AS
from planner.specs.reading.read import Fields

EXAMPLE = "--model Qwen/Qwen2.5-7B"
"""A model that is known without a network. [text]"""
_TUNED = re.compile(r"[-_](instruct|chat|it|base|hf|pt)(-hf)?$")
"""Ends of names whose models have the blocks of the name before."""
_ENDS = ("-hf", "-base", "-pt", "-instruct", "-it")
"""Ends that a preset's own hub id may have where the given name has others. [text]"""


@dataclass(frozen=True)
class Named:
    """A model as a job names it.

    Attributes:
        given: Preset, path, hub id, or inline fields. [-]
        architecture: The model. [-]
        told: Assumption in words; empty where the name says all. [text]
    """

    given: str | Fields
    architecture: Architecture
    told: str = ""


def model_named(reference: str, family: str | None = None) -> Named:
    """Look a model up.

    A preset wins over a file, a file over the hub. A tuned model of the hub, as
    `-Instruct`, has the blocks of its base, which may be a preset.
    """
    try:
        if family is not None:
            return _standing_in(reference, family)
        return known_model(reference) or _elsewhere(reference)
    except (ModelConfigError, OSError) as error:
        raise BadInputError(
            _told(error, reference),
            field="--model",
            allowed=f"a preset, a hub id or a config.json, as {EXAMPLE}",
        ) from error


def _told(error: ModelConfigError | OSError, reference: str) -> str:
    """Say why a model is refused, with what is nearest to its name or its fields."""
    if not reference.strip():
        return "the model has no name"
    problem = error.problem if isinstance(error, ModelConfigError) else str(error)
    if isinstance(error, UnsupportedModelError):
        return problem
    if _is_path(reference):
        return str(error)
    known = preset_hub_ids() if "/" in reference[1:] else preset_names()
    near = did_you_mean(reference.strip().lower(), known)
    return f"{problem}; {near}"


def known_model(reference: str) -> Named | None:
    """Look a model up among the presets alone, without a file or a network.

    Returns:
        The model; None where no preset has these blocks. [-]
    """
    plain, ids = reference.strip().lower(), preset_hub_ids()
    name = ids.get(plain, plain)
    if name in preset_names():
        return Named(name, load_model(name))
    if _is_path(reference):
        return None
    same = _base_of(plain)
    return _tuned(reference.strip(), same) if same else _spelt(plain)


def _is_path(reference: str) -> bool:
    return Path(reference).expanduser().exists()


def _base_of(plain: str) -> str | None:
    """The preset whose blocks a tuned model has, where its name says so."""
    base, ids = _TUNED.sub("", plain), preset_hub_ids()
    if base in preset_names():
        return base
    return next((ids[base + end] for end in ("", *_ENDS) if base + end in ids), None)


def _spelt(reference: str) -> Named | None:
    """The preset that a name means but for its marks, as `Llama3.1:8B`."""
    whole = re.sub(r"[\s_:]+", "-", reference.lower())
    if "/" in whole:
        return None
    for name in (whole, _TUNED.sub("", whole)):
        same = _preset_like(name)
        if same is not None and name == whole:
            return Named(same, load_model(same))
        if same is not None:
            return _tuned(whole, same)
    return None


def _preset_like(name: str) -> str | None:
    """The preset of a name; one that differs by marks alone, if it is the only one."""
    alike = [preset for preset in preset_names() if _bare(preset) == _bare(name)]
    found = [preset for preset in alike if preset == name] or alike
    return found[0] if len(found) == 1 else None


def _bare(name: str) -> str:
    """Letters and digits of a name."""
    return re.sub(r"[^a-z0-9]", "", name)


def _tuned(reference: str, same: str) -> Named:
    """A tuned model, with the blocks of a preset and weights of its own."""
    told = f"the blocks of {same} for {reference}"
    if "/" not in reference:
        return Named(same, load_model(same), told)
    fields = {"name": reference, **read_preset(same).config}
    return Named(fields, load_model(same), told)


def _standing_in(reference: str, family: str) -> Named:
    """A model with the blocks of another family, as the user asks for it."""
    known = known_model(reference)
    if known is None:
        config = read_config(reference)
    elif isinstance(known.given, str):
        config = dict(read_preset(known.given).config)
    else:
        config = dict(known.given)
    file = Path(reference)
    own = file.parent.name if file.name == "config.json" else file.stem
    name = (own or "model") if _is_path(reference) else reference
    fields = {"name": name, **config, PLANNED_AS: family}
    return Named(fields, from_config(fields, source=reference, name=name))


def _elsewhere(reference: str) -> Named:
    """A model of a file or of the hub."""
    found = load_model(reference)
    file = find_config(reference)
    local = _is_path(reference)
    return Named(str(file.resolve()) if local else reference, found)
