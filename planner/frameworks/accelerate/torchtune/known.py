"""Builders of torchtune's models, by the fields of a config.json."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Fields = Mapping[str, Any]
PACKAGE = "torchtune.models"
LLAMA_2_BASE = 10_000
"""Base of Llama 2's rotation, which its builder has no argument for with adapters."""
SCALED = {
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
"""Fields of Llama 3.1's rotation that torchtune has no argument for. [-]

Source: torchtune 0.6.1 models/llama3_1/_position_embeddings.py."""


@dataclass(frozen=True)
class Family:
    """A family of torchtune's models.

    Attributes:
        builder: Name of the builder, and of its module. [text]
        kind: model_type of the checkpointer. [text]
        tokenizer: Builder of the tokenizer. [text]
        files: The tokenizer's files below the weights, by argument. [text]
        ties: True where a head may share the embedding table, as an argument. [-]
    """

    builder: str
    kind: str
    tokenizer: str
    files: Mapping[str, str]
    ties: bool = False


_TIKTOKEN = {"path": "original/tokenizer.model"}
_PIECES = {"path": "tokenizer.model"}
LLAMA_2 = Family("llama2", "LLAMA2", "llama2.llama2_tokenizer", _PIECES)
LLAMA = Family("llama3", "LLAMA3", "llama3.llama3_tokenizer", _TIKTOKEN)
LLAMA_31 = Family("llama3_1", "LLAMA3", "llama3.llama3_tokenizer", _TIKTOKEN)
LLAMA_32 = Family(
    "llama3_2", "LLAMA3_2", "llama3.llama3_tokenizer", _TIKTOKEN, ties=True
)
MISTRAL = Family("mistral", "MISTRAL", "mistral.mistral_tokenizer", _PIECES)
QWEN = Family(
    "qwen2",
    "QWEN2",
    "qwen2.qwen2_tokenizer",
    {"path": "vocab.json", "merges_file": "merges.txt"},
    ties=True,
)
"""Families that a job's model may be of."""


def family_of(fields: Fields) -> Family | None:
    """Family of torchtune that builds a model.

    Returns:
        The family; None where no builder makes this model. [-]
    """
    kind = fields.get("model_type")
    others = {"mistral": MISTRAL, "qwen2": QWEN}
    family = _llama(fields) if kind == "llama" else others.get(str(kind))
    if family is None or not _plain(fields):
        return None
    tied = bool(fields.get("tie_word_embeddings"))
    return family if family.ties or not tied else None


def _llama(fields: Fields) -> Family | None:
    scaling = _rotation(fields)
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "default":
        return LLAMA_2 if _base(fields) == LLAMA_2_BASE else LLAMA
    same = all(scaling.get(name) == value for name, value in SCALED.items())
    if kind != "llama3" or not same:
        return None
    return LLAMA_32 if fields.get("tie_word_embeddings") else LLAMA_31


def _plain(fields: Fields) -> bool:
    """Tell if widths and biases are those of the builders."""
    heads, width = int(fields["num_attention_heads"]), int(fields["hidden_size"])
    window = fields.get("sliding_window") and fields.get("model_type") == "mistral"
    biases = fields.get("attention_bias") or fields.get("mlp_bias")
    per_head = fields.get("head_dim") or width // heads
    return per_head * heads == width and not (window or biases)


def _rotation(fields: Fields) -> Mapping[str, Any]:
    its = fields.get("rope_scaling") or fields.get("rope_parameters")
    return its if isinstance(its, Mapping) else {}


def _base(fields: Fields) -> int:
    """Base of the rotation; that of Llama 2 where the fields have none. [1]."""
    its = _rotation(fields).get("rope_theta", LLAMA_2_BASE)
    return int(fields.get("rope_theta", its))


def sizes(fields: Fields, family: Family) -> dict[str, Any]:
    """Arguments of a builder."""
    its = _rotation(fields)
    heads = fields["num_attention_heads"]
    found: dict[str, Any] = {
        "vocab_size": fields["vocab_size"],
        "num_layers": fields["num_hidden_layers"],
        "num_heads": heads,
        "num_kv_heads": fields.get("num_key_value_heads") or heads,
        "embed_dim": fields["hidden_size"],
        "intermediate_dim": fields["intermediate_size"],
        "max_seq_len": fields["max_position_embeddings"],
        "norm_eps": fields.get("rms_norm_eps", 1e-6),
    }
    if family is not LLAMA_2:
        found["rope_base"] = _base(fields)
    if family in (LLAMA_31, LLAMA_32):
        found["scale_factor"] = int(its["factor"])
    if family.ties:
        found["tie_word_embeddings"] = bool(fields.get("tie_word_embeddings"))
    return found
