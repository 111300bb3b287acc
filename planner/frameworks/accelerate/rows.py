"""Ways to fill rows with texts, in the words of trainers on accelerate."""

from collections.abc import Iterator
from typing import Any

from planner.frameworks.transformers import attention
from planner.models.asked import Asked
from planner.specs.frameworks.lacks import Lack, other_rows, states_rows
from planner.specs.training import TrainingSpec

FLASH = "flash_attention_2"
"""Attention that keeps texts of one row apart at no cost. [text]"""


def of_trl(training: TrainingSpec) -> dict[str, Any]:
    """Arguments of SFTTrainer that fill rows.

    Returns:
        Values by argument; texts cut into whole rows where the job states nothing. [-]

    References:
        trl 1.16.0 trainer/sft_config.py: bfd keeps texts whole and apart, wrapped does
        not; pad_to_multiple_of of the length pads every row to it.
    """
    apart, stated = training.rows == "packed", states_rows(training)
    found: dict[str, Any] = {"max_length": training.seq_len}
    if apart or not stated:
        return found | {
            "packing": True,
            "packing_strategy": "bfd" if apart else "wrapped",
        }
    if training.rows == "max":
        found["pad_to_multiple_of"] = training.seq_len
    return found | {"packing": False}


SAID = {
    "longest": "Each micro-batch is padded to its longest text, as priced.",
    "max": "Each text is padded to the longest length, as priced.",
    "packed": "Several texts lie in one row and attend to themselves alone, as priced.",
}
"""First steps with a run, by how texts fill its rows. [text]"""


def first_steps(training: TrainingSpec, *usual: str) -> tuple[str, ...]:
    """Words on a run's first steps, the last of them on how texts fill rows.

    Args:
        training: The job's training block. [-]
        usual: The words where the job does not say how rows are filled. [text]
    """
    if not states_rows(training):
        return usual
    return *usual[:-1], SAID[training.rows]


def apart_by_flash(asked: Asked) -> Iterator[Lack]:
    """Packed texts that another attention than FlashAttention does not keep apart."""
    if attention(asked, "accelerate") != FLASH:
        what = f"texts of one row are kept apart by {FLASH} alone"
        ways = ("longest", "max", f"stack.attention {FLASH}")
        yield from other_rows(asked, ways, what)
