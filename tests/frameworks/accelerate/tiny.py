"""Writes a model of two layers with a tokenizer of words: `tiny.py CONFIG FOLDER`.

CONFIG is a Hugging Face config.json; the weights are new ones. FOLDER/texts has
texts of those words, one on each line, and FOLDER/pairs a text that is to be preferred
beside another.
"""

import json
import random
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

TEXTS, LONGEST = 256, 48


def main() -> None:
    """Write model, tokenizer and texts."""
    folder = Path(sys.argv[2])
    config = AutoConfig.from_pretrained(Path(sys.argv[1]).parent)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.save_pretrained(folder)
    words = {f"w{n}": n for n in range(2, config.vocab_size)}
    named = {"<pad>": 0, "<eos>": 1} | words
    by_word = Tokenizer(models.WordLevel(named, unk_token="<pad>"))  # noqa: S106  # no password
    by_word.pre_tokenizer = pre_tokenizers.Whitespace()
    marks = {"pad_token": "<pad>", "eos_token": "<eos>"}
    its = PreTrainedTokenizerFast(tokenizer_object=by_word, **marks)
    its.save_pretrained(folder)
    rng = random.Random(0)  # noqa: S311
    few = sorted(words)[:8]
    lines = (" ".join(rng.choices(few, k=LONGEST)) for _ in range(TEXTS))
    text = "".join(json.dumps({"text": line}) + "\n" for line in lines)
    (folder / "texts").mkdir()
    (folder / "texts" / "train.jsonl").write_text(text)
    _write_pairs(folder / "pairs", few)


def _write_pairs(folder: Path, words: list[str]) -> None:
    """Pairs of texts: one has the first half of the words, the other the rest."""
    rng = random.Random(1)  # noqa: S311
    half = len(words) // 2
    sides = {"chosen": words[:half], "rejected": words[half:]}
    folder.mkdir()
    with (folder / "train.jsonl").open("w") as out:
        for _ in range(TEXTS):
            its = {k: " " + " ".join(rng.choices(w, k=8)) for k, w in sides.items()}
            out.write(json.dumps({"prompt": words[0], **its}) + "\n")


if __name__ == "__main__":
    main()
