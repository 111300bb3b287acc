"""Models that Megatron-Core's GPTModel has arguments for."""

from collections.abc import Iterator

from planner.frameworks.megatron.families import activation_of, activations, families
from planner.frameworks.megatron.rotation import rotary_lacks
from planner.models.architecture import Architecture
from planner.models.asked import Asked
from planner.models.layers.blocks import LayerKind, Mlp, Moe
from planner.specs.frameworks.lacks import Lack


def model_lacks(asked: Asked) -> Iterator[Lack]:
    """Features of a model that Megatron-Core's GPTModel has no arguments for."""
    family = families().get(asked.model.family)
    if family is None:
        known = "the families " + ", ".join(families())
        name = asked.model.family
        yield Lack("pretrain_gpt.py has no such blocks", "spec.model", name, known)
        return
    for what in (*_block_lacks(asked.model), *rotary_lacks(asked)):
        yield _lack(what, asked.model.family)
    activation = activation_of(family, asked.fields)
    its = activations().get(activation)
    gated = dense_of(asked.model).gated
    if its is None or its.gated != gated:
        yield _lack(f"activation {activation} here", asked.model.family)


def _block_lacks(model: Architecture) -> Iterator[str]:
    kinds = model.kinds
    if len({kind.attention for kind in kinds}) > 1:
        yield "layers whose attentions differ"
    if any(kind.parallel for kind in kinds):
        yield "attention and MLP side by side"
    if model.embedding_norm:
        yield "norm after the embedding"
    if model.logit_cap is not None or any(_cap(kind) for kind in kinds):
        yield "capped logits"
    if any(kind.norms > 2 for kind in kinds):
        yield "norms after the halves of a layer"
    if any(kind.norm in ("layernorm-plain", "layernorm-no-bias") for kind in kinds):
        yield "LayerNorm without all of its weights"
    if _uneven_biases(model):
        yield "biases on some linear layers and not on others"
    if len({k.ffn for k in kinds if isinstance(k.ffn, Mlp)}) > 1:
        yield "layers whose MLPs differ in width"
    if len({k.ffn for k in kinds if isinstance(k.ffn, Moe)}) > 1:
        yield "layers whose experts differ"


def _uneven_biases(model: Architecture) -> bool:
    """Tell if linear layers have biases that no option can select.

    --add-bias-linear adds a bias to all linear layers, --add-qkv-bias to QKV alone.
    """
    every = {
        bool(flag)
        for kind in model.kinds
        for flag in (getattr(kind.attention, "out_bias", False), kind.ffn.bias)
    }
    qkv = {bool(getattr(kind.attention, "qkv_bias", False)) for kind in model.kinds}
    return len(every) > 1 or (every == {True} and qkv == {False})


def _lack(what: str, family: str) -> Lack:
    return Lack(f"pretrain_gpt.py has no {what}", "spec.model", family, "")


def _cap(kind: LayerKind) -> float | None:
    return getattr(kind.attention, "logit_cap", None)


def dense_of(model: Architecture) -> Mlp:
    """Dense MLP of a model; the MLP of one expert where all layers have experts."""
    for kind in model.kinds:
        if isinstance(kind.ffn, Mlp):
            return kind.ffn
    first = model.kinds[0].ffn
    assert isinstance(first, Moe)
    return first.expert
