"""A model in Megatron's arguments, and the model that arguments describe."""

from collections.abc import Iterator

from planner.launch.brief import Brief, Gap
from planner.models.architecture import Architecture
from planner.models.blocks import Attention, LatentAttention, LayerKind, Mlp, Moe

Argument = tuple[str, object]
"""An option and its value; True for a flag."""
ROTARY = "rope"
LEARNED = "learned_absolute"


def model_gaps(brief: Brief) -> Iterator[Gap]:
    """What of a model Megatron-Core's GPTModel has no arguments for.

    Args:
        brief: The plan. [-]

    Yields:
        One gap for each.
    """
    model = brief.architecture
    kinds = model.kinds
    name = model.family
    attentions = {kind.attention for kind in kinds}
    if len(attentions) > 1:
        yield _gap("layers whose attentions differ", name)
    if any(kind.parallel for kind in kinds):
        yield _gap("attention and MLP side by side", name)
    if model.embedding_norm:
        yield _gap("a norm after the embedding", name)
    if model.logit_cap is not None or any(_cap(kind) for kind in kinds):
        yield _gap("capped logits", name)
    if any(kind.norms > 2 for kind in kinds):
        yield _gap("norms after the halves of a layer", name)
    if any(kind.norm == "layernorm-plain" for kind in kinds):
        yield _gap("a LayerNorm without weights", name)
    dense = {kind.ffn for kind in kinds if isinstance(kind.ffn, Mlp)}
    routed = {kind.ffn for kind in kinds if isinstance(kind.ffn, Moe)}
    if len(dense) > 1 or len(routed) > 1:
        yield _gap("layers whose MLPs differ in width", name)


def _gap(what: str, family: str) -> Gap:
    return Gap(f"pretrain_gpt.py has no {what}", "spec.model", family, "")


def _cap(kind: LayerKind) -> float | None:
    return getattr(kind.attention, "logit_cap", None)


def model_arguments(brief: Brief) -> list[Argument]:
    """The arguments that describe a model.

    Args:
        brief: The plan. [-]

    Returns:
        (option, value), in the order of Megatron's own groups. [-]
    """
    model = brief.architecture
    its = _dense(model)
    return [
        ("--num-layers", model.layers),
        ("--hidden-size", model.hidden),
        ("--ffn-hidden-size", its.ffn),
        *_attention(model.kinds[0].attention),
        ("--max-position-embeddings", _positions(brief)),
        *_position(brief),
        *_norm(brief),
        *_mlp(its, brief),
        *_experts(model),
        *(
            []
            if model.tied_embeddings
            else [_flag("--untie-embeddings-and-output-weights")]
        ),
        *([("--mtp-num-layers", model.mtp_layers)] if model.mtp_layers else []),
    ]


def _flag(option: str) -> Argument:
    return option, True


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
    if block.qk_norm or block.wide_qk_norm:
        found.append(_flag("--qk-layernorm"))
    if block.window is not None:
        found.append(("--window-size", f"{block.window - 1},0"))
    if block.sinks:
        found.append(("--softmax-type", "learnable"))
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


def _positions(brief: Brief) -> int:
    known = brief.architecture.max_position or 0
    return max(known, brief.training.seq_len)


def _position(brief: Brief) -> list[Argument]:
    if brief.architecture.learned_positions:
        return [("--position-embedding-type", LEARNED)]
    base = int(float(str(brief.model.get("rope_theta") or 10_000)))
    return [("--position-embedding-type", ROTARY), ("--rotary-base", base)]


def _norm(brief: Brief) -> list[Argument]:
    rms = brief.architecture.norm == "rmsnorm"
    epsilon = brief.model.get("rms_norm_eps") or brief.model.get("layer_norm_epsilon")
    found: list[Argument] = [("--normalization", "RMSNorm" if rms else "LayerNorm")]
    return [*found, ("--norm-epsilon", epsilon)] if epsilon else found


def _mlp(its: Mlp, brief: Brief) -> list[Argument]:
    found: list[Argument] = [_flag("--swiglu")] if its.gated else []
    if brief.architecture.family == "nemotron":
        found.append(_flag("--squared-relu"))
    attention = brief.architecture.kinds[0].attention
    if not (its.bias or getattr(attention, "out_bias", False)):
        found.append(_flag("--disable-bias-linear"))
    return found


def _experts(model: Architecture) -> list[Argument]:
    """Routed experts; which layers have them as Megatron's list of 0 and 1."""
    routed = [kind.ffn for kind in model.kinds if isinstance(kind.ffn, Moe)]
    if not routed:
        return []
    its = routed[0]
    found: list[Argument] = [
        ("--num-experts", its.experts),
        ("--moe-router-topk", its.top_k),
        ("--moe-ffn-hidden-size", its.ffn),
        ("--moe-layer-freq", _frequency(model)),
        ("--moe-token-dispatcher-type", "alltoall"),
        ("--moe-router-load-balancing-type", "aux_loss"),
        ("--moe-aux-loss-coeff", 0.001),
        _flag("--moe-grouped-gemm"),
        _flag("--moe-permute-fusion"),
    ]
    if its.shared_ffn:
        found.append(("--moe-shared-expert-intermediate-size", its.shared_ffn))
    if its.router_bias:
        found += [
            ("--moe-router-score-function", "sigmoid"),
            _flag("--moe-router-enable-expert-bias"),
        ]
    return found


def _frequency(model: Architecture) -> str:
    """Runs of layers with and without experts, as a Python list. [text]."""
    runs = [(int(isinstance(kind.ffn, Moe)), count) for kind, count in model.runs]
    return "+".join(f"[{has}]*{count}" for has, count in runs)
