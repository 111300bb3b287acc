"""Features of a job that `trl sft` cannot express, or would train otherwise."""

from collections.abc import Iterator

from planner.frameworks.accelerate.launch.known import TRL
from planner.frameworks.accelerate.launch.lacks import accelerate
from planner.frameworks.accelerate.stack import deepspeed, option, stack
from planner.models.asked import Asked
from planner.specs.frameworks.lacks import REFERENCE, Lack, Writer, other_rows


def trl(asked: Asked) -> Iterator[Lack]:
    """Features of a job that `trl sft` cannot express, or would train otherwise.

    References:
        trl 1.16.0 scripts/sft.py, trainer/sft_trainer.py (add_fused_lm_head and the
        casts of adapters) and trainer/utils.py; peft 0.21.2 mapping_func.py
        (autocast_adapter_dtype).
    """
    yield from (lack for lack in accelerate(asked) if lack.field != REFERENCE)
    pairs, loss = asked.training.reference is not None, option(asked, "loss", "hf")
    if pairs:
        yield from _pairs(asked)
    # Whole logits of pairs are priced, as LLaMA-Factory takes them: a gap of the files.
    if loss != "chunked" and not (pairs and loss == "hf"):
        what = "its loss works in chunks of tokens, in place of the model's head"
        yield Lack(what, "spec.stack.loss", loss, "chunked")
    if asked.training.method != "full":
        yield from _adapters(asked)


def _pairs(asked: Asked) -> Iterator[Lack]:
    """Pairs are padded, and none is packed."""
    if asked.training.document is not None:
        where = "spec.training.document"
        yield Lack("pairs are not packed", where, asked.training.document, "none")
    yield from other_rows(asked, ("longest", "max"), "pairs are not packed")


def _adapters(asked: Asked) -> Iterator[Lack]:
    its, where = asked.training, "spec.training.lora"
    half = deepspeed(asked) or its.method == "qlora"
    made = "bf16" if half else "fp32"
    if its.lora.precision != made:
        who = "it makes adapters beside quantised weights"
        who = "DeepSpeed makes adapters" if deepspeed(asked) else who
        what = f"{who} bf16" if half else "PEFT raises adapters to fp32"
        yield Lack(what, f"{where}.precision", its.lora.precision, made)
    if its.lora.modules_to_save:
        saved = ", ".join(its.lora.modules_to_save)
        what = "its loss reads the head itself, and PEFT raises copied tables to fp32"
        yield Lack(what, f"{where}.modules_to_save", saved, "none")
    if stack(asked) == "hf-amp":
        what = "it loads frozen weights in fp32, too, and they are priced in 16 bits"
        yield Lack(what, "spec.stack", "hf-amp", "hf-fsdp2, hf-trainer")


WRITER = Writer("trl", "TRL", TRL, trl, holds=frozenset({"accelerate", "deepspeed"}))
"""Files of `trl sft`; accelerate's and DeepSpeed's lie among them."""
