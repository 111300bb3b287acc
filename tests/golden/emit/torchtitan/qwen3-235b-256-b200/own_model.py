"""A model of torchtitan 0.3.0's qwen3 blocks in sizes that have no name."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torchtitan.models.common import CosSinRoPE, Embedding, Linear
from torchtitan.models.common.nn_modules import RMSNorm
from torchtitan.models.qwen3 import (
    _EMBEDDING_INIT,
    _EMBEDDING_SKIP_INIT,
    _LINEAR_INIT,
    _NORM_INIT,
    Qwen3Model,
    _build_qwen3_layers,
    _build_qwen3_moe_layers,
    model_registry,
)
from torchtitan.protocols.model_spec import ModelSpec


def spec_of(config: Any, converters: Sequence[Any]) -> ModelSpec:
    """The family's bundle around a model of our own."""
    for converter in converters:
        config = converter.build().convert(config)
    return replace(model_registry("debugmodel"), flavor="own", model=config)


def qwen3(
    *,
    layers: int,
    dim: int,
    vocab: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    qk_norm: bool,
    tied: bool,
    positions: int,
    theta: float,
    scaling: dict[str, Any],
    eps: float,
    ffn: int = 0,
    experts: int = 0,
    top_k: int = 0,
    expert_ffn: int = 0,
    score: str = "softmax",
    renormalised: bool = True,
    scale: float = 1.0,
    moe_comm_backend: str = "standard",
    converters: Sequence[Any] = (),
) -> ModelSpec:
    """Qwen 3's blocks: dense, or all of them with experts."""
    common: dict[str, Any] = {
        "n_layers": layers,
        "dim": dim,
        "n_heads": heads,
        "n_kv_heads": kv_heads,
        "head_dim": head_dim,
        "attn_backend": "flex",
        "rope": CosSinRoPE.Config(
            dim=head_dim, max_seq_len=positions, theta=theta, **scaling
        ),
    }
    if experts:
        blocks = _build_qwen3_moe_layers(
            moe_hidden_dim=expert_ffn,
            num_experts=experts,
            top_k=top_k,
            moe_comm_backend=moe_comm_backend,
            **common,
        )
    else:
        blocks = _build_qwen3_layers(hidden_dim=ffn, **common)
    for layer in blocks:
        layer.attention_norm.eps = layer.ffn_norm.eps = eps
        if not qk_norm:
            layer.attention.qk_norm = None
        if experts:
            layer.moe.router.score_func = score
            layer.moe.router.route_norm = renormalised
            layer.moe.router.route_scale = scale
    config = Qwen3Model.Config(
        vocab_size=vocab,
        dim=dim,
        enable_weight_tying=tied,
        norm=RMSNorm.Config(normalized_shape=dim, eps=eps, param_init=_NORM_INIT),
        tok_embeddings=Embedding.Config(
            num_embeddings=vocab,
            embedding_dim=dim,
            param_init=_EMBEDDING_SKIP_INIT if tied else _EMBEDDING_INIT,
        ),
        lm_head=Linear.Config(
            in_features=dim, out_features=vocab, param_init=_LINEAR_INIT
        ),
        layers=blocks,
    )
    spec = spec_of(config, converters)
    # Weights of a model without these norms have other names than Qwen 3's.
    return spec if qk_norm else replace(spec, state_dict_adapter=None)
