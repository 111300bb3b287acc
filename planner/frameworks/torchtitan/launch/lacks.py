"""Features of a job that a torchtitan configuration cannot express."""

from collections.abc import Iterator

from planner.frameworks.profiles import usual_attention
from planner.frameworks.torchtitan.families import VERSION
from planner.frameworks.torchtitan.limits import LIMITS
from planner.frameworks.torchtitan.loss import CHUNKED, CHUNKS, COMPILED, loss_of
from planner.frameworks.torchtitan.model import model_lacks
from planner.hardware.kernels.attention import BY_PYTORCH, attention_word
from planner.models.asked import Asked
from planner.models.layers.blocks import Moe
from planner.specs.frameworks.lacks import (
    Lack,
    Writer,
    no_reference,
    other_rows,
    states_together,
)

SCHEDULES = {
    "1f1b": "1F1B",
    "gpipe": "GPipe",
    "interleaved": "Interleaved1F1B",
    "zb-v": "ZBVZeroBubble",
    "dualpipe-v": "DualPipeV",
}
"""PyTorch's name of a schedule. [text]"""
SPLIT = ("zb-v", "dualpipe-v")
"""Schedules that split the backward, which compiled blocks refuse. [text]"""
OPTIMIZERS = ("adamw",)
MOMENTS = {None: "fused", 32: "fused", 16: "fused_opt_states_bf16"}
"""Implementation of AdamW by the width of its moments. [text]"""
FLEX_BLOCK = 128
"""Tokens of a block of FlexAttention's mask. [token]"""


def torchtitan(asked: Asked) -> Iterator[Lack]:
    """Features of a job that a torchtitan configuration cannot express.

    References:
        torchtitan 0.3.0 config/configs.py, models/common/decoder.py,
        distributed/context_parallel/api.py, components/quantization/float8.py.
    """
    yield from _method(asked)
    yield from model_lacks(asked)
    yield from no_reference(asked)
    what = "texts are one stream, which is cut into whole rows"
    yield from other_rows(asked, (), what)
    yield from states_together()
    yield from _numbers(asked)
    yield from _loss(asked)
    yield from _attention(asked)
    yield from _exchange(asked)
    yield from _mesh(asked)
    yield from _context(asked)
    yield from _pipeline(asked)


def compiled(asked: Asked) -> bool:
    """Tell if torch.compile fuses the operators between matrix products."""
    return bool(asked.stack.get("compile", True))


def dispatcher(asked: Asked, ep: int) -> str:
    """Backend that sends tokens to experts; DeepEP sends one copy to a node."""
    named = asked.words.get("dispatcher")
    if named in ("standard", "deepep", "hybridep"):
        return str(named)
    deduplicated = asked.stack.get("expert_dispatch") == "deduplicated"
    return "deepep" if deduplicated and ep > 1 else "standard"


def has_experts(asked: Asked) -> bool:
    """Tell if a job's model has routed experts.

    Returns:
        True where some layer has routed experts.
    """
    return any(isinstance(kind.ffn, Moe) for kind in asked.model.kinds)


def _method(asked: Asked) -> Iterator[Lack]:
    its = asked.training
    if its.method != "full":
        what = "its adapters sit on queries, keys and values as one projection"
        allowed = "full; accelerate and megatron-bridge have adapters as planned"
        yield Lack(what, "spec.training.method", its.method, allowed)
    if its.freeze != type(its.freeze)():
        yield Lack(
            "no layers that do not train", "spec.training.freeze", "some", "none"
        )


def _numbers(asked: Asked) -> Iterator[Lack]:
    its = asked.training
    for field, value, known in (
        ("precision", its.precision, LIMITS.precisions),
        ("optimizer", its.optimizer, OPTIMIZERS),
        ("state_bits", its.state_bits, tuple(bits for bits in MOMENTS if bits)),
    ):
        if value is not None and value not in known:
            allowed = ", ".join(map(str, known))
            yield Lack(f"no such {field}", f"spec.training.{field}", value, allowed)
    if its.optimizer_in_backward:
        where = "spec.training.optimizer_in_backward"
        yield Lack("updates come after the backward", where, "true", "false")
    yield Lack(
        "its float8 recipes, scaled by row, gather parameters in bf16",
        "layout.comm_dtype.parameters",
        "fp8",
        "bf16",
        when=lambda its: its.comm_dtype.parameters == "fp8",
    )


