"""Configs with layers that the model has not, or an activation that nobody knows."""

import json
from pathlib import Path
from typing import Any

import pytest

from planner.models import ModelConfigError, from_config

KIMI = Path(__file__).parents[2] / "golden" / "cases" / "kimi-kda-minus3.json"


def kimi(*layers: int) -> dict[str, Any]:
    its: dict[str, Any] = json.loads(KIMI.read_text())
    attention = its["linear_attn_config"]
    attention["kda_layers"] = [
        at for at in range(1, 28) if at not in attention["full_attn_layers"]
    ]
    attention["kda_layers"] += layers
    return {"name": "kimi", **its}


@pytest.mark.parametrize("layer", [-3, 0, 28])
def test_a_layer_out_of_range_is_refused(layer: int) -> None:
    assert from_config(kimi(), source="k").layers == 27
    with pytest.raises(ModelConfigError, match=f"names layer {layer}"):
        from_config(kimi(layer), source="k")


def test_an_activation_that_is_not_known_is_refused() -> None:
    llama = {
        "name": "a",
        "model_type": "llama",
        "hidden_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 512,
        "vocab_size": 512,
    }
    assert from_config(llama | {"hidden_act": "silu"}, source="a").layers == 2
    with pytest.raises(ModelConfigError, match="hidden_act"):
        from_config(llama | {"hidden_act": "swoosh"}, source="a")
