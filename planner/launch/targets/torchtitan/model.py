"""Model of a plan in torchtitan: a flavour, or a call that builds the model."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from planner.frameworks.torchtitan.families import (
    Builder,
    Router,
    families,
    flavours,
    shapes,
)
from planner.frameworks.torchtitan.model import module_of
from planner.launch.brief import Brief
from planner.models.architecture import Architecture
from planner.models.layers.blocks import Attention, LatentAttention, Mlp, Moe
from planner.models.layers.rotary import scaling_of

Fields = Mapping[str, Any]
LLAMA3 = (
    "factor",
    "low_freq_factor",
    "high_freq_factor",
    "original_max_position_embeddings",
)
"""Fields of Llama 3's rotary scaling. [text]"""
YARN = ("factor", "beta_fast", "beta_slow", "original_max_position_embeddings")
"""Fields of YaRN that torchtitan takes. [text]"""


@dataclass(frozen=True)
class Named:
    """A flavour of torchtitan's own registry.

    Attributes:
        module: Module of torchtitan.models. [text]
        flavour: Name of the flavour in that module. [text]
    """

    module: Builder
    flavour: str


@dataclass(frozen=True)
class Own:
    """A model that is no flavour, for a builder of own_model.py.

    Attributes:
        module: Module of torchtitan.models; names the builder. [text]
        keywords: Arguments of the builder. [-]
    """

    module: Builder
    keywords: Mapping[str, object] = field(default_factory=dict)


def model_of(brief: Brief) -> Named | Own:
    """Choose a flavour with the layers, positions, norms and length of the model."""
    plain = _shape(brief.architecture)
    for (module, name), shape in shapes().items():
        fields = flavours()[module][name]
        alike = _shape(shape) == plain and _turns_alike(brief, fields)
        if alike and _weighs_alike(brief, module, fields):
            return Named(module, name)
    return Own(module_of(brief.architecture), dict(_keywords(brief)))


def _shape(model: Architecture) -> Architecture:
    """Layers alone, without names, lengths and prediction layers."""
    return replace(
        model.thawed(), name="", source="", family="", max_position=None, mtp_layers=0
    )


def _turns_alike(brief: Brief, fields: Fields) -> bool:
    """Tell if a flavour's rotary positions and length suit the plan's model."""
    model = brief.model
    base = families()[brief.architecture.family].base
    kind, mine = scaling_of(model)
    theirs_kind, theirs = scaling_of(fields)
    names = LLAMA3 if kind == "llama3" else YARN
    same = all(mine.get(n, theirs.get(n)) == theirs.get(n) for n in names)
    long = brief.training.seq_len <= fields["max_position_embeddings"]
    return (
        long
        and kind == theirs_kind
        and same
        and _base(model, base) == fields["rope_theta"]
    )


def _base(model: Fields, default: float) -> float:
    parameters = model.get("rope_parameters")
    inside = parameters.get("rope_theta") if isinstance(parameters, Mapping) else None
    return float(str(model.get("rope_theta") or inside or default))


def _weighs_alike(brief: Brief, module: str, fields: Fields) -> bool:
    """Tell if a flavour has the norm epsilon and the router of the plan's model."""
    known = _FLAVOUR_EPS[module]
    epsilon = float(str(brief.model.get("rms_norm_eps") or known))
    mine = families()[brief.architecture.family].router
    theirs = families()[str(fields["model_type"])].router
    if mine is None or theirs is None:
        return epsilon == known
    routed = dict(_router(brief.model, mine)) == dict(_router(fields, theirs))
    return epsilon == known and routed


def _keywords(brief: Brief) -> Iterator[tuple[str, object]]:
    model, block = brief.architecture, brief.architecture.kinds[0].attention
    yield from (("layers", model.layers), ("dim", model.hidden))
    yield from (("vocab", model.vocab), ("heads", block.heads))
    assert isinstance(block, Attention | LatentAttention)
    if isinstance(block, LatentAttention):
        yield from _latent(block)
    else:
        yield from _grouped(brief, block)
    yield from _widths(brief)
    yield "positions", max(model.max_position or 0, brief.training.seq_len)
    yield "theta", _base(brief.model, families()[model.family].base)
    yield "scaling", _scaling(brief.model)
    yield (
        "eps",
        float(
            str(brief.model.get("rms_norm_eps") or _EPS[module_of(brief.architecture)])
        ),
    )


