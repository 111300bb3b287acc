"""A measured row that is made by hand, and where the sample of published ones is."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from planner.calibration.rows.rows import Row

SAMPLE = Path(__file__).parents[1] / "planner" / "calibration" / "measured"
PLAIN: dict[str, Any] = {
    "id": "mine",
    "source": {"title": "a run of ours, 2024-06"},
    "model": {
        "name": "small",
        "layers": 16,
        "hidden": 2048,
        "heads": 16,
        "vocab": 32000,
        "ffn_hidden": 5632,
        "gated_mlp": True,
    },
    "hardware": {"gpu": "H100", "gpus": 16, "inter_node": "RoCE"},
    "job": {"seq_len": 4096, "global_batch": 64, "framework": "Megatron-LM"},
    "layout": {"tp": 2, "dp": 8, "micro_batch": 2, "sharding": "ZeRO-1"},
    "measured": {"step_time_s": 1.0},
}
"""The raw blocks that a user writes."""

MakeRow = Callable[..., Row]


def changed(**blocks: Any) -> dict[str, Any]:
    """The plain row with fields of its blocks replaced; None removes a block."""
    fields = deepcopy(PLAIN)
    for name, value in blocks.items():
        if value is None:
            del fields[name]
        elif isinstance(value, dict) and isinstance(fields.get(name), dict):
            fields[name] |= value
        else:
            fields[name] = value
    return fields
