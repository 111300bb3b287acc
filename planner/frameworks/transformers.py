"""Attention implementations of transformers' models, by family and by price."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from hardware.reading.yaml_text import parse_yaml
from planner.errors import BadInputError
from planner.models.asked import Asked
from planner.specs.frameworks.lacks import Lack, states_rows
from planner.specs.training import TrainingSpec

ROOMS = ("accelerate", "deepspeed")
"""Frameworks that train transformers' own models. [text]"""
OWN_KERNELS = ("unsloth",)
"""Stacks of those rooms that bring attention of their own. [text]"""
WORDS = ("sdpa", "flash_attention_2", "eager")
"""Implementations that options.yaml of those rooms prices. [text]"""
UNFUSED = "unfused"
"""Kernel that eager is priced as; other implementations run fused kernels. [text]"""


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    usual: tuple[str, ...]
    families: dict[str, tuple[str, ...]]
    buffers: frozenset[str]
    wrapped: dict[str, str]


@cache
def _file() -> _File:
    path = files("planner.frameworks") / "transformers.yaml"
    return _File.model_validate(parse_yaml(path.read_text("utf-8")))


def has_buffers(family: str) -> bool:
    """Tell a family whose state dict holds more than parameters.

    Args:
        family: Hugging Face model type. [text]

    Returns:
        True where every rank has to read the weights by itself.
    """
    return family in _file().buffers


def wrapped_block(family: str) -> str | None:
    """Class of the block to shard, of a family whose code names blocks it lacks.

    Args:
        family: Hugging Face model type. [text]

    Returns:
        Name of the class; None where the code names its own blocks. [text]
    """
    return _file().wrapped.get(family)


def implementations(family: str) -> tuple[str, ...]:
    """Attention implementations that a family's code has, the preferred first.

    Args:
        family: Hugging Face model type. [text]

    Returns:
        Words of attn_implementation. [text]
    """
    its = _file()
    return its.families.get(family, its.usual)


def implementation(family: str, kernel: object, asked: object = None) -> str | None:
    """Attention implementation that runs the priced kernel.

    Args:
        family: Hugging Face model type. [text]
        kernel: Kernel that was priced. [text]
        asked: Word of the job's stack block, or None. [text]

    Returns:
        Word of attn_implementation; None where the family cannot run that kernel.
        [text]
    """
    able = [
        word
        for word in implementations(family)
        if (word == "eager") == (kernel == UNFUSED)
    ]
    wanted = able[:1] if asked is None else [word for word in able if word == asked]
    return wanted[0] if wanted else None


def with_attention(
    room: str, stack: Mapping[str, object], family: str
) -> dict[str, object]:
    """Stack block of a job, with attention that the family's code has.

    Args:
        room: The framework. [text]
        stack: The job's stack block. [-]
        family: Hugging Face model type. [text]

    Returns:
        The block; attention is added where the family lacks the room's default.

    Raises:
        BadInputError: The family's code lacks the attention that the block asks for.
    """
    known = implementations(family)
    asked = stack.get("attention", stack.get("attention_kernel"))
    if room not in ROOMS or stack.get("name") in OWN_KERNELS:
        return dict(stack)
    if asked in WORDS and asked not in known:
        raise BadInputError(
            f"{family} has no such attention in transformers",
            field="stack.attention",
            value=asked,
            allowed=", ".join(known),
        )
    if asked is None and known == ("eager",):
        return {**stack, "attention": "eager"}
    return dict(stack)


def with_pairs(
    room: str, stack: Mapping[str, object], reference: str | None
) -> dict[str, object]:
    """Stack block of a job, with the loss of TRL's DPO where it trains on pairs.

    Args:
        room: The framework. [text]
        stack: The job's stack block. [-]
        reference: Frozen model of preference training, or None. [text]

    Returns:
        The block; a loss in chunks of tokens is added where none is named. [-]

    References:
        trl 1.16.0 trainer/dpo_trainer.py, add_fused_lm_head.
    """
    own = stack.get("name") in OWN_KERNELS
    if reference is None or room != "accelerate" or own:
        return dict(stack)
    return {"loss": "chunked", **stack}


def with_rows(
    room: str, stack: Mapping[str, object], training: TrainingSpec, *, known: bool
) -> dict[str, object]:
    """Stack block of a job, with attention that keeps packed texts apart.

    Args:
        room: The framework. [text]
        stack: The job's stack block. [-]
        training: The job's training block. [-]
        known: True where FlashAttention-2 was measured on the GPU. [-]

    Returns:
        The block; FlashAttention-2 is added where texts are packed and no attention
        is named. [-]

    References:
        transformers modeling_flash_attention_utils.py: texts of one row are told apart
        by their positions.
    """
    packed = states_rows(training) and training.rows == "packed"
    named = {"attention", "attention_kernel"} & stack.keys()
    if named or not (packed and known) or room != "accelerate":
        return dict(stack)
    if stack.get("name") in OWN_KERNELS:
        return dict(stack)
    return {"attention": "flash_attention_2", **stack}


def attention(asked: Asked, room: str) -> str | None:
    """Word of attn_implementation that runs the priced attention.

    Args:
        asked: The job. [-]
        room: The target's framework. [text]

    Returns:
        The word; None where the model's code lacks the priced attention. The model's
        default for a job of another framework. [text]
    """
    family = asked.model.family
    if asked.framework != room:
        return implementations(family)[0]
    kernel, stated = asked.stack.get("attention_kernel"), asked.words.get("attention")
    return implementation(family, kernel, stated)


def attention_lacks(asked: Asked, room: str) -> Iterator[Lack]:
    """Priced attention that the model's code lacks.

    Args:
        asked: The job. [-]
        room: The target's framework. [text]

    Yields:
        One record, or no record.
    """
    if attention(asked, room) is None:
        allowed = ", ".join(implementations(asked.model.family))
        priced = asked.stack.get("attention_kernel")
        yield Lack("no such attention", "spec.stack.attention", priced, allowed)


def sharing_lacks(asked: Asked, most: int) -> Iterator[Lack]:
    """ZeRO stages that cannot hold weights which several layers share.

    Args:
        asked: The job. [-]
        most: Highest ZeRO stage that holds such weights once. [1]

    Yields:
        One record where layers share weights, or no record.

    References:
        PyTorch, FullyShardedDataParallel: a parameter lies in one unit, and a unit here
        is a layer. DeepSpeed's ZeRO-3 gathers the weights for each layer that runs
        them, which has no price here.
    """
    if asked.model.shares_weights:
        yield Lack(
            "weights that layers share are not divided",
            "layout.zero_stage",
            allowed=f"{most} or less",
            when=lambda its: its.zero_stage > most,
        )
