"""A model in Megatron's arguments."""

from collections.abc import Iterator

from planner.launch.brief import Brief, Gap
from planner.launch.megatron.families import (
    Options,
    activation_of,
    activations,
    families,
)
from planner.launch.megatron.rotation import Argument, rotary_arguments, rotary_gaps
from planner.models.architecture import Architecture
from planner.models.blocks import Attention, LatentAttention, LayerKind, Mlp, Moe

GROUPS = {
    "n_group": "--moe-router-num-groups",
    "topk_group": "--moe-router-group-topk",
    "routed_scaling_factor": "--moe-router-topk-scaling-factor",
}
"""Options of a router whose choice is limited to groups of experts. [text]"""


EPSILONS = (
    "rms_norm_eps",
    "layer_norm_epsilon",
    "layer_norm_eps",
    "norm_epsilon",
    "norm_eps",
)
"""Names of the epsilon of a model's norms, one of them by family. [text]"""


def model_gaps(brief: Brief) -> Iterator[Gap]:
    """What of a model Megatron-Core's GPTModel has no arguments for.

    Args:
        brief: The plan. [-]

    Yields:
        One gap for each.
    """
    family = families().get(brief.architecture.family)
    if family is None:
        known = "the families " + ", ".join(families())
        name = brief.architecture.family
        yield Gap("pretrain_gpt.py has no such blocks", "spec.model", name, known)
        return
    for what in (*_block_gaps(brief.architecture), *rotary_gaps(brief)):
        yield _gap(what, brief.architecture.family)
    activation = activation_of(family, brief.model)
    its = activations().get(activation)
    gated = _dense(brief.architecture).gated
    if its is None or its.gated != gated:
        yield _gap(f"activation {activation} here", brief.architecture.family)


def _block_gaps(model: Architecture) -> Iterator[str]:
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
    """--add-bias-linear is of all linears, --add-qkv-bias of that one alone."""
    every = {
        bool(flag)
        for kind in model.kinds
        for flag in (getattr(kind.attention, "out_bias", False), kind.ffn.bias)
    }
    qkv = {bool(getattr(kind.attention, "qkv_bias", False)) for kind in model.kinds}
    return len(every) > 1 or (every == {True} and qkv == {False})


def _gap(what: str, family: str) -> Gap:
    return Gap(f"pretrain_gpt.py has no {what}", "spec.model", family, "")


def _cap(kind: LayerKind) -> float | None:
    return getattr(kind.attention, "logit_cap", None)


def model_arguments(brief: Brief) -> list[Argument]:
    """The arguments that describe a model.

    Args:
        brief: The plan, whose model has no gaps. [-]

    Returns:
        (option, value), in the order of Megatron's own groups. [-]
    """
    model = brief.architecture
    its = _dense(model)
    tied = [] if model.tied_embeddings else ["--untie-embeddings-and-output-weights"]
    depth = [("--mtp-num-layers", model.mtp_layers)] if model.mtp_layers else []
    return [
        ("--num-layers", model.layers),
        ("--hidden-size", model.hidden),
        ("--ffn-hidden-size", its.ffn),
        *_attention(model.kinds[0].attention),
        *_family(brief),
        ("--max-position-embeddings", _positions(brief)),
        *_position(brief),
        *_norm(brief),
        *_mlp(brief),
        *_experts(brief),
        *(_flag(option) for option in tied),
        *depth,
    ]


def _flag(option: str) -> Argument:
    return option, True


def _options(given: Options) -> list[Argument]:
    return list(given.items())


def _dense(model: Architecture) -> Mlp:
    """The dense MLP; of a model that is all experts the width of one of them."""
    for kind in model.kinds:
        if isinstance(kind.ffn, Mlp):
            return kind.ffn
    first = model.kinds[0].ffn
    assert isinstance(first, Moe)
    return first.expert


