"""Features of a job that accelerate, Trainer, TRL and PEFT cannot express."""

from collections.abc import Iterator
from typing import Any

from planner.errors import did_you_mean
from planner.frameworks.accelerate.launch.known import VERSION, keys
from planner.frameworks.accelerate.limits import LIMITS
from planner.frameworks.accelerate.rows import apart_by_flash
from planner.frameworks.accelerate.stack import (
    BF16_STACK,
    OF_BITSANDBYTES,
    OPTIMIZERS,
    OVER_SHARDS,
    STACKS,
    chunked,
    deepspeed,
    stack,
)
from planner.frameworks.accelerate.variants import one_rate
from planner.frameworks.adapted import on_experts, targets
from planner.frameworks.transformers import (
    attention,
    attention_lacks,
    sharing_lacks,
)
from planner.models.asked import Asked
from planner.specs.frameworks.lacks import (
    Lack,
    Writer,
    no_reference,
    states_rows,
    states_together,
)
from planner.specs.training import PROJECTED, FreezeSpec


def accelerate(asked: Asked) -> Iterator[Lack]:
    """Features of a job that accelerate's files cannot express."""
    yield from _model(asked)
    yield from no_reference(asked)
    yield from _training(asked)
    yield from apart_by_flash(asked)
    yield from _optimizer(asked)
    yield from _numbers(asked)
    if asked.training.method != "full":
        yield from one_rate(asked)
        yield from _adapters(asked)
    yield from _mesh(asked)
    yield from _tensor(asked)
    yield from _by_trl(asked)
    if deepspeed(asked):
        yield from _zero(asked)
    else:
        yield from states_together()


def _model(asked: Asked) -> Iterator[Lack]:
    kind = asked.model_type
    if kind not in keys().models:
        near = did_you_mean(kind, sorted(keys().models))
        yield Lack("transformers has no such model", "spec.model", kind, near)
    yield from attention_lacks(asked, "accelerate")
    yield from sharing_lacks(asked, 2 if deepspeed(asked) else 0)
    if asked.model.mtp_layers:
        what = f"{asked.model.mtp_layers} layers"
        yield Lack("no multi-token prediction", "spec.model", what, "none")
    if stack(asked) not in STACKS:
        allowed = ", ".join(STACKS)
        yield Lack("its loader is its own", "spec.stack", stack(asked), allowed)


def _training(asked: Asked) -> Iterator[Lack]:
    its, where = asked.training, "spec.training."
    if its.state_bits is not None:
        yield Lack("moments have one width", f"{where}state_bits", its.state_bits)
    if its.optimizer_in_backward:
        yield Lack("no step in backward", f"{where}optimizer_in_backward", "true")
    if its.freeze != FreezeSpec():
        yield Lack("nothing is frozen", f"{where}freeze", "parts of the model")
    flash = attention(asked, "accelerate") == "flash_attention_2"
    by_trl = its.method != "full" or chunked(asked)
    if its.document and not (flash and by_trl):
        allowed = "adapters with stack.attention flash_attention_2, which TRL packs"
        yield Lack("no packed documents", f"{where}document", its.document, allowed)


def _optimizer(asked: Asked) -> Iterator[Lack]:
    name, where = asked.training.optimizer, "spec.training.optimizer"
    allowed = "adamw, adamw-8bit, sgd, sgd-momentum, adafactor"
    if name in PROJECTED:
        allowed += "; target llamafactory has it"
    if name not in OPTIMIZERS:
        yield Lack("no such optimizer", where, name, allowed)
    elif name in OF_BITSANDBYTES and name not in OVER_SHARDS and not deepspeed(asked):
        what = "no such optimizer over shards of FSDP2"
        sharded = lambda its: (its.zero_stage > 1) | (its.tp > 1)  # noqa: E731
        yield Lack(what, where, name, allowed, when=sharded)


def _numbers(asked: Asked) -> Iterator[Lack]:
    its, where = asked.training.precision, "spec.training.precision"
    if its not in LIMITS.precisions:
        yield Lack("no such format", where, its, ", ".join(LIMITS.precisions))
    if its == "fp8":
        what = "no fp8 beside DeepSpeed, tensor ranks or weights without autocast"
        by_itself = deepspeed(asked) or stack(asked) == BF16_STACK
        split = lambda its: by_itself | (its.tp > 1)  # noqa: E731
        yield Lack(what, where, its, "bf16, fp16", when=split)
    if its != "fp16" or deepspeed(asked):
        return
    if stack(asked) == BF16_STACK:
        yield Lack("its weights are bf16", where, its, "bf16; another stack")
    adapters = asked.training.method != "full"
    if not adapters and not _amp(asked):
        what = "whole weights are fp32 beside fp16, where nothing is sharded"
        allowed = "bf16; ZeRO 2 or 3; stack hf-amp"
        yield Lack(what, where, its, allowed, when=lambda its: its.zero_stage < 2)
    if adapters and asked.training.lora.precision != "fp32" and not _amp(asked):
        yield Lack(
            "fp16 gradients of fp16 adapters cannot be scaled",
            where,
            its,
            "bf16; lora.precision fp32; ZeRO 2 or 3",
            when=lambda its: (its.zero_stage < 2) | (its.tp > 1),
        )