def _loss(asked: Asked) -> Iterator[Lack]:
    """Chunked losses that cannot run: of prediction layers, or in unequal chunks."""
    if loss_of(asked) != CHUNKED:
        return
    where, tokens = "spec.stack.loss", asked.training.seq_len
    if asked.model.mtp_layers:
        what = "prediction layers have a loss of their own"
        yield Lack(what, where, CHUNKED, COMPILED)
    yield Lack(
        f"its chunks of the loss are {CHUNKS} to a sequence",
        where,
        CHUNKED,
        COMPILED,
        when=lambda its: tokens // its.cp % CHUNKS != 0,
    )


def _attention(asked: Asked) -> Iterator[Lack]:
    """Kernels other than the one that PyTorch chooses on these GPUs."""
    usual = usual_attention("torchtitan", asked.archs)
    named = attention_word(asked.words.get("attention", BY_PYTORCH))
    if named != BY_PYTORCH and usual != {named}:
        what = "PyTorch chooses the kernel of attention"
        allowed = ", ".join((BY_PYTORCH, *sorted(usual)))
        yield Lack(what, "spec.stack.attention", named, allowed)


def _exchange(asked: Asked) -> Iterator[Lack]:
    """DeepEP beside quantised experts, which need padded groups of tokens."""
    if not has_experts(asked) or asked.training.precision == "bf16":
        return
    by_itself, alone = (dispatcher(asked, ep) == "deepep" for ep in (2, 1))
    yield Lack(
        "DeepEP does not pad the tokens of quantised experts",
        "spec.stack.dispatcher",
        "deepep",
        "standard, hybridep",
        when=lambda its: alone | (by_itself & (its.ep > 1)),
    )


def _mesh(asked: Asked) -> Iterator[Lack]:
    heads = asked.model.kinds[0].attention
    groups = getattr(heads, "kv_heads", heads.heads)
    yield Lack(
        f"its tensor degree divides the {groups} heads of keys",
        "layout.tp",
        allowed=f"divisors of {groups}",
        when=lambda its: groups % its.tp != 0,
    )
    if has_experts(asked):
        yield Lack(
            "experts divide over the ranks of one copy of a stage",
            "layout.ep",
            allowed="divisors of dp_shard * tp",
            when=lambda its: its.dp_shard * its.tp % its.ep != 0,
        )


def _context(asked: Asked) -> Iterator[Lack]:
    length = asked.training.seq_len
    yield Lack(
        "FlexAttention over context ranks gathers keys and values",
        "layout.cp_kind",
        allowed="all-gather",
        when=lambda its: (its.cp > 1) & (its.cp_kind != "all-gather"),
    )
    yield Lack(
        f"{length} tokens do not split into blocks of {FLEX_BLOCK} a rank",
        "layout.cp",
        allowed=f"sequences of cp * {FLEX_BLOCK} tokens",
        when=lambda its: (its.cp > 1) & (length % (its.cp * FLEX_BLOCK) != 0),
    )
    if asked.model.mtp_layers:
        what = "multi-token prediction has no cp"
        yield Lack(what, "layout.cp", allowed="1", when=lambda its: its.cp > 1)


def _pipeline(asked: Asked) -> Iterator[Lack]:
    for holds, what in (
        (asked.model.tied_embeddings, "tied embeddings lie on one stage"),
        (asked.model.mtp_layers, "multi-token prediction has no pipeline"),
    ):
        if holds:
            yield Lack(what, "layout.pp", allowed="1", when=lambda its: its.pp > 1)


WRITER = Writer("torchtitan", "torchtitan", VERSION, torchtitan)
"""Files of torchtitan."""
