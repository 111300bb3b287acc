"""The model of a measured row: a preset where name and shape agree, else its blocks."""

import re
from dataclasses import replace
from functools import cache

from planner.calibration.notes.rules import rules
from planner.calibration.rows.blocks import ModelBlock, MoeBlock
from planner.calibration.rows.unsupported import UnsupportedError
from planner.models import Architecture, preset, preset_names
from planner.models.architecture import runs_of
from planner.models.layers.blocks import (
    Attention,
    LatentAttention,
    LayerKind,
    Mlp,
    Moe,
    Norm,
)

_LATENT = {
    "q_rank": r"q_lora (\d+)",
    "kv_rank": r"kv_lora (\d+)",
    "nope_dim": r"qk_nope (\d+)",
    "rope_dim": r"qk_rope (\d+)",
    "value_dim": r"\bv (\d+)",
}
_INNER_RATIO = 4
"""Inner over model width of a GPT that states none. [1]"""


def architecture_of(block: ModelBlock, seq_len: int) -> Architecture:
    """The architecture that a model block describes.

    A preset stands in where its name is the block's and no stated number differs: it
    also knows windows, norms and latent ranks. Multi-token prediction is always the
    block's: most software trains without it.

    Args:
        block: Shape as stated. [-]
        seq_len: Rows of a learned position table, if it has one. [token]
    """
    known = _preset_like(block)
    if known is not None:
        return replace(known, mtp_layers=block.mtp_layers or 0)
    try:
        return _built(block, seq_len)
    except (ValueError, ZeroDivisionError) as error:
        raise UnsupportedError(f"model: {error}") from error


@cache
def _presets() -> dict[str, str]:
    """Presets by their name without punctuation."""
    return {_plain(name): name for name in preset_names()}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _preset_like(block: ModelBlock) -> Architecture | None:
    name = _presets().get(_plain(block.name))
    if name is None:
        return None
    model = preset(name)
    return model if _same_shape(block, model) else None


def _same_shape(block: ModelBlock, model: Architecture) -> bool:
    """True where no number of the block contradicts the model."""
    first = model.kinds[-1].attention
    theirs = {
        "layers": model.layers,
        "hidden": model.hidden,
        "heads": first.heads,
        "vocab": model.vocab,
        "kv_heads": getattr(first, "kv_heads", first.heads),
        "head_dim": getattr(first, "head_dim", None),
        "tied_embeddings": model.tied_embeddings,
    }
    ours = {key: getattr(block, key) for key in theirs}
    alike = all(
        theirs[key] is None or value is None or value == theirs[key]
        for key, value in ours.items()
    )
    return alike and bool(block.moe) == bool(model.expert_parameters)


def _built(block: ModelBlock, seq_len: int) -> Architecture:
    """An architecture from the numbers of the block alone."""
    norm: Norm = "rmsnorm" if _gated(block) else "layernorm"
    learned = "learned" in block.text("position") or (
        not _gated(block) and not re.search("rope|rotary|alibi", block.text("position"))
    )
    return Architecture(
        name=block.name or "unnamed",
        family=block.family or "measured",
        hidden=block.hidden,
        vocab=block.vocab or _vocab(block),
        runs=runs_of(_layers(block, norm)),
        tied_embeddings=bool(block.tied_embeddings),
        learned_positions=seq_len if learned else 0,
        norm=norm,
        mtp_layers=block.mtp_layers or 0,
        source="the row",
        max_position=None,
    )


def _vocab(block: ModelBlock) -> int:
    """Entries of a vocabulary that a row does not state."""
    rule = rules().vocabulary
    return rule.gated if _gated(block) else rule.other


def _gated(block: ModelBlock) -> bool:
    return bool(block.gated_mlp)


def _layers(block: ModelBlock, norm: Norm) -> list[LayerKind]:
    attention, mlp = _attention(block), _mlp(block)
    parallel = bool(block.parallel_blocks)
    dense = LayerKind("dense", attention, mlp, norm, parallel=parallel)
    if block.moe is None:
        return [dense] * block.layers
    experts = LayerKind("moe", attention, _moe(block, block.moe), norm)
    sparse = _sparse_layers(block.moe, block.layers)
    return [experts if layer in sparse else dense for layer in range(block.layers)]


def _sparse_layers(moe: MoeBlock, layers: int) -> set[int]:
    """Layers that have experts: all after the dense ones, or those of the pattern."""
    if moe.layer_freq_spec is None:
        return set(range(moe.dense_layers, layers))
    terms = re.findall(r"\[([01, ]+)\]\s*\*?\s*(\d*)", moe.layer_freq_spec)
    flags = [
        int(flag)
        for pattern, times in terms
        for flag in re.findall("[01]", pattern) * int(times or 1)
    ]
    return {layer for layer, flag in enumerate(flags[:layers]) if flag}


def _attention(block: ModelBlock) -> Attention | LatentAttention:
    if "mla" in block.text("attention"):
        return _latent(block)
    biased = _biased(block)
    return Attention(
        hidden=block.hidden,
        heads=block.heads,
        kv_heads=block.kv_heads or block.heads,
        head_dim=block.head_dim or _head_dim(block),
        qkv_bias=biased,
        out_bias=biased,
        window=block.sliding_window,
    )


def _head_dim(block: ModelBlock) -> int:
    if block.hidden % block.heads:
        raise UnsupportedError(
            f"model: hidden {block.hidden} is no multiple of heads {block.heads}, "
            "and head_dim is not given"
        )
    return block.hidden // block.heads


def _latent(block: ModelBlock) -> LatentAttention:
    """Latent attention of the stated ranks; with none stated, of the rule's ranks."""
    found = {
        name: int(match[1])
        for name, pattern in _LATENT.items()
        if (match := re.search(pattern, block.text("attention")))
    }
    rule = rules().latent_attention.model_dump(exclude={"source"})
    ranks = {**rule, "q_rank": None, **found} if found else rule
    return LatentAttention(hidden=block.hidden, heads=block.heads, **ranks)


def latent_assumed(block: ModelBlock) -> bool:
    """Tell if the ranks of a model's latent attention had to be assumed.

    Returns:
        True for latent attention without any rank.
    """
    text = block.text("attention")
    if _preset_like(block) is not None:
        return False
    stated = any(re.search(pattern, text) for pattern in _LATENT.values())
    return "mla" in text and not stated


def _biased(block: ModelBlock) -> bool:
    """Biases as stated; without a word, those of a GPT and none of a gated model."""
    return not _gated(block) if block.biases is None else block.biases


def _mlp(block: ModelBlock) -> Mlp:
    inner = block.ffn_hidden or _INNER_RATIO * block.hidden
    return Mlp(block.hidden, inner, gated=_gated(block), bias=_biased(block))


def _moe(block: ModelBlock, moe: MoeBlock) -> Moe:
    inner = moe.expert_ffn or block.ffn_hidden or _INNER_RATIO * block.hidden
    return Moe(
        hidden=block.hidden,
        experts=moe.experts,
        top_k=moe.topk,
        ffn=inner,
        shared_ffn=moe.shared_experts * inner,
        gated=_gated(block),
    )
