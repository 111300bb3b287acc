"""MPT: ALiBi instead of positions, LayerNorm without bias, no biases, no gate."""

from typing import ClassVar, Literal

from planner.models.layers.blocks import Norm
from planner.models.layers.fourfold import FourfoldConfig


class MptConfig(FourfoldConfig):
    """Fields of an MPT config; the head is always the embedding."""

    family: ClassVar[str] = "mpt"
    hf_class: ClassVar[str] = "MptForCausalLM"
    aliases: ClassVar[tuple[str, ...]] = ("MPTForCausalLM",)
    norm: ClassVar[Norm] = "layernorm-no-bias"
    other_names: ClassVar[dict[str, str]] = {
        "d_model": "hidden_size",
        "n_heads": "num_attention_heads",
        "n_layers": "num_hidden_layers",
        "max_seq_len": "max_position_embeddings",
    }

    tie_word_embeddings: bool = True
    expansion_ratio: Literal[4] = 4
    no_bias: Literal[True] = True
