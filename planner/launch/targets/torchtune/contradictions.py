"""Settings that torchtune's recipes refuse before the first step."""

from collections.abc import Mapping
from typing import Any

from planner.frameworks.accelerate.together import on, refuse_together, wrong
from planner.launch.targets.accelerate.files import block

APART = (("optimizer_in_bwd", "clip_grad_norm"),)
"""Settings that go not together. [text]"""
IN_BACKWARD, STEPS = "optimizer_in_bwd", "gradient_accumulation_steps"
OFFLOADING = "enable_activation_offloading"
CHECKPOINTING = "enable_activation_checkpointing"


def refuse_contradictions(given: Mapping[str, Any], file: str) -> None:
    """Refuse settings that a recipe refuses, or has no word for.

    Raises:
        BadInputError: Settings go not together, or one needs another.

    References:
        torchtune 0.6.1 recipes/full_finetune_distributed.py and the other recipes; the
        recipes of adapters read no optimizer_in_bwd.
    """
    refuse_together(given, APART, file)
    if on(given, OFFLOADING) and not on(given, CHECKPOINTING):
        what, allowed = f"needs {CHECKPOINTING}", f"{CHECKPOINTING} beside it"
        raise wrong(given, OFFLOADING, what, allowed, file)
    if str(given.get("dtype")) in ("fp16", "float16"):
        what = "is no format of torchtune's recipes"
        raise wrong(given, "dtype", what, "bf16, fp32", file)
    if given.get("tensor_parallel_dim", 1) != 1:
        _refuse_tensor(given, file)
    if on(given, IN_BACKWARD):
        _refuse_in_backward(given, file)


def _refuse_tensor(given: Mapping[str, Any], file: str) -> None:
    name = "tensor_parallel_dim"
    if not on(given, "tensor_parallel_plan"):
        allowed = "tensor_parallel_plan beside it"
        raise wrong(given, name, "needs tensor_parallel_plan", allowed, file)
    if on(block(given, "optimizer"), "fused"):
        allowed = "optimizer.fused: false"
        raise wrong(given, name, "goes not with a fused optimizer", allowed, file)


def _refuse_in_backward(given: Mapping[str, Any], file: str) -> None:
    if given.get(STEPS, 1) != 1:
        what, allowed = f"goes not with {STEPS}", f"{STEPS}: 1"
        raise wrong(given, IN_BACKWARD, what, allowed, file)
    component = str(block(given, "model").get("_component_", ""))
    if "lora_" in component.rpartition(".")[2]:
        what = "is no setting of the recipes of adapters"
        raise wrong(given, IN_BACKWARD, what, "false", file)
