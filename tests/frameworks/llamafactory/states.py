"""Steps a tiny model with LLaMA-Factory's own optimizer, and counts its states.

Each line of stdin is `{"train.yaml": {...}, "config.json": {...}}`; the answer is one
line with the elements of all states but the count of steps.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from llamafactory.hparams import get_train_args, parser
from llamafactory.train.trainer_utils import create_custom_optimizer
from transformers import AutoConfig, AutoModelForCausalLM, training_args

BLANKS = {"model_name_or_path": "m", "dataset": "texts", "output_dir": "checkpoints"}
BF16 = "is_torch_bf16_gpu_available"
"""Checks of the machine that both libraries make. [text]"""


def elements(question: dict[str, Any]) -> int:
    """Elements of the states after a step."""
    with (
        mock.patch.object(parser, BF16, return_value=True),
        mock.patch.object(training_args, BF16, return_value=True),
    ):
        _, _, training, finetuning, _ = get_train_args(BLANKS | question["train.yaml"])
    fields = question["config.json"]
    config = AutoConfig.for_model(fields.pop("model_type"), **fields)
    model = AutoModelForCausalLM.from_config(config).to(torch.bfloat16)
    optimizer = create_custom_optimizer(model, training, finetuning)
    ids = torch.arange(32).reshape(2, 16)
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    return sum(x.numel() for x in _tensors(optimizer.state) if x.numel() > 1)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """Tensors of a mapping, and those that a projector of it holds."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)
    elif hasattr(value, "__dict__"):
        yield from _tensors(vars(value))


def main() -> None:
    """Answer every line."""
    os.chdir(tempfile.mkdtemp())
    for line in sys.stdin:
        print("ANSWER", elements(json.loads(line)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
