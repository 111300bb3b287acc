"""Loss of a torchtitan run: the priced default, and the loss that is written."""

from collections.abc import Mapping
from functools import cache

from planner.frameworks.profiles import read_options
from planner.frameworks.stacks import read_stack
from planner.frameworks.torchtitan.recipe import RECIPE
from planner.models.asked import Asked

ROOM = "torchtitan"
"""Framework that the losses of this module are for. [text]"""
WHOLE, COMPILED, CHUNKED = "whole", "compiled", "chunked"
"""Words of the setting `loss`, see options.yaml. [text]"""
CHUNKS = 8
"""Chunks of ChunkedLossWrapper by default. [1]

Source: torchtitan 0.3.0 components/loss.py, ChunkedLossWrapper.Config.num_chunks."""


def usual_loss(*, mtp_layers: int, tokens: int, compiles: bool = True) -> str:
    """Loss of a run on the framework's default stack.

    The configurations of torchtitan's registry take the loss in chunks. Prediction
    layers have a loss of their own, and chunks are equal.

    Args:
        mtp_layers: Prediction layers of the model. [1]
        tokens: Length of a sequence. [token]
        compiles: True where torch.compile is on. [-]
    """
    if _in_chunks(mtp_layers, tokens):
        return CHUNKED
    return COMPILED if compiles else WHOLE


def filled(
    room: str, stack: Mapping[str, object], *, mtp_layers: int, tokens: int
) -> dict[str, object]:
    """Words of the default stack that a job's stack block leaves open.

    Args:
        room: The framework. [text]
        stack: The job's stack block. [-]
        mtp_layers: Prediction layers of the model. [1]
        tokens: Length of a sequence. [token]

    Returns:
        The loss; empty for another framework, a named stack, or a block that gives
        the loss or its bytes. [-]
    """
    if room != ROOM or "loss" in stack or _stated(stack) is not None:
        return {}
    compiles = stack.get("compile") is not False
    word = usual_loss(mtp_layers=mtp_layers, tokens=tokens, compiles=compiles)
    return {"loss": word}


def loss_of(asked: Asked) -> str:
    """Loss to write, so that the run has the priced loss.

    Returns:
        A word of the setting `loss`: the job's own, else the default. Where a stack
        or the job states bytes, the word with the nearest bytes. [text]
    """
    words = asked.words if asked.framework == ROOM else {}
    if "loss" in words:
        return str(words["loss"])
    depth, tokens = asked.model.mtp_layers, asked.training.seq_len
    width = _stated(words)
    if width is None:
        compiles = bool(asked.stack.get("compile", True))
        return usual_loss(mtp_layers=depth, tokens=tokens, compiles=compiles)
    able = {
        word: size
        for word, size in _widths().items()
        if word != CHUNKED or _in_chunks(depth, tokens)
    }
    return min(able, key=lambda word: abs(able[word] - width))


def _in_chunks(mtp_layers: int, tokens: int) -> bool:
    return not mtp_layers and tokens % CHUNKS == 0


def _stated(stack: Mapping[str, object]) -> float | None:
    """Bytes of a logit, set by hand or by a named stack; None where not set."""
    recipe = stack.get("recipe")
    by_hand = recipe.get("logits_bytes") if isinstance(recipe, Mapping) else None
    if isinstance(by_hand, int | float):
        return by_hand
    if "name" not in stack:
        return None
    return read_stack(ROOM, str(stack["name"])).recipe.on(RECIPE).logits_bytes


@cache
def _widths() -> dict[str, float]:
    """Bytes of a logit by word of the setting."""
    words = read_options(ROOM)["loss"]
    return {word: its.recipe.on(RECIPE).logits_bytes for word, its in words.items()}
