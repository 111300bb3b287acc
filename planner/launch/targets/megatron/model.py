"""A model in Megatron's arguments."""

from collections.abc import Mapping

from planner.frameworks.megatron.families import (
    Options,
    activation_of,
    activations,
    families,
)
from planner.frameworks.megatron.model import dense_of
from planner.frameworks.megatron.recipe import RECIPE
from planner.launch.brief import Brief
from planner.launch.targets.megatron.checks.defaults import PRICED
from planner.launch.targets.megatron.rotation import Argument, rotary_arguments
from planner.models.architecture import Architecture
from planner.models.layers.blocks import (
    Attention,
    AttentionBlock,
    LatentAttention,
    Moe,
)

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
"""Names of the epsilon of a model's norms; a family uses one name. [text]"""


def model_arguments(brief: Brief) -> list[Argument]:
    """Arguments that describe a model."""
    model = brief.architecture
    its = dense_of(model)
    tied = [] if model.tied_embeddings else ["--untie-embeddings-and-output-weights"]
    depth = [("--mtp-num-layers", model.mtp_layers)] if model.mtp_layers else []
    return [
        ("--num-layers", model.layers),
        ("--hidden-size", model.hidden),
        ("--ffn-hidden-size", its.ffn),
        *_attention(model.kinds[0].attention),
        *_family(brief),
        ("--max-position-embeddings", _positions(brief)),
        *_padding(brief),
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


def _attention(block: AttentionBlock) -> list[Argument]:
    if isinstance(block, LatentAttention):
        return _latent(block)
    assert isinstance(block, Attention)
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


def rows_of(brief: Brief) -> int:
    """Multiple that each tensor rank's rows of the embedding are padded to. [1]."""
    given = brief.spec.stack.get("recipe") if brief.framework == "megatron" else None
    recipe = given if isinstance(given, Mapping) else {}
    return int(recipe.get(PRICED, RECIPE.vocab_multiple))


def _padding(brief: Brief) -> list[Argument]:
    its = rows_of(brief)
    return (
        [("--make-vocab-size-divisible-by", its)]
        if its != RECIPE.vocab_multiple
        else []
    )


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
    biased = dense_of(brief.architecture).bias or getattr(attention, "out_bias", False)
    return found if biased else [*found, _flag("--disable-bias-linear")]


def _experts(brief: Brief) -> list[Argument]:
    """Options of routed experts; --moe-layer-freq marks the layers with experts."""
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


FLEX = ("deepep", "hybridep")
"""Backends that send one copy of a token, the default backend first. [text]"""


def dispatcher(brief: Brief) -> list[Argument]:
    """Options of the token dispatcher; DeepEP sends one copy of a token to a node."""
    if brief.stack.get("expert_dispatch") != "deduplicated" or brief.layout.ep == 1:
        return [("--moe-token-dispatcher-type", "alltoall")]
    named = brief.spec.stack.get("dispatcher")
    return [
        ("--moe-token-dispatcher-type", "flex"),
        ("--moe-flex-dispatcher-backend", named if named in FLEX else FLEX[0]),
    ]


def _frequency(model: Architecture) -> str:
    """Runs of layers with and without experts, as a Python list. [text]."""
    runs = [(int(isinstance(kind.ffn, Moe)), count) for kind, count in model.runs]
    return "+".join(f"[{has}]*{count}" for has, count in runs)
