"""Writes a model of two layers with a tokenizer of words: `tiny.py CONFIG FOLDER`.

CONFIG is a Hugging Face config.json; the weights are new ones. FOLDER/texts.json has
texts of those words, one on each line.
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


if __name__ == "__main__":
    main()
