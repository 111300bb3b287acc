"""Costs of Megatron-LM's defaults where a script leaves an argument out."""

from collections.abc import Iterator, Mapping
from typing import Any

from planner.errors import BadInputError
from planner.launch.unknown import NOT_PRICED, Unknown

Given = Mapping[str, Any]
DROPOUT = 0.1
"""Default of --hidden-dropout. [1]"""
MASK = 1
"""Bytes per element of a dropout's mask. [B]"""
NARROW = ("exp_avg_dtype", "exp_avg_sq_dtype", "main_grads_dtype", "main_params_dtype")
"""Formats of what the optimizer keeps, fp32 unless it is precision-aware. [text]"""


def costs_of(its: Given) -> dict[str, Any]:
    """Overrides of the software stack for what the defaults keep in memory.

    Dense masks, which the loader makes unless it is told not to, and the masks of
    dropout, which is 10 % unless it is given.

    Args:
        its: Values by argument. [-]

    Returns:
        Fields of a stack block. [-]
    """
    found: dict[str, Any] = {}
    if its.get("create_attention_mask_in_dataloader", True):
        found["loads_masks"] = True
    if its.get("hidden_dropout", DROPOUT):
        found["recipe"] = {"dropout_bytes": MASK}
    return found


def unpriced(its: Given) -> Iterator[Unknown]:
    """Settings of several arguments together that no price is known for.

    Args:
        its: Values by argument. [-]

    Yields:
        The argument, and what it does.
    """
    if its.get("fp16") and its.get("accumulate_allreduce_grads_in_fp32"):
        why = f"beside fp16 weights {NOT_PRICED}"
        yield Unknown("--accumulate-allreduce-grads-in-fp32", None, why)
    if its.get("exp_avg_dtype", "fp32") != its.get("exp_avg_sq_dtype", "fp32"):
        why = f"apart from --exp-avg-dtype {NOT_PRICED}"
        yield Unknown("--exp-avg-sq-dtype", its.get("exp_avg_sq_dtype", "fp32"), why)
    kinds = its.get("cp_comm_type") or []
    if len(set(kinds)) > 1:
        yield Unknown("--cp-comm-type", " ".join(kinds), f"by layer {NOT_PRICED}")
    each = its.get("recompute_num_layers") or 1
    if its.get("recompute_method") == "uniform" and each > 1:
        why = f"of one checkpoint {NOT_PRICED}"
        yield Unknown("--recompute-num-layers", each, why)
    if its.get("fp8") and its.get("fp8_recipe") == "custom":
        yield Unknown("--fp8-recipe", "custom", NOT_PRICED)
    yield from _experts(its)


def _experts(its: Given) -> Iterator[Unknown]:
    """Defaults of experts that cost much."""
    experts, ranks = its.get("num_experts"), its.get("expert_model_parallel_size", 1)
    if not experts:
        return
    sent = its.get("moe_token_dispatcher_type", "allgather")
    if ranks > 1 and sent == "allgather" and not its.get("moe_enable_deepep"):
        why = f"the default, with which every rank gets all tokens, {NOT_PRICED}"
        yield Unknown("--moe-token-dispatcher-type", sent, why)
    if experts > ranks and not its.get("moe_grouped_gemm"):
        why = "without it experts run one after another, which is not priced"
        yield Unknown("--moe-grouped-gemm", None, why)


def refuse_contradictions(its: Given, file: str) -> None:
    """Refuse arguments that Megatron-LM's own checks refuse together.

    Args:
        its: Values by argument. [-]
        file: File of the arguments, for messages. [text]

    Raises:
        BadInputError: Two arguments contradict each other.

    References:
        Megatron-LM core_v0.16.1, megatron/training/arguments.py, validate_args;
        megatron/core/optimizer/optimizer_config.py.
    """
    aware = its.get("use_precision_aware_optimizer")
    for name in NARROW:
        if its.get(name, "fp32") != "fp32" and not aware:
            allowed = "fp32, or --use-precision-aware-optimizer"
            _refuse(file, name, its[name], allowed)
    if its.get("bf16") and its.get("fp16"):
        _refuse(file, "fp16", None, "--fp16 or --bf16")
    summed = its.get("accumulate_allreduce_grads_in_fp32")
    if summed and its.get("main_grads_dtype", "fp32") != "fp32":
        _refuse(file, "main_grads_dtype", its["main_grads_dtype"], "fp32, as summed")
    rope = its.get("position_embedding_type") == "rope"
    rotary = its.get("use_rotary_position_embeddings")
    if not (rope or rotary or its.get("add_position_embedding", True)):
        _refuse(file, "no_position_embedding", None, "--position-embedding-type none")


def _refuse(file: str, name: str, value: object, allowed: str) -> None:
    raise BadInputError(
        "is refused by Megatron-LM itself beside the other arguments",
        file=file,
        field="--" + name.replace("_", "-"),
        value=value,
        allowed=allowed,
    )