_EPS = {"llama3": 1e-5, "qwen3": 1e-6, "deepseek_v3": 1e-6}
"""Epsilon of the norms where a model's fields give none. [1]"""


_FLAVOUR_EPS = {"llama3": 1e-5, "qwen3": 1e-6, "deepseek_v3": 1e-5}
"""Epsilon of torchtitan 0.3.0's own flavours: RMSNorm.Config, qwen3's _EPS. [1]"""


def _grouped(brief: Brief, block: Attention) -> Iterator[tuple[str, object]]:
    yield "kv_heads", block.kv_heads
    if module_of(brief.architecture) == "qwen3":
        yield from (("head_dim", block.head_dim), ("qk_norm", block.qk_norm))
    yield "tied", brief.architecture.tied_embeddings


def _latent(block: LatentAttention) -> Iterator[tuple[str, object]]:
    yield from (("q_rank", block.q_rank or 0), ("kv_rank", block.kv_rank))
    yield from (("nope_dim", block.nope_dim), ("rope_dim", block.rope_dim))
    yield "value_dim", block.value_dim


def _widths(brief: Brief) -> Iterator[tuple[str, object]]:
    """Widths of the dense layers and of the experts."""
    kinds = brief.architecture.kinds
    dense = next((kind.ffn for kind in kinds if isinstance(kind.ffn, Mlp)), None)
    routed = next((kind.ffn for kind in kinds if isinstance(kind.ffn, Moe)), None)
    latent = isinstance(kinds[0].attention, LatentAttention)
    if dense is not None:
        yield "ffn", dense.ffn
    if latent:
        runs = brief.architecture.runs
        yield "dense_layers", sum(n for k, n in runs if isinstance(k.ffn, Mlp))
    if routed is not None:
        yield from _routed(brief, routed)


def _routed(brief: Brief, block: Moe) -> Iterator[tuple[str, object]]:
    router = families()[brief.architecture.family].router
    assert router is not None
    yield from (("experts", block.experts), ("top_k", block.top_k))
    yield "expert_ffn", block.ffn
    yield from _router(brief.model, router)
    if isinstance(brief.architecture.kinds[0].attention, LatentAttention):
        yield "shared_experts", block.shared_ffn // block.ffn
        yield from (("groups", block.groups), ("top_groups", block.top_groups))


def _router(model: Fields, default: Router) -> Iterator[tuple[str, object]]:
    yield "score", str(model.get("scoring_func") or default.score)
    renormalised = model.get("norm_topk_prob")
    yield (
        "renormalised",
        bool(default.renormalised if renormalised is None else renormalised),
    )
    yield "scale", float(str(model.get("routed_scaling_factor") or default.scale))


def _scaling(model: Fields) -> dict[str, object]:
    """Rotary scaling as keywords of torchtitan's RoPE.Config."""
    kind, fields = scaling_of(model)
    if kind == "llama3":
        return {
            "scaling": "llama",
            "scaling_factor": float(fields.get("factor") or 8.0),
            "low_freq_factor": float(fields.get("low_freq_factor") or 1.0),
            "high_freq_factor": float(fields.get("high_freq_factor") or 4.0),
            "original_max_position_embeddings": int(
                fields.get("original_max_position_embeddings") or 8192
            ),
        }
    if kind == "yarn":
        return {
            "scaling": "yarn",
            "rope_factor": float(fields.get("factor") or 1.0),
            "beta_fast": float(fields.get("beta_fast") or 32),
            "beta_slow": float(fields.get("beta_slow") or 1),
            "original_seq_len": int(
                fields.get("original_max_position_embeddings") or 4096
            ),
        }
    return {}
