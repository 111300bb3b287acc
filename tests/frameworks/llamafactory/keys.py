"""Prints the arguments that LLaMA-Factory's parser has, by dataclass, as JSON."""

import json
import sys
from dataclasses import fields
from importlib.metadata import version

from llamafactory.hparams.data_args import DataArguments
from llamafactory.hparams.finetuning_args import FinetuningArguments
from llamafactory.hparams.generating_args import GeneratingArguments
from llamafactory.hparams.model_args import ModelArguments
from llamafactory.hparams.training_args import TrainingArguments
from transformers import Seq2SeqTrainingArguments
from transformers.models.auto import modeling_auto


def names(its: type, beyond: type | None = None) -> list[str]:
    """Fields that a dataclass takes, without those of another."""
    without = {field.name for field in fields(beyond)} if beyond else set()
    return sorted(f.name for f in fields(its) if f.init and f.name not in without)


def main() -> None:
    """Print all of them."""
    json.dump(
        {
            "version": version("llamafactory"),
            "model": names(ModelArguments),
            "data": names(DataArguments),
            "training": names(TrainingArguments, Seq2SeqTrainingArguments),
            "finetuning": names(FinetuningArguments),
            "generating": names(GeneratingArguments),
            "trainer": names(Seq2SeqTrainingArguments),
            "models": sorted(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES),
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
