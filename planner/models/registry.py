"""The model families, and the choice among them that a config makes."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from planner.models.architecture import Architecture
from planner.models.config import FamilyConfig
from planner.models.deepseek import DeepseekV2Config, DeepseekV3Config
from planner.models.errors import ModelConfigError
from planner.models.gpt import Gpt2Config
from planner.models.llama import LlamaConfig, MistralConfig
from planner.models.mixtral import MixtralConfig

FAMILIES: tuple[type[FamilyConfig], ...] = (
    Gpt2Config,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    DeepseekV2Config,
    DeepseekV3Config,
)


def from_config(
    config: Mapping[str, Any], *, source: str, name: str | None = None
) -> Architecture:
    """Architecture that a Hugging Face config describes.

    architectures[0] decides; model_type does where it is absent. Keys that the
    family does not read are ignored.

    Args:
        config: Content of a config.json.
        source: Where it comes from: a citation, URL or path.
        name: Name for the model; `_name_or_path` or the family's unless given.

    Returns:
        The architecture.

    Raises:
        ModelConfigError: The architecture is not supported, or a field is wrong.
    """
    family = _family(config, source)
    known = name or config.get("_name_or_path") or family.family
    return family.read(config, source).architecture(str(known), source)


def _family(config: Mapping[str, Any], source: str) -> type[FamilyConfig]:
    hf_class, model_type = _declared(config, source)
    by_class = {family.hf_class: family for family in FAMILIES}
    by_type = {family.family: family for family in FAMILIES}
    chosen = by_type.get(model_type) if hf_class is None else by_class.get(hf_class)
    if chosen is None:
        raise _unsupported(hf_class, model_type, source)
    # A derived model may carry a model_type of its own; another family's is an error.
    if by_type.get(model_type, chosen) is not chosen:
        raise ModelConfigError(
            f"{source}: architectures {hf_class!r} contradicts model_type "
            f"{model_type!r}; {hf_class} goes with {chosen.family!r}"
        )
    return chosen


def _declared(config: Mapping[str, Any], source: str) -> tuple[str | None, str]:
    classes, model_type = config.get("architectures"), config.get("model_type")
    if classes is not None and not (
        isinstance(classes, list) and classes and isinstance(classes[0], str)
    ):
        raise ModelConfigError(
            f"{source}: architectures is {classes!r}; it has to be a list with one "
            'class name, such as ["LlamaForCausalLM"]'
        )
    if model_type is not None and not isinstance(model_type, str):
        raise ModelConfigError(
            f"{source}: model_type is {model_type!r}; it has to be a text such as "
            "'llama'"
        )
    return (classes[0] if classes else None), model_type or ""


def _unsupported(
    hf_class: str | None, model_type: str, source: str
) -> ModelConfigError:
    given = f"architecture {hf_class!r}" if hf_class else f"model_type {model_type!r}"
    if not (hf_class or model_type):
        given = "a config with neither architectures nor model_type"
    label = "hf_class" if hf_class else "family"
    stems = {_stem(getattr(f, label)): f for f in FAMILIES}
    near = [
        stems[stem] for stem in get_close_matches(_stem(hf_class or model_type), stems)
    ]
    names = ", ".join(getattr(f, label) for f in near)
    nearest = f"; nearest: {names}" if near else ""
    supported = ", ".join(getattr(f, label) for f in FAMILIES)
    family = near[0] if near else LlamaConfig
    return ModelConfigError(
        f"{source}: {given} is not supported{nearest}; supported: {supported}. "
        f"A model of the same blocks can be described with model_type: "
        f"{family.family} and {', '.join(family.required_fields())}"
    )


def _stem(name: str) -> str:
    # The common ending would make all classes look alike.
    return name.lower().split("for")[0]
