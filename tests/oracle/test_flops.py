"""FLOPs equal what torch counts while a small variant of the model runs.

Counted: every matrix multiplication, attention scores and values in full (eager, so
masked and windowed scores count), routed experts for the tokens they get, the head.
Not counted on either side: norms, activations, softmax, biases, embedding look-up.
Experts run in a loop over those that are hit, so the sum over all of them is k per
token whatever the routing.
"""

from dataclasses import replace
from typing import Any

import pytest
from hugging_face import NAMES as ALL
from hugging_face import counters, described, ours, small, theirs, torch
from strategies import small_job

from planner.cost.time.recompute import gemm_share
from planner.models import Architecture, preset
from planner.models.layers.blocks import (
    CompressedAttention,
    ScanBlock,
    SparseLatentAttention,
)
from planner.specs.search import SearchSpec

pytestmark = pytest.mark.oracle

BATCH, LENGTH = 2, 24
NAMES = [
    name
    for name in ALL
    if not any(
        isinstance(
            kind.attention, (ScanBlock, SparseLatentAttention, CompressedAttention)
        )
        for kind in preset(name).kinds
    )
]
"""Models without scans and indexers, which test_scans.py has."""
FAMILIES = {preset(name).family: name for name in NAMES}.values()
"""A model of every family."""


def _counted(name: str, config: dict[str, Any], *, train: bool) -> int:
    """FLOPs that torch counts over a batch."""
    counter = counters.FlopCounterMode(display=False)
    model = theirs(name, config, "cpu").eval()
    words = (
        torch.arange(BATCH * LENGTH).reshape(BATCH, LENGTH) % model.config.vocab_size
    )
    with counter:
        logits = model(words, use_cache=False).logits
        if train:
            logits.sum().backward()
    return int(counter.get_total_flops())


def _variant(name: str, config: dict[str, Any]) -> Architecture:
    """Our counterpart; the reference of Llama 4 sends every token to all experts."""
    if preset(name).family == "llama4_text":
        config = config | {"num_experts_per_tok": config["num_local_experts"]}
    return ours(name, config)


@pytest.mark.parametrize("name", NAMES)
def test_forward_flops_equal_those_torch_counts(name: str) -> None:
    """2 N_mm + F_core over all layers, and 2 h V of the head."""
    config = small(name)
    model = _variant(name, config)
    layers = sum(model.layer_flops(k, LENGTH, "full") * n for k, n in model.runs)
    ends = model.head_flops + 2 * model.outer_weights
    expected = BATCH * LENGTH * (layers + ends)
    assert _counted(name, config, train=False) == expected


@pytest.mark.parametrize("name", NAMES)
def test_training_flops_equal_those_torch_counts(name: str) -> None:
    """Forward and backward together are three times the forward."""
    config = small(name)
    per_token = _variant(name, config).model_flops_per_token(LENGTH, "full")
    assert _counted(name, config, train=True) == BATCH * LENGTH * per_token


def _checkpointed(name: str, config: dict[str, Any]) -> int:
    """FLOPs that torch counts where every layer is checkpointed without reentrance."""
    counter = counters.FlopCounterMode(display=False)
    known = described(name, config).to_dict()
    dropped = [key for key in known if "drop" in key and "summary" not in key]
    dry = config | dict.fromkeys(dropped, 0.0)
    model = theirs(name, dry, "cpu").train()
    model.gradient_checkpointing_enable({"use_reentrant": False})
    words = (
        torch.arange(BATCH * LENGTH).reshape(BATCH, LENGTH) % model.config.vocab_size
    )
    with counter:
        model(words, use_cache=False).logits.sum().backward()
    return int(counter.get_total_flops())


@pytest.mark.parametrize("name", FAMILIES)
def test_recomputed_flops_equal_those_torch_counts(name: str) -> None:
    """A checkpointed layer runs again up to the last tensor that its backward needs."""
    config = small(name)
    model = _variant(name, config)
    workload = replace(small_job(SearchSpec(), name="accelerate"), model=model)
    kind = workload.recipe.kind("full")
    again = 0.0
    for layer, count in model.runs:
        products = sum(
            gemm_share(workload, layer, kind, gemm.name) * 2 * gemm.weights_per_token
            for gemm in layer.gemms()
        )
        core = layer.attention.core_flops(
            layer.attention.attended(LENGTH, causal=False)
        )
        mixed = layer.stream.mixed_flops if layer.stream else 0
        again += count * (products + core + mixed)
    per_token = model.model_flops_per_token(LENGTH, "full") + again
    assert _checkpointed(name, config) == BATCH * LENGTH * per_token
