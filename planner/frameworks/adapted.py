"""Linear layers that carry adapters, as transformers' models name them."""

from planner.frameworks.transformers import ROOMS
from planner.models.architecture import Architecture
from planner.models.asked import Asked
from planner.models.layers.blocks import Moe
from planner.models.layers.linears import linears
from planner.specs.training import LoraSpec, TrainingSpec

GEMMS = {"qkv": ("qkv",), "proj": ("attention_out",), "fc1": ("fc1",), "fc2": ("fc2",)}
"""GEMMs of a block by the name that Megatron gives its linear layer. [text]"""
LATENT = ("q", "q_a", "q_b", "kv_a", "kv_b")
"""GEMMs that make queries, keys and values in latent attention. [text]"""


def targets(asked: Asked) -> str | list[str]:
    """Linear layers that carry an adapter, as the model's code names them.

    Returns:
        Names, or all-linear; names that the model lacks are left out. [text]
    """
    return _named(asked.training.lora, asked.model)


def with_names(room: str, training: TrainingSpec, model: Architecture) -> TrainingSpec:
    """Training block with adapters on the layers that a framework puts them on.

    One adapter on queries, keys and values as one product is three where the model has
    three linear layers.
    """
    if room not in ROOMS or not training.frozen or on_experts(training.lora, model):
        return training
    found = _named(training.lora, model)
    if isinstance(found, str) or not found:
        return training
    lora = training.lora.model_copy(update={"targets": tuple(found)})
    return training.model_copy(update={"lora": lora})


def on_experts(lora: LoraSpec, model: Architecture) -> bool:
    """Tell if adapters are asked for on routed experts, which are no linear layers.

    Returns:
        True where a feed-forward layer that carries adapters is routed.
    """
    routed = any(isinstance(kind.ffn, Moe) for kind in model.kinds)
    return routed and bool({"fc1", "fc2"} & {*lora.modules})


def _named(lora: LoraSpec, model: Architecture) -> str | list[str]:
    if lora.targets == "all-linear":
        return "all-linear"
    there = [x for kind in model.kinds for x in linears(kind, model.family)]
    found: dict[str, None] = {}
    for name in lora.modules:
        gemms = GEMMS.get(name, ()) + (LATENT if name == "qkv" else ())
        shared = tuple(f"shared_{gemm}" for gemm in gemms)
        its_own = [x.name for x in there if x.name == name or x.gemm in gemms + shared]
        found |= dict.fromkeys(its_own)
    return list(found)
