"""A job of eight layers that plans in a fraction of a second, on two clusters."""

from pathlib import Path
from typing import Any

import yaml

JOB: dict[str, Any] = {
    "model": {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 1024,
        "intermediate_size": 2816,
        "num_hidden_layers": 8,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "vocab_size": 32_000,
        "max_position_embeddings": 4096,
    },
    "training": {"seq_len": 2048, "global_batch": 768, "tokens": 2e10},
    "search": {"tp": 1, "pp": 1, "cp": 1, "micro_batch": 1, "recompute": "none"},
}
CANDIDATES: list[dict[str, Any]] = [
    {"name": "rented", "cluster": {"node": "dgx-h100"}, "price": "2.5 USD/GPU-h"},
    {"name": "bought", "cluster": {"node": "dgx-h200"}, "price": "320 kUSD/node"},
]


def written(folder: Path, **fields: Any) -> Path:
    """A purchase file with some fields of its own."""
    file = folder / "purchase.yaml"
    content = {"job": JOB, "candidates": CANDIDATES, **fields}
    file.write_text(yaml.safe_dump(content))
    return file


def up_to(most_nodes: int) -> list[dict[str, Any]]:
    """The candidates with so many nodes at most."""
    return [{**candidate, "most_nodes": most_nodes} for candidate in CANDIDATES]
