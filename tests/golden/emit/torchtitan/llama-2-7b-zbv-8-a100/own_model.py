"""A model of torchtitan 0.3.0's llama3 blocks in sizes that have no name."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torchtitan.models.common import ComplexRoPE, Embedding, Linear, RMSNorm
from torchtitan.models.llama3 import (
    _EMBEDDING_INIT,
    _EMBEDDING_SKIP_INIT,
    _NORM_INIT,
    Llama3Model,
    _build_llama3_layers,
    _output_linear_init,
    model_registry,
)
from torchtitan.protocols.model_spec import ModelSpec


def spec_of(config: Any, converters: Sequence[Any]) -> ModelSpec:
    """The family's bundle around a model of our own."""
    for converter in converters:
        config = converter.build().convert(config)
    return replace(model_registry("debugmodel"), flavor="own", model=config)


def llama3(
    *,
    layers: int,
    dim: int,
    vocab: int,
    heads: int,
    kv_heads: int,
    tied: bool,
    ffn: int,
    positions: int,
    theta: float,
    scaling: dict[str, Any],
    eps: float,
    converters: Sequence[Any] = (),
) -> ModelSpec:
    """Llama 3's blocks."""
    config = Llama3Model.Config(
        dim=dim,
        vocab_size=vocab,
        enable_weight_tying=tied,
        tok_embeddings=Embedding.Config(
            num_embeddings=vocab,
            embedding_dim=dim,
            param_init=_EMBEDDING_SKIP_INIT if tied else _EMBEDDING_INIT,
        ),
        norm=RMSNorm.Config(normalized_shape=dim, eps=eps, param_init=_NORM_INIT),
        lm_head=Linear.Config(
            in_features=dim, out_features=vocab, param_init=_output_linear_init(dim)
        ),
        layers=_build_llama3_layers(
            n_layers=layers,
            dim=dim,
            n_heads=heads,
            n_kv_heads=kv_heads,
            hidden_dim=ffn,
            attn_backend="flex",
            rope=ComplexRoPE.Config(
                dim=dim // heads, max_seq_len=positions, theta=theta, **scaling
            ),
        ),
    )
    for layer in config.layers:
        layer.attention_norm.eps = layer.ffn_norm.eps = eps
    return spec_of(config, converters)
