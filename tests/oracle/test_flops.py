"""FLOPs equal what torch counts while a small variant of the model runs.

Counted: every matrix multiplication, attention scores and values in full (eager, so
masked and windowed scores count), routed experts for the tokens they get, the head.
Not counted on either side: norms, activations, softmax, biases, embedding look-up.
Experts run in a loop over those that are hit, so the sum over all of them is k per
token whatever the routing.
"""

from typing import Any

import pytest
from hugging_face import NAMES, counters, ours, small, theirs, torch

from planner.models import Architecture, preset

pytestmark = pytest.mark.oracle

BATCH, LENGTH = 2, 24


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
    expected = BATCH * LENGTH * (layers + model.head_flops)
    assert _counted(name, config, train=False) == expected


@pytest.mark.parametrize("name", NAMES)
def test_training_flops_equal_those_torch_counts(name: str) -> None:
    """Forward and backward together are three times the forward."""
    config = small(name)
    per_token = _variant(name, config).model_flops_per_token(LENGTH, "full")
    assert _counted(name, config, train=True) == BATCH * LENGTH * per_token
