"""The model families, and the choice among them that a config makes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.errors import short
from planner.hardware.reading.names import name_like
from planner.hardware.reading.nearest import alike
from planner.models.architecture import Architecture
from planner.models.config import FamilyConfig
from planner.models.errors import ModelConfigError, UnsupportedModelError
from planner.models.families.bailing import BailingMoeV2Config
from planner.models.families.bloom import BloomConfig
from planner.models.families.cohere import Cohere2Config, CohereConfig
from planner.models.families.dbrx import DbrxConfig
from planner.models.families.deepseek import (
    DeepseekV2Config,
    DeepseekV3Config,
    DeepseekV32Config,
    GlmMoeDsaConfig,
)
from planner.models.families.deepseek_v4 import DeepseekV4Config
from planner.models.families.ernie import ErnieConfig, ErnieMoeConfig
from planner.models.families.falcon import FalconConfig
from planner.models.families.falcon_h1 import FalconH1Config
from planner.models.families.gemma import Gemma2Config, Gemma3Config, GemmaConfig
from planner.models.families.gemma3n import Gemma3nConfig
from planner.models.families.gemma4 import Gemma4Config
from planner.models.families.glm import Glm4Config, Glm4MoeConfig, GlmConfig
from planner.models.families.gpt import Gpt2Config
from planner.models.families.gpt_bigcode import GptBigCodeConfig
from planner.models.families.gpt_neox import GptNeoxConfig
from planner.models.families.gpt_oss import GptOssConfig
from planner.models.families.hunyuan import HunyuanConfig, HunyuanMoeConfig
from planner.models.families.jamba import JambaConfig
from planner.models.families.kimi import KimiLinearConfig
from planner.models.families.llama import (
    GraniteConfig,
    Llama4Config,
    LlamaConfig,
    MistralConfig,
    SmolLm3Config,
)
from planner.models.families.minimax import MinimaxConfig, MinimaxM2Config
from planner.models.families.mixtral import GrokConfig, MixtralConfig
from planner.models.families.mpt import MptConfig
from planner.models.families.nemotron import NemotronConfig, NemotronNasConfig
from planner.models.families.nemotron_h import NemotronHConfig
from planner.models.families.olmo import (
    Olmo2Config,
    Olmo3Config,
    OlmoConfig,
    OlmoeConfig,
)
from planner.models.families.opt import OptConfig
from planner.models.families.phi import Phi3Config
from planner.models.families.qwen import (
    Qwen2Config,
    Qwen2MoeConfig,
    Qwen3Config,
    Qwen3MoeConfig,
)
from planner.models.families.qwen_next import (
    Qwen3NextConfig,
    Qwen35Config,
    Qwen35MoeConfig,
)
from planner.models.families.seed import SeedOssConfig
from planner.models.families.starcoder2 import Starcoder2Config
from planner.models.families.zamba2 import Zamba2Config
from planner.models.likeness import (
    PLANNED_AS,
    left_out,
    most_alike,
    not_understood,
    told,
)

FAMILIES: tuple[type[FamilyConfig], ...] = (
    Gpt2Config,
    LlamaConfig,
    GptNeoxConfig,
    GptBigCodeConfig,
    OptConfig,
    BloomConfig,
    MptConfig,
    FalconConfig,
    Starcoder2Config,
    Llama4Config,
    GraniteConfig,
    SmolLm3Config,
    MistralConfig,
    MixtralConfig,
    GrokConfig,
    DbrxConfig,
    Qwen2Config,
    Qwen2MoeConfig,
    Qwen3Config,
    Qwen3MoeConfig,
    GemmaConfig,
    Gemma2Config,
    Gemma3Config,
    Phi3Config,
    OlmoConfig,
    Olmo2Config,
    Olmo3Config,
    OlmoeConfig,
    CohereConfig,
    Cohere2Config,
    GlmConfig,
    Glm4Config,
    Glm4MoeConfig,
    GptOssConfig,
    NemotronConfig,
    NemotronNasConfig,
    DeepseekV2Config,
    DeepseekV3Config,
    MinimaxM2Config,
    HunyuanConfig,
    HunyuanMoeConfig,
    ErnieConfig,
    ErnieMoeConfig,
    BailingMoeV2Config,
    SeedOssConfig,
    Qwen3NextConfig,
    Qwen35Config,
    Qwen35MoeConfig,
    NemotronHConfig,
    DeepseekV32Config,
    GlmMoeDsaConfig,
    KimiLinearConfig,
    Gemma3nConfig,
    Gemma4Config,
    DeepseekV4Config,
    FalconH1Config,
    JambaConfig,
    MinimaxConfig,
    Zamba2Config,
)

MOST_PARAMETERS = 10**15
"""Most parameters of a model; the largest published model has about 10^12. [1]"""


def from_config(
    config: Mapping[str, Any], *, source: str, name: str | None = None
) -> Architecture:
    """Architecture that a Hugging Face config describes.

    architectures[0] decides; model_type does where it is absent; planned_as names a
    family that stands in for another. Keys that the family does not read are ignored.
    Of a model with several parts the text part is read, under text_config.

    Args:
        config: Content of a config.json.
        source: Citation, URL or path of the config.
        name: Name for the model; `_name_or_path` or the family's unless given.

    Raises:
        ModelConfigError: The architecture is not supported, or a field is wrong.
    """
    whole, config = config, _text_part(config)
    family = _stand_in(config, source) or _family(config, source)
    known = name or config.get("_name_or_path") or family.family
    found = family.read(config, source).architecture(name_like(str(known)), source)
    if found.parameters > MOST_PARAMETERS:
        raise ModelConfigError(
            f"{source}: the model has {found.parameters:.3g} parameters; at most "
            f"{MOST_PARAMETERS:.0e} are priced, a thousand times the largest"
        )
    return replace(found, fields=config, left_out=left_out(family, config, whole))


def _stand_in(config: Mapping[str, Any], source: str) -> type[FamilyConfig] | None:
    """Family that the user lets stand in for the model's own; None without a word."""
    given = config.get(PLANNED_AS)
    known = {name: one for one in FAMILIES for name in (one.family, *one.aliases)}
    if given is not None and given not in known:
        near = ", ".join(alike(str(given), known)) or ", ".join(known)
        raise ModelConfigError(
            f"{source}: {PLANNED_AS} is {short(given)}; families: {near}"
        )
    return None if given is None else known[given]


