"""Costs of Megatron-LM's defaults where a script leaves an argument out."""

from collections.abc import Iterator, Mapping
from typing import Any

from planner.frameworks.megatron.recipe import RECIPE
from planner.launch.unknown import NOT_PRICED, Unknown

Given = Mapping[str, Any]
DROPOUT = 0.1
"""Default of --hidden-dropout. [1]"""
PADS, PRICED = "make_vocab_size_divisible_by", "vocab_multiple"
"""Argument that pads the vocabulary, and its field of a recipe. [text]"""
MASK = 1
"""Bytes per element of a dropout's mask. [B]"""


def costs_of(its: Given) -> dict[str, Any]:
    """Overrides of the software stack for what the defaults keep in memory.

    Dense masks, which the loader makes unless it is told not to, the masks of
    dropout, which is 10 % unless it is given, and rows that pad the vocabulary.
    """
    found: dict[str, Any] = {}
    if its.get("create_attention_mask_in_dataloader", True):
        found["loads_masks"] = True
    recipe = {"dropout_bytes": MASK} if its.get("hidden_dropout", DROPOUT) else {}
    if (each := its.get(PADS, RECIPE.vocab_multiple)) != RECIPE.vocab_multiple:
        recipe[PRICED] = each
    return found | ({"recipe": recipe} if recipe else {})


def unpriced(its: Given) -> Iterator[Unknown]:
    """Settings of several arguments together that no price is known for."""
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
