"""Features of a job that Megatron-LM cannot express."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from planner.frameworks.megatron.launch.known import VERSION
from planner.frameworks.megatron.limits import LIMITS
from planner.frameworks.megatron.model import model_lacks
from planner.hardware.kernels.attention import attention_word
from planner.models.asked import Asked
from planner.models.layers.blocks import Moe
from planner.specs.frameworks.lacks import Lack, Writer, no_reference, other_rows
from planner.specs.layouts.recompute import parts_of_kind
from planner.specs.training import FreezeSpec

OPTIMIZERS = {"adamw": "adam", "sgd": "sgd", "sgd-momentum": "sgd", "muon": "muon"}
"""--optimizer by name. [text]"""
MOMENTS = {None: None, 32: None, 16: "bf16"}
"""--exp-avg-dtype by width of the moments. [text]"""
BACKENDS = {"flash": "fa2", "fused": "cudnn9", "unfused": "unfused"}
"""Kernel of attention by --attention-backend. [text]"""
SCALED = {"layernorm", "moe_act"}
"""Modules that delayed scaling of fp8 does not recompute. [text]"""


def megatron(asked: Asked) -> Iterator[Lack]:
    """Features of a job that pretrain_gpt.py cannot express."""
    if asked.training.method != "full":
        allowed = "full; megatron-bridge and accelerate have adapters"
        method = asked.training.method
        yield Lack("no adapters", "spec.training.method", method, allowed)
    yield from model_lacks(asked)
    if backend(asked) is None:
        named = asked.words["attention"]
        what = "TransformerEngine has no such attention"
        yield Lack(what, "spec.stack.attention", named, ", ".join(BACKENDS.values()))
    yield from core(asked)


def core(asked: Asked) -> Iterator[Lack]:
    """Numbers, optimizers and layouts that Megatron-Core lacks."""
    yield from no_reference(asked)
    what = "texts are one stream, which is cut into whole rows"
    ways = () if asked.training.method == "full" else ("packed",)
    yield from other_rows(asked, ways, what)
    yield from _numbers(asked)
    yield from _optimizer(asked)
    if not asked.model.expert_parameters:
        return
    yield Lack(
        "copies of the optimizer share the replicas of experts evenly",
        "layout.dp_shard",
        allowed="copies that divide them",
        when=lambda its: (
            (its.zero_stage > 0) & (expert_data_ranks(its) % instances(its) != 0)
        ),
    )
    if any(isinstance(k.ffn, Moe) and k.ffn.bias for k in asked.model.kinds):
        what = "experts with biases are not split over tensor ranks"
        yield Lack(what, "layout.etp", allowed="1", when=lambda its: its.etp > 1)


def backend(asked: Asked) -> str | None:
    """--attention-backend that runs a job's attention.

    Returns:
        The word; None where Megatron has none for the kernel. [text]
    """
    named = attention_word(asked.words.get("attention"))
    if named is None or asked.framework != "megatron":
        return "auto"
    return next((word for word, its in BACKENDS.items() if its == named), None)


def instances(its: Any) -> Any:
    """Copies of the sharded optimizer states."""
    return np.maximum(its.dp * its.cp // its.dp_shard, 1)


def expert_data_ranks(its: Any) -> Any:
    """Ranks of one pipeline stage that hold the same shard of the experts."""
    return its.tp * its.cp * its.dp // (its.etp * its.ep)


def _numbers(asked: Asked) -> Iterator[Lack]:
    precision = asked.training.precision
    if precision not in LIMITS.precisions:
        allowed = ", ".join(LIMITS.precisions)
        yield Lack("no such format", "spec.training.precision", precision, allowed)
    if precision != "fp8" or asked.stack.get("fp8_recipe", "current") != "delayed":
        return
    refused = [k for k in LIMITS.recompute_modules if SCALED & {*parts_of_kind(k)}]
    yield Lack(
        "delayed fp8 scaling recomputes neither layernorm nor moe_act",
        "layout.stages.recompute",
        allowed="another recipe or module",
        when=lambda its: np.isin(its.recompute, refused),
        of_layers=True,
    )


def _optimizer(asked: Asked) -> Iterator[Lack]:
    its, where = asked.training, "spec.training."
    if its.optimizer not in OPTIMIZERS:
        allowed = ", ".join(OPTIMIZERS)
        yield Lack("no such optimizer", f"{where}optimizer", its.optimizer, allowed)
    if its.optimizer == "muon":
        what = "muon shards no optimizer states"
        at = "layout.zero_stage"
        yield Lack(what, at, allowed="0", when=lambda its: its.zero_stage > 0)
    if its.state_bits not in MOMENTS:
        yield Lack("no such moments", f"{where}state_bits", its.state_bits, "32, 16")
    if its.optimizer_in_backward:
        at = f"{where}optimizer_in_backward"
        yield Lack("updates come after the backward", at, "true", "false")
    if its.freeze != FreezeSpec():
        yield Lack("nothing is frozen", f"{where}freeze", "parts of the model", "none")


WRITER = Writer(
    "megatron",
    "Megatron-LM",
    f"core_v{VERSION}",
    megatron,
    kin=("nemo",),
)
"""Files of Megatron-LM."""
