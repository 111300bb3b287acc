"""Features of a job that axolotl cannot express, or would train otherwise."""

from collections.abc import Iterator

from planner.frameworks.accelerate.axolotl.known import VERSION, known
from planner.frameworks.accelerate.launch.lacks import accelerate
from planner.frameworks.accelerate.stack import BF16_STACK, deepspeed, option, stack
from planner.frameworks.accelerate.variants import by_trainer
from planner.frameworks.transformers import attention
from planner.models.asked import Asked
from planner.specs.frameworks.lacks import RATIO_FIELD, Lack, Writer


def axolotl(asked: Asked) -> Iterator[Lack]:
    """Features of a job that axolotl cannot express, or would train otherwise.

    References:
        axolotl 0.19.0 utils/config (resolve_dtype), loaders/model.py
        (_configure_embedding_dtypes), loaders/adapter.py, and
        monkeypatch/accelerate/fsdp2.py, whose fsdp2_prepare_model raises no shards.
    """
    yield from (lack for lack in accelerate(asked) if lack.field != RATIO_FIELD)
    yield from _model(asked)
    yield from _numbers(asked)
    yield from _layout(asked)
    if asked.training.method == "full":
        yield from _full(asked)
    else:
        yield from _adapters(asked)


def _model(asked: Asked) -> Iterator[Lack]:
    if asked.model_type not in known().models:
        what = f"the transformers of axolotl {VERSION} has no such model"
        yield Lack(what, "spec.model", asked.model_type)
    if asked.model.expert_parameters:
        what = "routed experts are priced as later transformers run them"
        yield Lack(what, "spec.model", asked.model_type, "a dense model")
    loss = option(asked, "loss", "hf")
    if loss.startswith("chunked"):
        what = "its loss in chunks is of whole logits"
        yield Lack(what, "spec.stack.loss", loss, "hf, liger")


def _numbers(asked: Asked) -> Iterator[Lack]:
    its, name = asked.training.precision, stack(asked)
    if its != "bf16":
        yield Lack("no such format here", "spec.training.precision", its, "bf16")
    if name == "hf-amp":
        what = "weights are loaded in bf16"
        allowed = f"hf-fsdp2, {BF16_STACK}, hf-trainer"
        yield Lack(what, "spec.stack", name, allowed)


def _layout(asked: Asked) -> Iterator[Lack]:
    for axis, what in (
        ("tp", "tensor ranks are of another kind"),
        ("cp", "context ranks are those of ring-flash-attn"),
    ):
        more = lambda its, axis=axis: getattr(its, axis) > 1  # noqa: E731
        yield Lack(what, f"layout.{axis}", allowed="1", when=more)
    yield Lack(
        "activations move to the host in another way",
        "layout.offload",
        allowed="optimizer, parameters",
        when=lambda its: its.offload.activations > 0,
    )
    if stack(asked) != BF16_STACK and not deepspeed(asked):
        yield Lack(
            "its FSDP2 keeps shards in bf16",
            "layout.zero_stage",
            allowed=f"0, or stack {BF16_STACK}",
            when=lambda its: its.zero_stage > 1,
        )


def _full(asked: Asked) -> Iterator[Lack]:
    word = attention(asked, "accelerate")
    if word != "flash_attention_2" and not deepspeed(asked):
        yield Lack(
            "tables and norms train in fp32 without shards or flash attention",
            "spec.stack.attention",
            word,
            "flash_attention_2",
            when=lambda its: its.zero_stage < 2,
        )


def _adapters(asked: Asked) -> Iterator[Lack]:
    its, where = asked.training.lora, "spec.training.lora"
    yield from by_trainer(asked, deepspeed=deepspeed(asked))
    if deepspeed(asked) and its.precision != "bf16":
        what = "DeepSpeed makes adapters bf16"
        yield Lack(what, f"{where}.precision", its.precision, "bf16")
    if its.modules_to_save:
        saved = ", ".join(its.modules_to_save)
        what = "its tables are cast before they are copied"
        yield Lack(what, f"{where}.modules_to_save", saved, "none")
    if its.precision == "fp32" and not deepspeed(asked):
        yield Lack(
            "adapters are shards of their own format",
            f"{where}.precision",
            "fp32",
            "bf16",
            when=lambda its: its.zero_stage > 1,
        )
    if asked.training.method == "qlora" and deepspeed(asked):
        what = "quantised weights go with no DeepSpeed here"
        yield Lack(what, "spec.stack", stack(asked), f"hf-fsdp2, {BF16_STACK}")


WRITER = Writer(
    "axolotl",
    "axolotl",
    VERSION,
    axolotl,
    holds=frozenset({"accelerate", "deepspeed"}),
)
"""Files of axolotl; a trainer's arguments and DeepSpeed's lie among them."""
