"""What of a plan a torchtitan configuration cannot say."""

from collections.abc import Iterator

from planner.launch.brief import Brief, Gap
from planner.launch.torchtitan.model import model_gaps
from planner.models.blocks import Moe

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
PRECISIONS = ("bf16", "fp8", "mxfp8")
CHUNKS = 8
"""Chunks of ChunkedLossWrapper where nothing is said. [1]"""
FLEX_BLOCK = 128
"""Tokens of a block of FlexAttention's mask. [token]"""


def gaps(brief: Brief) -> tuple[Gap, ...]:
    """What of a plan a torchtitan configuration cannot say.

    Args:
        brief: The plan. [-]

    Returns:
        One gap for each, none where all of it can be said. [-]

    References:
        torchtitan 0.3.0 config/configs.py, models/common/decoder.py,
        distributed/context_parallel/api.py, components/quantization/float8.py.
    """
    return (
        *_method_gaps(brief),
        *model_gaps(brief),
        *_number_gaps(brief),
        *_loss_gaps(brief),
        *_exchange_gaps(brief),
        *_mesh_gaps(brief),
        *_context_gaps(brief),
        *_pipeline_gaps(brief),
    )


def compiled(brief: Brief) -> bool:
    """Whether torch.compile makes one kernel of what lies between matrix products.

    Args:
        brief: The plan. [-]

    Returns:
        True unless the plan's software says otherwise.
    """
    return bool(brief.stack.get("compile", True))


def _method_gaps(brief: Brief) -> Iterator[Gap]:
    its = brief.training
    if its.method != "full":
        what = "its adapters sit on queries, keys and values as one projection"
        allowed = "full; accelerate and megatron-bridge have adapters as planned"
        yield Gap(what, "spec.training.method", its.method, allowed)
    if any(kind.role != "trained" for kind in brief.architecture.kinds):
        yield Gap("no layers that do not train", "spec.training.freeze", "some", "none")


def _number_gaps(brief: Brief) -> Iterator[Gap]:
    its = brief.training
    for field, value, known in (
        ("precision", its.precision, PRECISIONS),
        ("optimizer", its.optimizer, OPTIMIZERS),
        ("state_bits", its.state_bits, tuple(bits for bits in MOMENTS if bits)),
    ):
        if value is not None and value not in known:
            allowed = ", ".join(map(str, known))
            yield Gap(f"no such {field}", f"spec.training.{field}", value, allowed)
    if its.optimizer_in_backward:
        where = "spec.training.optimizer_in_backward"
        yield Gap("updates come after the backward", where, "true", "false")
    sent = brief.layout.comm_dtype
    if sent.parameters == "fp8":
        what = "its float8 recipes, scaled by row, gather parameters in bf16"
        yield Gap(what, "layout.comm_dtype.parameters", sent.parameters, "bf16")


def _loss_gaps(brief: Brief) -> Iterator[Gap]:
    """The head runs in equal chunks of a rank's tokens, and is none of an MTP's."""
    if brief.spec.stack.get("loss") != "chunked":
        return
    where, tokens = "spec.stack.loss", brief.training.seq_len // brief.layout.cp
    if brief.architecture.mtp_layers:
        yield Gap("prediction layers have a whole loss", where, "chunked", "whole")
    if tokens % CHUNKS:
        what = f"its chunks of the loss are {CHUNKS} to a sequence"
        yield Gap(what, where, "chunked", "whole")


def dispatcher(brief: Brief) -> str:
    """What sends tokens to experts: DeepEP sends one copy to a node.

    Args:
        brief: The plan of a model with experts. [-]

    Returns:
        A backend by torchtitan's name. [text]
    """
    named = brief.spec.stack.get("dispatcher")
    if named in ("standard", "deepep", "hybridep"):
        return str(named)
    deduplicated = brief.stack.get("expert_dispatch") == "deduplicated"
    return "deepep" if deduplicated and brief.layout.ep > 1 else "standard"


def has_experts(brief: Brief) -> bool:
    """Whether a plan's model has routed experts.

    Args:
        brief: The plan. [-]

    Returns:
        True where some layer has.
    """
    return any(isinstance(kind.ffn, Moe) for kind in brief.architecture.kinds)


def _exchange_gaps(brief: Brief) -> Iterator[Gap]:
    """Quantised experts take groups of tokens that are padded."""
    quantised = has_experts(brief) and brief.training.precision != "bf16"
    if quantised and dispatcher(brief) == "deepep":
        what = "DeepEP does not pad the tokens of quantised experts"
        yield Gap(what, "spec.stack.dispatcher", "deepep", "standard, hybridep")


def _mesh_gaps(brief: Brief) -> Iterator[Gap]:
    its = brief.layout
    if its.pools:
        yield Gap("one kind of node alone", "layout.pools", "several", "none")
    heads = brief.architecture.kinds[0].attention
    groups = getattr(heads, "kv_heads", heads.heads)
    if groups % its.tp:
        what = f"its tensor degree divides the {groups} heads of keys"
        yield Gap(what, "layout.tp", its.tp, f"divisors of {groups}")
    ranks = its.dp_shard * its.tp
    if has_experts(brief) and ranks % its.ep:
        what = f"experts divide over the {ranks} ranks of one copy of a stage"
        yield Gap(what, "layout.ep", its.ep, f"divisors of {ranks}")


def _context_gaps(brief: Brief) -> Iterator[Gap]:
    its, length = brief.layout, brief.training.seq_len
    if its.cp == 1:
        return
    if its.cp_kind != "all-gather":
        what = "FlexAttention over context ranks gathers keys and values"
        yield Gap(what, "layout.cp_kind", its.cp_kind, "all-gather")
    if length % (its.cp * FLEX_BLOCK):
        what = f"{length} tokens do not split into blocks of {FLEX_BLOCK} a rank"
        yield Gap(what, "layout.cp", its.cp, f"sequences of cp * {FLEX_BLOCK} tokens")
    if brief.architecture.mtp_layers:
        yield Gap("multi-token prediction has no cp", "layout.cp", its.cp, "1")


def _pipeline_gaps(brief: Brief) -> Iterator[Gap]:
    its = brief.layout
    able = [n for n in SCHEDULES if n not in SPLIT or not compiled(brief)]
    if its.schedule not in able:
        what = "PyTorch has no such schedule for its blocks"
        yield Gap(what, "layout.schedule", its.schedule, ", ".join(able))
    if its.pp == 1:
        return
    if brief.architecture.tied_embeddings:
        yield Gap("tied embeddings lie on one stage", "layout.pp", its.pp, "1")
    if brief.architecture.mtp_layers:
        yield Gap("multi-token prediction has no pipeline", "layout.pp", its.pp, "1")
