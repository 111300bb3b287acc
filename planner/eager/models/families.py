"""Sizes and family traits of a model, read from its configuration."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from planner.eager.case import EagerCase, Unsupported
from planner.hardware.reading.yaml_text import parse_yaml

Norm = Literal["rms", "rms_plus_one", "rms_outside", "layer", "layer_fixed"]


class Traits(BaseModel):
    """Differences of a family's modules from Llama's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    norm: Norm = "rms"
    mlp: Literal["gated", "gated_fused", "plain"] = "gated"
    block: Literal["before", "after", "both"] = "before"
    qkv_bias: bool = False
    whole_heads: bool = False
    qk_norm: Literal["head", "turned_head", "whole"] | None = None
    fused_qkv: bool = False
    rotary: Literal["all", "joined", "fp32"] = "all"
    angles: int = 1
    unit_head: bool = False
    scaled: Literal["by_buffer", "by_number"] | None = None
    softcaps: bool = False
    alternating_masks: bool = False
    experts: Literal["mixtral", "qwen2_moe", "qwen3_moe", "olmoe"] | None = None


class Architecture(BaseModel):
    """Sizes of a decoder in the words of the reports, with its family's traits."""

    model_config = ConfigDict(frozen=True)

    family: str
    traits: Traits
    h: int
    f: int
    layers: int
    a: int
    g: int
    d: int
    vocabulary: int
    tied: bool
    activation: str
    fields: dict[str, Any]

    @property
    def qkv_bias(self) -> bool:
        """True if the projections of queries, keys and values have biases."""
        names = ("attention_bias", "use_bias", "use_qkv_bias")
        return self.traits.qkv_bias or any(self.fields.get(name) for name in names)

    @property
    def out_bias(self) -> bool:
        """True if the projection of the attention's output has a bias."""
        return any(self.fields.get(name) for name in ("attention_bias", "use_bias"))

    @property
    def residual_drop(self) -> bool:
        """True if dropout thins the results that blocks add to the stream."""
        names = ("resid_pdrop", "residual_dropout")
        return any(self.fields.get(name) for name in names)

    @property
    def rotary(self) -> int:
        """Rotated elements of a head. [elements]."""
        given = self.fields.get("rope_parameters") or {}
        names = ("partial_rotary_factor", "rotary_pct")
        parts = [self.fields[name] for name in names if name in self.fields]
        default = 0.25 if self.family == "gpt_neox" else 1.0
        parts.append(given.get("partial_rotary_factor", default))
        return int(self.d * parts[0])


@cache
def _table() -> dict[str, Any]:
    text = files("planner.eager.models").joinpath("families.yaml").read_text()
    table: dict[str, Any] = parse_yaml(text)
    return table


def families() -> list[str]:
    """Families that the replay knows.

    Returns:
        Names of the families as ``model_type`` spells them. [names]
    """
    return sorted(_table())


NAMES = {
    "h": ("hidden_size", "n_embd"),
    "f": ("intermediate_size", "n_inner", "ffn_dim"),
    "layers": ("num_hidden_layers", "n_layer"),
    "a": ("num_attention_heads", "n_head"),
    "g": ("num_key_value_heads",),
    "activation": ("hidden_act", "hidden_activation", "activation_function"),
}


def architecture(case: EagerCase) -> Architecture:
    """Read the model of a case.

    Args:
        case: The case. [case]

    Returns:
        Sizes and traits of the model. [architecture]

    Raises:
        Unsupported: When the family is not known or a size is missing.
    """
    given = dict(case.model)
    family = given.pop("family", given.pop("model_type", "llama"))
    if family not in _table():
        raise Unsupported(f"no operations for the family {family}")
    row = _table()[family]
    fields = {**row["defaults"], **given}
    short = {key: _first(fields, names) for key, names in NAMES.items()}
    if case.layers is not None:
        short["layers"] = case.layers
    short["g"] = short["g"] or short["a"]
    short["f"] = short["f"] or 4 * short["h"]
    return Architecture(
        family=family,
        traits=Traits(**row.get("traits", {})),
        d=fields.get("head_dim") or short["h"] // short["a"],
        vocabulary=fields["vocab_size"],
        tied=bool(fields["tie_word_embeddings"]),
        fields=fields,
        **short,
    )


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((fields[name] for name in names if name in fields), None)
