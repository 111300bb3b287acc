"""How a plan's parts are named in the world of accelerate."""

from planner.frameworks.accelerate import stack as room
from planner.frameworks.transformers import attention as word_for
from planner.launch.brief import Brief
from planner.specs.layout import Layout


def stack(brief: Brief) -> str:
    """Name of the software stack; of a plan for another framework the room's own.

    Args:
        brief: The plan. [-]

    Returns:
        A name. [text]
    """
    return room.stack(brief.asked)


def option(brief: Brief, name: str, default: str) -> str:
    """A word of the job's stack block.

    Args:
        brief: The plan. [-]
        name: Of the setting. [text]
        default: Where the job does not name it. [text]

    Returns:
        The word. [text]
    """
    return room.option(brief.asked, name, default)


def attention(brief: Brief) -> str | None:
    """attn_implementation of what was priced, or None. [text]."""
    return word_for(brief.asked, "accelerate")


def deepspeed(brief: Brief) -> bool:
    """Whether DeepSpeed shards. [-]."""
    return room.deepspeed(brief.asked)


def own_mesh(brief: Brief) -> bool:
    """Whether transformers' DistributedConfig lays the model on tensor ranks. [-]."""
    return brief.layout.tp > 1 and not deepspeed(brief)


def fsdp(brief: Brief) -> bool:
    """Whether accelerate's FSDP2 shards. [-]."""
    its = brief.layout
    return its.zero_stage > 1 and not own_mesh(brief) and not deepspeed(brief)


def shards(brief: Brief) -> bool:
    """Whether parameters are tensors over a mesh, DTensor. [-]."""
    return fsdp(brief) or own_mesh(brief)


def replicas(its: Layout) -> int:
    """Whole copies of the states under ZeRO 2 and 3. [1]."""
    return its.dp * its.cp // its.dp_shard if its.zero_stage else its.dp


def recompute(its: Layout) -> str:
    """The one kind of all layers; `mixed` where they differ. [text]."""
    kinds = {part.kind for stage in its.stages for part in stage.recompute}
    return kinds.pop() if len(kinds) == 1 else "mixed" if kinds else "none"


def mixed_precision(brief: Brief) -> str:
    """`no`, `fp16`, `bf16` or `fp8`, as accelerate names it. [text]."""
    precision = brief.training.precision
    wide = precision in ("fp32", "tf32") or stack(brief) == room.BF16_STACK
    return "no" if wide else precision


def with_trl(brief: Brief) -> bool:
    """Whether TRL's trainer is the one that has what the plan asks for. [-]."""
    chunked = room.chunked(brief.asked)
    return brief.training.method != "full" or chunked or offloads_by_trl(brief)


def offloads_by_trl(brief: Brief) -> bool:
    """Whether TRL moves activations to the host, not FSDP2's checkpoints. [-]."""
    its = brief.layout
    return bool(its.offload.activations) and not offloads_checkpoints(brief)


def offloads_checkpoints(brief: Brief) -> bool:
    """Whether FSDP2's checkpointing keeps its inputs in host memory. [-]."""
    its = brief.layout
    return bool(its.offload.activations) and fsdp(brief) and recompute(its) == "full"
