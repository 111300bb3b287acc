"""Features of a job that torchtune cannot express, or would train otherwise."""

from collections.abc import Iterator

from planner.frameworks.accelerate.launch.lacks import accelerate
from planner.frameworks.accelerate.stack import BF16_STACK, option, stack
from planner.frameworks.accelerate.torchtune.known import family_of
from planner.frameworks.adapted import targets
from planner.frameworks.transformers import attention
from planner.models.asked import Asked
from planner.specs.frameworks.lacks import (
    PADDING,
    RATIO_FIELD,
    Lack,
    Writer,
    other_rows,
    plain_adapters,
)

VERSION = "0.6.1"
"""Release of torchtune that files are written for. [text]"""
OPTIMIZERS = {
    "adamw": "torch.optim.AdamW",
    "adamw-8bit": "bitsandbytes.optim.AdamW8bit",
    "paged-adamw": "bitsandbytes.optim.PagedAdamW",
    "paged-adamw-8bit": "bitsandbytes.optim.PagedAdamW8bit",
    "sgd": "torch.optim.SGD",
    "sgd-momentum": "torch.optim.SGD",
}
"""Class of an optimizer by name. [text]"""
LOSSES = {
    "hf": "torch.nn.CrossEntropyLoss",
    "chunked_logits": "torchtune.modules.loss.CEWithChunkedOutputLoss",
}
"""Class of the loss by its word in the stack block. [text]"""
MLP = frozenset({"gate_proj", "up_proj", "down_proj"})
"""Linear layers of a feed-forward block, which carry adapters together. [text]"""


def torchtune(asked: Asked) -> Iterator[Lack]:
    """Features of a job that torchtune cannot express, or would train otherwise.

    References:
        torchtune 0.6.1 recipes/full_finetune_distributed.py and
        lora_finetune_single_device.py, modules/transformer.py,
        modules/loss/ce_chunked_output_loss.py, modules/low_precision/nf4_linear.py.
    """
    others = {RATIO_FIELD, PADDING}
    yield from (lack for lack in accelerate(asked) if lack.field not in others)
    what = "rows are padded to their longest text, or packed"
    yield from other_rows(asked, ("longest", "packed"), what)
    yield from _model(asked)
    yield from _numbers(asked)
    yield from _layout()
    if asked.training.method != "full":
        yield from _adapters(asked)


def _model(asked: Asked) -> Iterator[Lack]:
    if family_of(asked.fields) is None:
        what = "no builder makes this model"
        yield Lack(what, "spec.model", asked.model_type, "llama, mistral, qwen2")
    word = attention(asked, "accelerate")
    if word not in (None, "sdpa"):
        what = "its attention is PyTorch's"
        yield Lack(what, "spec.stack.attention", word, "sdpa")
    loss = option(asked, "loss", "hf")
    if loss not in LOSSES:
        what = "no such loss in this release"
        yield Lack(what, "spec.stack.loss", loss, ", ".join(LOSSES))


def _numbers(asked: Asked) -> Iterator[Lack]:
    its = asked.training
    if its.precision != "bf16":
        yield Lack("no such format", "spec.training.precision", its.precision, "bf16")
    if stack(asked) != BF16_STACK:
        what = "weights, gradients and moments are bf16"
        yield Lack(what, "spec.stack", stack(asked), BF16_STACK)
    if its.optimizer not in OPTIMIZERS:
        allowed = ", ".join(OPTIMIZERS)
        what = "no such optimizer here"
        yield Lack(what, "spec.training.optimizer", its.optimizer, allowed)
    elif OPTIMIZERS[its.optimizer].startswith("bitsandbytes"):
        yield Lack(
            "bitsandbytes knows no shards",
            "spec.training.optimizer",
            its.optimizer,
            "adamw, sgd, sgd-momentum",
            when=lambda its: its.zero_stage > 1,
        )
    sync = option(asked, "accumulation", "sync_each_batch")
    if sync != "sync_each_batch":
        what = "every micro-batch reduces its gradients"
        yield Lack(what, "spec.stack.accumulation", sync, "sync_each_batch")


def _layout() -> Iterator[Lack]:
    for axis, what in (("tp", "no tensor ranks"), ("cp", "no context ranks")):
        more = lambda its, axis=axis: getattr(its, axis) > 1  # noqa: E731
        yield Lack(what, f"layout.{axis}", allowed="1", when=more)
    yield Lack(
        "several GPUs hold shards",
        "layout.zero_stage",
        allowed="2, 3",
        when=lambda its: (its.gpus > 1) & (its.zero_stage < 2),
    )
    yield Lack(
        "shards lie over all ranks",
        "layout.dp_shard",
        allowed="dp",
        when=lambda its: (its.zero_stage > 1) & (its.dp_shard < its.dp),
    )
    yield Lack(
        "activations move to the host in another way",
        "layout.offload",
        allowed="parameters, gradients and optimizer",
        when=lambda its: its.offload.activations > 0,
    )


def _adapters(asked: Asked) -> Iterator[Lack]:
    its, where, names = asked.training, "spec.training.lora", targets(asked)
    yield from plain_adapters(asked, "its magnitudes are priced as PEFT's alone")
    if its.lora.precision != "bf16":
        what = "adapters are in the format of the weights"
        yield Lack(what, f"{where}.precision", its.lora.precision, "bf16")
    if its.lora.modules_to_save:
        saved = ", ".join(its.lora.modules_to_save)
        what = "no tables train beside adapters"
        yield Lack(what, f"{where}.modules_to_save", saved, "none")
    if 0 < len(MLP.intersection(names)) < len(MLP):
        what = "linears of the feed-forward carry adapters together"
        yield Lack(what, f"{where}.targets", ", ".join(names), "all of them or none")
    if its.method == "qlora" and not (
        its.weight_format == "nf4" and its.double_quantization
    ):
        what = "frozen weights are nf4 with scales of 8 bits"
        value = f"{its.weight_format}, double_quantization {its.double_quantization}"
        yield Lack(what, "spec.training.quantization", value, "nf4, true")
    yield Lack(
        "its shards beside adapters keep table and head in one unit",
        "layout.zero_stage",
        allowed="0 on one GPU",
        when=lambda its: its.gpus > 1,
    )


WRITER = Writer(
    "torchtune", "torchtune", VERSION, torchtune, holds=frozenset({"accelerate"})
)
"""Files of torchtune, some of whose settings a trainer has too."""