def _amp(asked: Asked) -> bool:
    return stack(asked) == "hf-amp"


def _adapters(asked: Asked) -> Iterator[Lack]:
    its, where, found = asked.training, "spec.training.lora", targets(asked)
    if not found:
        yield Lack("no such linear layers here", where, its.lora.targets, "all-linear")
    if on_experts(its.lora, asked.model):
        what = "routed experts are no linear layers, and carry no adapters"
        yield Lack(what, where, its.lora.targets, "attention, all-linear")
    if its.quantized_experts:
        what = "routed experts are not quantised"
        yield Lack(what, "spec.training.quantized_experts", "true", "false")
    what = "no adapters beside tensor ranks"
    yield Lack(what, "layout.tp", allowed="1", when=lambda its: its.tp > 1)
    if its.method == "qlora" and deepspeed(asked):
        yield Lack(
            "quantised weights are not sharded by DeepSpeed",
            "layout.zero_stage",
            allowed="0 to 2, or stack hf-fsdp2",
            when=lambda its: its.zero_stage == 3,
        )


def _mesh(asked: Asked) -> Iterator[Lack]:
    node = asked.gpus_per_node
    yield Lack(
        "nodes are filled whole",
        "layout.dp",
        when=lambda its: (its.gpus > node) & (its.gpus % node != 0),
    )
    flash = attention(asked, "accelerate")
    if not deepspeed(asked) and flash != "sdpa":
        what = "context ranks need sdpa"
        where = "spec.stack.attention"
        yield Lack(what, where, flash, "sdpa", when=lambda its: its.cp > 1)


def _tensor(asked: Asked) -> Iterator[Lack]:
    """Tensor ranks, which transformers or DeepSpeed's AutoTP lay out."""
    what = "tensor ranks go with no context ranks"
    both = lambda its: (its.tp > 1) & (its.cp > 1)  # noqa: E731
    yield Lack(what, "layout.cp", allowed="1", when=both)
    if not deepspeed(asked) and asked.model_type not in keys().split_models:
        what = "the model has no plan for tensor ranks"
        yield Lack(what, "layout.tp", allowed="1", when=lambda its: its.tp > 1)


def _by_trl(asked: Asked) -> Iterator[Lack]:
    """Adapters, rows of texts, loss in chunks and offloaded activations are TRL's."""
    fills = states_rows(asked.training)
    always = asked.training.method != "full" or chunked(asked) or fills
    checkpoints = not deepspeed(asked)

    def moves(its: Any) -> Any:
        """Tell if TRL, not FSDP2's checkpointing, moves activations to the host."""
        fsdp = checkpoints & (its.zero_stage > 1) & (its.tp == 1)
        kept = fsdp & (its.recompute == "full")
        return (its.offload.activations > 0) & (1 - kept > 0)

    what = "adapters, TRL's loss and its offload see whole sequences"
    yield Lack(
        what,
        "layout.cp",
        allowed="1",
        when=lambda its: (its.cp > 1) & (always | moves(its)),
        of_layers=not always,
    )
    if asked.training.method != "full":
        return
    what = "TRL's loss and its offload go with no tensor ranks"
    yield Lack(
        what,
        "layout.tp",
        allowed="1",
        when=lambda its: (its.tp > 1) & (always | moves(its)),
        of_layers=not always,
    )


def _zero(asked: Asked) -> Iterator[Lack]:
    what = "Ulysses trains under ZeRO 2 and 3"
    below = lambda its: (its.cp > 1) & (its.zero_stage < 2)  # noqa: E731
    yield Lack(what, "layout.zero_stage", allowed="2, 3", when=below)
    name = asked.training.optimizer
    if name != "adamw":
        moved = lambda its: its.offload.optimizer > 0  # noqa: E731
        where = "spec.training.optimizer"
        yield Lack("the host updates AdamW", where, name, "adamw", when=moved)
    none = lambda its: (its.offload.optimizer > 0) & (its.zero_stage == 0)  # noqa: E731
    yield Lack(
        "ZeRO 0 offloads nothing", "layout.offload", "optimizer", "ZeRO 1-3", when=none
    )


WRITER = Writer(
    "accelerate", "accelerate", VERSION, accelerate, holds=frozenset({"deepspeed"})
)
"""Files of accelerate, with DeepSpeed's among them under DeepSpeed's plugin."""
