"""Parts of a plan under accelerate: stack, sharding, recompute and offload."""

from collections.abc import Iterator

from planner.frameworks.accelerate import stack as room
from planner.frameworks.transformers import attention as word_for
from planner.launch.brief import Brief
from planner.specs.frameworks.lacks import states_rows
from planner.specs.layouts.layout import Layout


def stack(brief: Brief) -> str:
    """Name of a plan's stack; accelerate's first stack for another framework's plan."""
    return room.stack(brief.asked)


def option(brief: Brief, name: str, default: str) -> str:
    """Word of a setting in the job's stack block."""
    return room.option(brief.asked, name, default)


def attention(brief: Brief) -> str | None:
    """attn_implementation that runs the priced attention, or None. [text]."""
    return word_for(brief.asked, "accelerate")


def of_attention(brief: Brief, flash: str) -> Iterator[str]:
    """Packages of the attention that a plan runs."""
    word = str(attention(brief))
    if word == "flash_attention_2":
        yield flash
    elif "flash" in word:
        yield "kernels"


def deepspeed(brief: Brief) -> bool:
    """Tell if the job runs under accelerate's plugin of DeepSpeed. [-]."""
    return room.deepspeed(brief.asked)


def own_mesh(brief: Brief) -> bool:
    """Tell if transformers' DistributedConfig makes the tensor ranks. [-]."""
    return brief.layout.tp > 1 and not deepspeed(brief)


def fsdp(brief: Brief) -> bool:
    """Tell if accelerate's FSDP2 shards the states. [-]."""
    its = brief.layout
    return its.zero_stage > 1 and not own_mesh(brief) and not deepspeed(brief)


def shards(brief: Brief) -> bool:
    """Tell if parameters are DTensors over a mesh. [-]."""
    return fsdp(brief) or own_mesh(brief)


def replicas(its: Layout) -> int:
    """Replicas of the states; at ZeRO 0 the data ranks without context ranks. [1]."""
    return its.dp * its.cp // its.dp_shard if its.zero_stage else its.dp


def recompute(its: Layout) -> str:
    """Recompute kind of all layers; `mixed` where layers differ. [text]."""
    kinds = {part.kind for stage in its.stages for part in stage.recompute}
    return kinds.pop() if len(kinds) == 1 else "mixed" if kinds else "none"


def mixed_precision(brief: Brief) -> str:
    """mixed_precision of accelerate: `no`, `fp16`, `bf16` or `fp8`. [text]."""
    precision = brief.training.precision
    wide = precision in ("fp32", "tf32") or stack(brief) == room.BF16_STACK
    return "no" if wide else precision


def with_trl(brief: Brief) -> bool:
    """Tell if the plan needs TRL's trainer. [-]."""
    asked = room.chunked(brief.asked) or states_rows(brief.training)
    return brief.training.method != "full" or asked or offloads_by_trl(brief)


def offloads_by_trl(brief: Brief) -> bool:
    """Tell if TRL, not FSDP2's checkpointing, moves activations to the host. [-]."""
    its = brief.layout
    return bool(its.offload.activations) and not offloads_checkpoints(brief)


def offloads_checkpoints(brief: Brief) -> bool:
    """Tell if FSDP2's checkpointing keeps checkpoints in host memory. [-]."""
    its = brief.layout
    return bool(its.offload.activations) and fsdp(brief) and recompute(its) == "full"
