"""Features of a job that Megatron-Bridge cannot express."""

from collections.abc import Iterator

from planner.errors import did_you_mean
from planner.frameworks.megatron.bridge.known import VERSION, fields
from planner.frameworks.megatron.launch.lacks import backend, core
from planner.models.asked import Asked
from planner.specs.frameworks.lacks import Lack, Writer, plain_adapters

MODULES = {
    "qkv": "linear_qkv",
    "proj": "linear_proj",
    "fc1": "linear_fc1",
    "fc2": "linear_fc2",
}
"""Megatron-Bridge's linear layers that carry an adapter, by planner's name. [text]"""


def bridge(asked: Asked) -> Iterator[Lack]:
    """Features of a job that Megatron-Bridge's recipes cannot express."""
    known, name = fields().architectures, architecture_of(asked)
    if name not in known:
        allowed = f"{len(known)}; {did_you_mean(name, known)}"
        what = "none of the bridges converts this model"
        yield Lack(what, "spec.model", name, allowed)
    yield from _adapters(asked)
    if (word := backend(asked)) != "auto":
        allowed = "none: TransformerEngine chooses by GPU"
        what = "no attention of its own"
        yield Lack(what, "spec.stack.attention", word or "no backend", allowed)
    yield from core(asked)


def architecture_of(asked: Asked) -> str:
    """Hugging Face class of a job's model.

    Returns:
        Name of the class; the model type where the fields name no class. [text]
    """
    named = asked.fields.get("architectures")
    if isinstance(named, (list, tuple)) and named:
        return str(named[0])
    return asked.model_type


def _adapters(asked: Asked) -> Iterator[Lack]:
    its = asked.training
    where = "spec.training.lora"
    if its.method == "qlora":
        yield Lack("no 4-bit base", "spec.training.method", "qlora", "full, lora")
    if its.method == "full":
        return
    yield from plain_adapters(asked, "magnitudes are priced as PEFT's alone")
    if not its.lora.modules or set(its.lora.modules) - set(MODULES):
        allowed = ", ".join(MODULES)
        yield Lack("adapters on these layers", where, its.lora.targets, allowed)
    what = "adapters train on packed sequences, one at a time"
    yield Lack(
        what, "layout.micro_batch", allowed="1", when=lambda its: its.micro_batch > 1
    )
    if its.lora.modules_to_save:
        saved = ", ".join(its.lora.modules_to_save)
        yield Lack("tables that train beside adapters", where, saved, "none")
    if its.lora.precision != "bf16":
        yield Lack("adapters in this format", where, its.lora.precision, "bf16")


WRITER = Writer("megatron-bridge", "Megatron-Bridge", VERSION, bridge)
"""Files of Megatron-Bridge."""
