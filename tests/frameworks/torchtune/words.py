"""A tokenizer of words for a trial without a tokenizer's files, and a tiny model.

`words.py CONFIG FOLDER` writes new weights of torchtune's model for a config.json in
the format of Hugging Face, and texts of those words.
"""

import json
import random
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torchtune.models.convert_weights import tune_to_hf
from torchtune.models.llama2 import llama2

TEXTS, LONGEST = 256, 48


class Words:
    """Words `w2`, `w3`, ... as their numbers."""

    def __init__(self, max_seq_len: int, **_files: str) -> None:
        self.max_seq_len, self.pad_id, self.eos_id = max_seq_len, 0, 1

    def encode(
        self, text: str, *, add_bos: bool = True, add_eos: bool = True
    ) -> list[int]:
        """Numbers of a text's words."""
        numbers = [int(word[1:]) for word in text.split()]
        return [1] * add_bos + numbers + [1] * add_eos


def main() -> None:
    """Write weights and texts."""
    fields, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    heads, width = fields["num_attention_heads"], fields["hidden_size"]
    torch.manual_seed(0)
    model = llama2(
        vocab_size=fields["vocab_size"],
        num_layers=fields["num_hidden_layers"],
        num_heads=heads,
        num_kv_heads=fields["num_key_value_heads"],
        embed_dim=width,
        intermediate_dim=fields["intermediate_size"],
        max_seq_len=fields["max_position_embeddings"],
    )
    folder.mkdir()
    weights = tune_to_hf(
        model.state_dict(), heads, fields["num_key_value_heads"], width
    )
    weights = {name: one.contiguous() for name, one in weights.items()}
    save_file(weights, folder / "model-00001-of-00001.safetensors")
    (folder / "config.json").write_text(json.dumps(fields))
    rng = random.Random(0)  # noqa: S311
    few = [f"w{n}" for n in range(2, 10)]
    lines = (" ".join(rng.choices(few, k=LONGEST)) for _ in range(TEXTS))
    text = "".join(json.dumps({"text": line}) + "\n" for line in lines)
    (folder / "texts.jsonl").write_text(text)


if __name__ == "__main__":
    main()
