"""Features of a job that LLaMA-Factory cannot express, or would train otherwise."""

from collections.abc import Iterator

from planner.frameworks.accelerate.launch.lacks import accelerate
from planner.frameworks.accelerate.llamafactory.known import (
    TRANSFORMERS,
    VERSION,
    known,
)
from planner.frameworks.accelerate.stack import deepspeed, option, stack
from planner.frameworks.accelerate.variants import by_trainer
from planner.models.asked import Asked
from planner.specs.frameworks.lacks import (
    RATIO_FIELD,
    Lack,
    Writer,
    other_rows,
)
from planner.specs.training import PROJECTED

OPTIMIZER = "spec.training.optimizer"
PRECISIONS = ("bf16", "fp16")
STORED = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
"""Precision by the format that a model's config names. [text]"""
OWN_ATTENTION = ("gpt_oss",)
"""Model types whose attention LLaMA-Factory chooses itself. [text]"""


def llamafactory(asked: Asked) -> Iterator[Lack]:
    """Features of a job that LLaMA-Factory cannot express, or would train otherwise.

    References:
        LLaMA-Factory 0.9.5 src/llamafactory: hparams/parser.py, model/loader.py,
        model/adapter.py (init_adapter), model/model_utils/attention.py and
        quantization.py; peft 0.18.1 mapping_func.py (autocast_adapter_dtype).
    """
    own = {RATIO_FIELD}
    if asked.training.optimizer in PROJECTED:
        own.add(OPTIMIZER)
    yield from (lack for lack in accelerate(asked) if lack.field not in own)
    yield from _projects(asked)
    yield from _rows(asked)
    yield from _model(asked)
    yield from _numbers(asked)
    if asked.training.method != "full":
        yield from _adapters(asked)
    yield from _trl(asked)
    yield from _layout(asked)


def _model(asked: Asked) -> Iterator[Lack]:
    if asked.model_type not in known().models:
        what = f"transformers {TRANSFORMERS} has no such model"
        yield Lack(what, "spec.model", asked.model_type)
    if asked.model_type in OWN_ATTENTION:
        what = "its attention kernel is fixed, and not priced"
        yield Lack(what, "spec.model", asked.model_type, "another model")
    if asked.model.expert_parameters:
        what = "routed experts are priced as later transformers run them"
        yield Lack(what, "spec.model", asked.model_type, "a dense model")


def _projects(asked: Asked) -> Iterator[Lack]:
    name = asked.training.optimizer
    if name in PROJECTED and deepspeed(asked):
        what = "GaLore and APOLLO go with no DeepSpeed"
        yield Lack(what, OPTIMIZER, name, "stack hf-bf16, hf-fsdp2 or hf-amp")


def _rows(asked: Asked) -> Iterator[Lack]:
    """Rows that its collators do not make, data/collator.py."""
    what = "rows are padded to their longest text, or packed"
    yield from other_rows(asked, ("longest", "packed"), what)


def _numbers(asked: Asked) -> Iterator[Lack]:
    its, where = asked.training.precision, "spec.training.precision"
    allowed = ", ".join(PRECISIONS)
    if its not in PRECISIONS:
        yield Lack("no such format", where, its, allowed)
    if its == "fp16" and deepspeed(asked):
        what = "weights start in fp32 on the GPU, before DeepSpeed makes them fp16"
        yield Lack(what, where, its, "bf16")
    if its == "fp16" and asked.training.method == "full" and stack(asked) != "hf-amp":
        yield Lack("weights train in fp32", where, its, "bf16; stack hf-amp")
    stored = STORED.get(str(asked.fields.get("dtype", asked.fields.get("torch_dtype"))))
    as_stored = not deepspeed(asked) and stack(asked) != "hf-amp"
    if as_stored and stored not in (None, its):
        what = f"weights stay in the checkpoint's format, {stored}"
        yield Lack(what, where, its, f"{stored}; stack hf-trainer")


def _adapters(asked: Asked) -> Iterator[Lack]:
    its, where = asked.training, "spec.training.lora"
    name = stack(asked)
    yield from by_trainer(asked, deepspeed=deepspeed(asked))
    if name in ("hf-bf16", "hf-amp"):
        what = "adapters lie beside the checkpoint's weights, under autocast"
        yield Lack(what, "spec.stack", name, "hf-fsdp2, hf-trainer")
    wide = "bf16" if deepspeed(asked) else "fp32"
    if its.lora.precision != wide:
        who = "DeepSpeed makes" if deepspeed(asked) else "PEFT raises"
        what = f"{who} adapters {'' if deepspeed(asked) else 'to '}{wide}"
        yield Lack(what, f"{where}.precision", its.lora.precision, wide)
    if its.lora.modules_to_save:
        saved = ", ".join(its.lora.modules_to_save)
        what = "tables that train beside adapters are raised to fp32"
        yield Lack(what, f"{where}.modules_to_save", saved, "none")
    if its.method == "qlora" and deepspeed(asked):
        what = "quantised weights go with no DeepSpeed here"
        yield Lack(what, "spec.stack", name, "hf-fsdp2")


def _trl(asked: Asked) -> Iterator[Lack]:
    """Parts of accelerate's own files that TRL's trainer or Trainer's switches run."""
    loss = option(asked, "loss", "hf")
    if loss != "hf":
        what = "its Liger switch takes every kernel, and it has no loss in chunks"
        yield Lack(what, "spec.stack.loss", loss, "hf")
    if asked.training.document:
        what = "packed documents see each other, or are padded"
        yield Lack(what, "spec.training.document", asked.training.document, "none")
    yield Lack(
        "activations stay on the GPU",
        "layout.offload",
        allowed="optimizer, parameters",
        when=lambda its: its.offload.activations > 0,
    )


def _layout(asked: Asked) -> Iterator[Lack]:
    for axis, what in (("tp", "no tensor ranks"), ("cp", "no context ranks")):
        more = lambda its, axis=axis: getattr(its, axis) > 1  # noqa: E731
        yield Lack(what, f"layout.{axis}", allowed="1", when=more)
    if not deepspeed(asked):
        yield Lack(
            "its launcher starts no FSDP2",
            "layout.zero_stage",
            allowed="0, or stack hf-trainer",
            when=lambda its: its.zero_stage > 1,
        )


WRITER = Writer(
    "llamafactory",
    "LLaMA-Factory",
    VERSION,
    llamafactory,
    holds=frozenset({"accelerate", "deepspeed"}),
)
"""Files of LLaMA-Factory; a trainer's arguments and DeepSpeed's lie among them."""