def _attention(block: Attention | LatentAttention) -> list[Argument]:
    if isinstance(block, LatentAttention):
        return _latent(block)
    found: list[Argument] = [
        ("--num-attention-heads", block.heads),
        ("--kv-channels", block.head_dim),
    ]
    if block.kv_heads != block.heads:
        found += [
            _flag("--group-query-attention"),
            ("--num-query-groups", block.kv_heads),
        ]
    if block.qkv_bias and not block.out_bias:
        found.append(_flag("--add-qkv-bias"))
    if block.qk_norm:
        found.append(_flag("--qk-layernorm"))
    if block.window is not None:
        found.append(("--window-size", f"{block.window - 1},0"))
    return found


def _latent(block: LatentAttention) -> list[Argument]:
    rank = [("--q-lora-rank", block.q_rank)] if block.q_rank else []
    return [
        _flag("--multi-latent-attention"),
        ("--num-attention-heads", block.heads),
        *rank,
        ("--kv-lora-rank", block.kv_rank),
        ("--qk-head-dim", block.nope_dim),
        ("--qk-pos-emb-head-dim", block.rope_dim),
        ("--v-head-dim", block.value_dim),
    ]


def _family(brief: Brief) -> list[Argument]:
    return _options(families()[brief.architecture.family].arguments)


def _positions(brief: Brief) -> int:
    known = brief.architecture.max_position or 0
    return max(known, brief.training.seq_len)


def _position(brief: Brief) -> list[Argument]:
    if brief.architecture.learned_positions:
        return [("--position-embedding-type", "learned_absolute")]
    return rotary_arguments(brief)


def _norm(brief: Brief) -> list[Argument]:
    rms = brief.architecture.norm == "rmsnorm"
    epsilon = next(filter(None, map(brief.model.get, EPSILONS)), None)
    found: list[Argument] = [("--normalization", "RMSNorm" if rms else "LayerNorm")]
    return [*found, ("--norm-epsilon", epsilon)] if epsilon else found


def _mlp(brief: Brief) -> list[Argument]:
    family = families()[brief.architecture.family]
    found = _options(activations()[activation_of(family, brief.model)].arguments)
    attention = brief.architecture.kinds[0].attention
    biased = _dense(brief.architecture).bias or getattr(attention, "out_bias", False)
    return found if biased else [*found, _flag("--disable-bias-linear")]


def _experts(brief: Brief) -> list[Argument]:
    """Routed experts; which layers have them as Megatron's list of 0 and 1."""
    model = brief.architecture
    routed = [kind.ffn for kind in model.kinds if isinstance(kind.ffn, Moe)]
    if not routed:
        return []
    its = routed[0]
    shared: list[Argument] = [("--moe-shared-expert-intermediate-size", its.shared_ffn)]
    return [
        ("--num-experts", its.experts),
        ("--moe-router-topk", its.top_k),
        ("--moe-ffn-hidden-size", its.ffn),
        ("--moe-layer-freq", _frequency(model)),
        *_options(families()[model.family].routing),
        *_groups(brief),
        *dispatcher(brief),
        _flag("--moe-grouped-gemm"),
        _flag("--moe-permute-fusion"),
        *(shared if its.shared_ffn else []),
    ]


def _groups(brief: Brief) -> list[Argument]:
    """Routing limited to groups of experts, where the model's fields have it."""
    fields = brief.model
    if not (fields.get("n_group") and fields.get("topk_group")):
        return []
    return [(option, fields[name]) for name, option in GROUPS.items() if name in fields]


def dispatcher(brief: Brief) -> list[Argument]:
    """What sends tokens to experts: DeepEP sends one copy to a node.

    Args:
        brief: The plan of a model with experts. [-]

    Returns:
        (option, value). [-]
    """
    if brief.stack.get("expert_dispatch") != "deduplicated" or brief.layout.ep == 1:
        return [("--moe-token-dispatcher-type", "alltoall")]
    return [
        ("--moe-token-dispatcher-type", "flex"),
        ("--moe-flex-dispatcher-backend", "deepep"),
    ]


def _frequency(model: Architecture) -> str:
    """Runs of layers with and without experts, as a Python list. [text]."""
    runs = [(int(isinstance(kind.ffn, Moe)), count) for kind, count in model.runs]
    return "+".join(f"[{has}]*{count}" for has, count in runs)
