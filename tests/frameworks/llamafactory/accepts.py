"""Answers, for every train.yaml on a line of JSON, whether LLaMA-Factory takes it.

A line is `{"train.yaml": {...}, "ds_config.json": {...}}`, the latter under DeepSpeed;
the answer is one line of JSON with `accepted`, `why`, and what the parser makes of it.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

from llamafactory.hparams import get_train_args, parser
from transformers import training_args
from transformers.training_args import ParallelMode, TrainingArguments

BLANKS = {"model_name_or_path": "m", "dataset": "texts", "output_dir": "checkpoints"}
"""Arguments that the command adds to the file."""
BF16 = "is_torch_bf16_gpu_available"
"""Checks of the machine that both libraries make. [text]"""


def answered(question: dict[str, Any]) -> dict[str, Any]:
    """Parse one file as on GPUs that have bf16, under torchrun."""
    given = BLANKS | question["train.yaml"]
    if "deepspeed" in given:
        Path(given["deepspeed"]).write_text(json.dumps(question["ds_config.json"]))
    alone, several = ParallelMode.NOT_PARALLEL, ParallelMode.DISTRIBUTED
    under = several if "deepspeed" in given else alone
    with (
        mock.patch.object(parser, BF16, return_value=True),
        mock.patch.object(training_args, BF16, return_value=True),
        mock.patch.object(TrainingArguments, "parallel_mode", under),
    ):
        model, data, training, finetuning, _ = get_train_args(given)
    return {
        "stage": finetuning.stage,
        "micro_batch": training.per_device_train_batch_size,
        "grad_accum": training.gradient_accumulation_steps,
        # data/processor/supervised.py fills packs up to a token more.
        "length": data.cutoff_len + (finetuning.stage == "sft" and data.packing),
        "packing": data.packing,
        "method": finetuning.finetuning_type,
        "rank": finetuning.lora_rank,
        "projects": [
            getattr(finetuning, f"{word}_rank")
            for word in ("galore", "apollo")
            if getattr(finetuning, f"use_{word}")
        ],
        "bits": model.quantization_bit,
        "zero": ((training.deepspeed and question["ds_config.json"]) or {}).get(
            "zero_optimization"
        ),
    }


def main() -> None:
    """Answer every line."""
    os.chdir(tempfile.mkdtemp())
    for line in sys.stdin:
        try:
            said = answered(json.loads(line))
        except Exception as error:  # noqa: BLE001  # refusals
            said = {"accepted": False, "why": f"{type(error).__name__}: {error}"}
        else:
            said |= {"accepted": True, "why": ""}
        print("ANSWER " + json.dumps(said), flush=True)  # noqa: T201  # a script


if __name__ == "__main__":
    main()
