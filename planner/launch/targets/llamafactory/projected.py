"""GaLore and APOLLO, Adam on projected gradients, in LLaMA-Factory's words."""

from typing import Any

from planner.specs.training import TrainingSpec

WORDS = {"galore-adamw": "galore", "apollo-adamw": "apollo"}
"""Word of an optimizer that starts its arguments, by the planner's name. [text]"""
OPTIM = "adamw_torch"
"""TrainingArguments.optim that both are made for. [text]"""
RANK = 16
"""Rank where a file gives none, hparams/finetuning_args.py. [1]"""


def written(training: TrainingSpec) -> dict[str, Any]:
    """Arguments of a projecting optimizer, over the matrices of all layers.

    Returns:
        Values by argument; empty for other optimizers. [-]

    References:
        LLaMA-Factory 0.9.5 train/trainer_utils.py, _create_galore_optimizer and
        _create_apollo_optimizer: `all` leaves out embedding and head.
    """
    word = WORDS.get(training.optimizer)
    if word is None:
        return {}
    return {
        "optim": OPTIM,
        f"use_{word}": True,
        f"{word}_target": "all",
        f"{word}_rank": training.projection_rank,
    }