def _family(config: Mapping[str, Any], source: str) -> type[FamilyConfig]:
    hf_class, model_type = _declared(config, source)
    by_class = {n: f for f in FAMILIES for n in (f.hf_class, *f.aliases)}
    by_type = {n: f for f in FAMILIES for n in (f.family, *f.aliases)}
    chosen = by_type.get(model_type) if hf_class is None else by_class.get(hf_class)
    if chosen is None:
        raise _unsupported(hf_class, model_type, config, source)
    # A derived model may carry a model_type of its own; another family's is an error.
    if by_type.get(model_type, chosen) is not chosen:
        raise ModelConfigError(
            f"{source}: architectures {hf_class!r} contradicts model_type "
            f"{model_type!r}; {hf_class} goes with {chosen.family!r}"
        )
    return chosen


def _text_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Text part of a multi-modal config, or the config itself."""
    text = config.get("text_config")
    if not isinstance(text, Mapping):
        return config
    # Tied embeddings may be stated outside; the class belongs to the whole model.
    outer = ("tie_word_embeddings", "_name_or_path", PLANNED_AS)
    return {k: config[k] for k in outer if k in config} | dict(text)


def _declared(config: Mapping[str, Any], source: str) -> tuple[str | None, str]:
    classes, model_type = config.get("architectures"), config.get("model_type")
    if classes is not None and not (
        isinstance(classes, list) and classes and isinstance(classes[0], str)
    ):
        raise ModelConfigError(
            f"{source}: architectures is {short(classes)}; it has to be a list with "
            'one class name, such as ["LlamaForCausalLM"]'
        )
    if model_type is not None and not isinstance(model_type, str):
        raise ModelConfigError(
            f"{source}: model_type is {short(model_type)}; it has to be a text such as "
            "'llama'"
        )
    return (classes[0] if classes else None), model_type or ""


def _unsupported(
    hf_class: str | None, model_type: str, config: Mapping[str, Any], source: str
) -> ModelConfigError:
    given = (
        f"architecture {short(hf_class)}"
        if hf_class
        else f"model_type {short(model_type)}"
    )
    if not (hf_class or model_type):
        given = "a config with neither architectures nor model_type"
    names = [value for value in config.values() if isinstance(value, str)]
    if not (hf_class or model_type) and len(config) == len(names) == 1:
        return ModelConfigError(
            f"{source}: a preset, a hub id or a path stands alone, as model: {names[0]}"
        )
    label = "hf_class" if hf_class else "family"
    stems = {_stem(getattr(f, label)): f for f in FAMILIES}
    near = [stems[stem] for stem in alike(_stem(hf_class or model_type), stems)]
    close = ", ".join(getattr(f, label) for f in near)
    nearest = f"; nearest: {close}" if near else ""
    supported = ", ".join(getattr(f, label) for f in FAMILIES)
    family = near[0] if near else LlamaConfig
    return UnsupportedModelError(
        f"{source}: {given} is not supported{nearest}{_likeness(config)}",
        f"supported: {supported}. "
        f"A model of the same blocks can be described with model_type: "
        f"{family.family} and {', '.join(family.required_fields())}",
    )


def _likeness(config: Mapping[str, Any]) -> str:
    """Say which family a config's fields are of, and which of them it would lose."""
    family = most_alike(FAMILIES, config)
    if family is None:
        return ""
    lost = not_understood(family, config)
    missing = f"all but {told(lost)}" if lost else "all"
    return (
        f"; by its fields it is like {family.family}, which understands {missing}: "
        f"--as {family.family} plans it so and says what it leaves out"
    )


def _stem(name: str) -> str:
    # The common ending would make all classes look alike.
    return name.lower().split("for")[0]
