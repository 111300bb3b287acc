"""Attention implementations of transformers' models, by family and by price."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from planner.errors import BadInputError
from planner.hardware.kernels.attention import (
    BY_PYTORCH,
    UNFUSED,
    attention_on,
    attention_word,
    attention_words,
)
from planner.hardware.reading.yaml_text import parse_yaml
from planner.models.asked import Asked
from planner.specs.frameworks.lacks import Lack, states_rows
from planner.specs.training import TrainingSpec

ROOMS = ("accelerate", "deepspeed")
"""Frameworks that train transformers' own models. [text]"""
OWN_KERNELS = ("unsloth",)
"""Stacks of those rooms that bring attention of their own. [text]"""
FLASH = "fa2"
"""FlashAttention-2, which transformers replaces by what a family has of its kind."""


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    usual: tuple[str, ...]
    corrects: dict[str, str]
    families: dict[str, tuple[str, ...]]
    buffers: frozenset[str]
    wrapped: dict[str, str]


@cache
def _file() -> _File:
    path = files("planner.frameworks") / "transformers.yaml"
    return _File.model_validate(parse_yaml(path.read_text("utf-8")))


def has_buffers(family: str) -> bool:
    """Tell a family whose state dict holds more than parameters.

    Returns:
        True where every rank has to read the weights by itself.
    """
    return family in _file().buffers


def wrapped_block(family: str) -> str | None:
    """Class of the block to shard, of a family whose code names blocks it lacks.

    Returns:
        Name of the class; None where the code names its own blocks. [text]
    """
    return _file().wrapped.get(family)


def implementations(family: str) -> tuple[str, ...]:
    """Attention implementations that a family's code has, the preferred first."""
    its = _file()
    return its.families.get(family, its.usual)


def implementation(family: str, kernel: object, asked: object = None) -> str | None:
    """Attention implementation that runs the priced kernel.

    Args:
        family: Hugging Face model type. [text]
        kernel: Kernel that was priced. [text]
        asked: Kernel of the job's stack block, or None. [text]

    Returns:
        Word of attn_implementation; None where the family cannot run that kernel.
        [text]
    """
    able = {attention_word(word): word for word in implementations(family)}
    if asked is not None:
        return able.get(_corrected(family, asked))
    fused = (word for name, word in able.items() if name != UNFUSED)
    return able.get(UNFUSED) if kernel == UNFUSED else next(fused, None)


def _corrected(family: str, asked: object) -> object:
    """Kernel that runs where a kernel is asked for, by transformers' own correction."""
    name = attention_word(asked)
    return _file().corrects.get(family, name) if name == FLASH else name


def with_attention(
    room: str, stack: Mapping[str, object], family: str, arch: str
) -> dict[str, object]:
    """Stack block of a job, with attention by the shared word, that the family has.

    Raises:
        BadInputError: The family's code lacks the attention that the block asks for.
    """
    named = {
        key: attention_word(value) if key in KEYS else value
        for key, value in stack.items()
    }
    if room not in ROOMS or stack.get("name") in OWN_KERNELS:
        return named
    known = tuple(map(attention_word, implementations(family)))
    key = next((key for key in KEYS if key in named), None)
    if key is None:
        runs = [name for name in known if name in attention_on(arch)]
        its_own = {} if BY_PYTORCH in known else {"attention": runs[0]}
        return {**named, **its_own}
    asked = _corrected(family, named[key])
    if asked not in known and asked in _words():
        raise BadInputError(
            f"{family} has no such attention in transformers",
            field="stack.attention",
            value=stack[key],
            allowed=", ".join(map(str, known)),
        )
    return {**named, key: asked}


KEYS = ("attention", "attention_kernel")
"""Keys of a stack block that name a kernel of attention. [text]"""


def asked_attention(word: object) -> dict[str, str]:
    """Stack block of a run, by the attention that its files name.

    Args:
        word: Word of a tool; None where the files name none. [-]

    Returns:
        The kernel by the shared word; empty for what PyTorch chooses, and for a word
        that is no kernel's. [text]
    """
    name = attention_words().get(str(word), BY_PYTORCH)
    return {} if name == BY_PYTORCH else {"attention": name}


def strange_attention(word: object) -> bool:
    """Tell a word that names no attention which some family has.

    Args:
        word: Word of a tool; None where the files name none. [-]

    Returns:
        True for a word whose kernel is not priced.
    """
    return word is not None and attention_word(word) not in _words()


def _words() -> frozenset[object]:
    """Kernels that transformers has for some family. [text]."""
    its = _file()
    every = {word for row in (its.usual, *its.families.values()) for word in row}
    return frozenset(map(attention_word, every))


def with_pairs(
    room: str, stack: Mapping[str, object], reference: str | None
) -> dict[str, object]:
    """Stack block of a job, with the loss of TRL's DPO where it trains on pairs.

    Args:
        room: The framework. [text]
        stack: The job's stack block. [-]
        reference: Frozen model of preference training, or None. [text]

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
        known: True where FlashAttention-2 runs on the GPU. [-]

    Returns:
        The block; FlashAttention-2 is added where texts are packed and no attention
        is named. [-]

    References:
        transformers modeling_flash_attention_utils.py: texts of one row are told apart
        by their positions.
    """
    packed = states_rows(training) and training.rows == "packed"
    named = {*KEYS} & stack.keys()
    if named or not (packed and known) or room != "accelerate":
        return dict(stack)
    if stack.get("name") in OWN_KERNELS:
        return dict(stack)
    return {"attention": FLASH, **stack}


def attention(asked: Asked, room: str) -> str | None:
    """Word of attn_implementation that runs the priced attention.

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
    """Priced attention that the model's code lacks."""
    if attention(asked, room) is None:
        names = map(attention_word, implementations(asked.model.family))
        allowed = ", ".join(map(str, names))
        priced = asked.words.get("attention", asked.stack.get("attention_kernel"))
        yield Lack("no such attention", "spec.stack.attention", priced, allowed)


def sharing_lacks(asked: Asked, most: int) -> Iterator[Lack]:
    """ZeRO stages that cannot hold weights which several layers share.

    Args:
        asked: The job. [-]
        most: Highest ZeRO stage that holds such weights once. [1]

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
