"""Names of torchtune's losses and layers, and presets by builder."""

from functools import cache
from pathlib import Path

from planner.hardware.reading.yaml_text import parse_yaml

LOSSES = {
    **dict.fromkeys(("CrossEntropyLoss", "DPOLoss", "RSOLoss"), "hf"),
    "CEWithChunkedOutputLoss": "chunked_logits",
    "LinearCrossEntropyLoss": "chunked_head",
}
"""Word of the stack block by class of a loss. [text]"""
PIECES = 8
"""Pieces of the tokens that a loss in chunks has by default, and is priced with. [1]"""
FUSED = {
    "q_proj": "qkv_proj",
    "k_proj": "qkv_proj",
    "v_proj": "qkv_proj",
    "gate_proj": "gate_up_proj",
    "up_proj": "gate_up_proj",
}
"""Layers that torchtune splits and a checkpoint of Phi-3 has as one. [text]

As many heads of keys as of queries: adapters of q and v have as many parameters as one
of the fused layer. Source: torchtune 0.6.1 models/phi3/_convert_weights.py."""


@cache
def presets() -> dict[str, str]:
    """Preset by builder, which fixes every size of a model. [text]."""
    text = Path(__file__).with_name("presets.yaml").read_text(encoding="utf-8")
    builders: dict[str, list[str]] = parse_yaml(text)["builders"]
    return {name: preset for preset, names in builders.items() for name in names}
