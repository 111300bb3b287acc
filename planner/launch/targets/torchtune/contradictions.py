"""Settings that torchtune's recipes refuse before the first step."""

from collections.abc import Mapping
from typing import Any

from planner.frameworks.accelerate.together import on, wrong
from planner.launch.targets.accelerate.files import block

IN_BACKWARD, STEPS = "optimizer_in_bwd", "gradient_accumulation_steps"
OFFLOADING = "enable_activation_offloading"
CHECKPOINTING = "enable_activation_checkpointing"


def refuse_contradictions(settings: Mapping[str, Any], file: str) -> None:
    """Refuse settings that a recipe refuses, or has no word for.

    Raises:
        BadInputError: Settings go not together, or one needs another.

    References:
        torchtune 0.6.1 recipes/full_finetune_distributed.py and the other recipes; the
        recipes of adapters read no optimizer_in_bwd.
    """
    if on(settings, OFFLOADING) and not on(settings, CHECKPOINTING):
        what, allowed = f"needs {CHECKPOINTING}", f"{CHECKPOINTING} beside it"
        raise wrong(settings, OFFLOADING, what, allowed, file)
    if str(settings.get("dtype")) in ("fp16", "float16"):
        what = "is no format of torchtune's recipes"
        raise wrong(settings, "dtype", what, "bf16, fp32", file)
    if settings.get("tensor_parallel_dim", 1) != 1:
        _refuse_tensor(settings, file)
    if on(settings, IN_BACKWARD):
        _refuse_in_backward(settings, file)


def _refuse_tensor(settings: Mapping[str, Any], file: str) -> None:
    name = "tensor_parallel_dim"
    if not on(settings, "tensor_parallel_plan"):
        allowed = "tensor_parallel_plan beside it"
        raise wrong(settings, name, "needs tensor_parallel_plan", allowed, file)
    if on(block(settings, "optimizer"), "fused"):
        allowed = "optimizer.fused: false"
        raise wrong(settings, name, "goes not with a fused optimizer", allowed, file)


def _refuse_in_backward(settings: Mapping[str, Any], file: str) -> None:
    if settings.get(STEPS, 1) != 1:
        what, allowed = f"goes not with {STEPS}", f"{STEPS}: 1"
        raise wrong(settings, IN_BACKWARD, what, allowed, file)
    component = str(block(settings, "model").get("_component_", ""))
    if "lora_" in component.rpartition(".")[2]:
        what = "is no setting of the recipes of adapters"
        raise wrong(settings, IN_BACKWARD, what, "false", file)
