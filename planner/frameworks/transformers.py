"""Attention of transformers' models: which a family has, and which a price means."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from hardware.yaml_text import parse_yaml
from planner.errors import BadInputError
from planner.models.asked import Asked
from planner.specs.lacks import Lack

ROOMS = ("accelerate", "deepspeed")
"""Frameworks that train transformers' own models. [text]"""
OWN_KERNELS = ("unsloth",)
"""Stacks of those rooms that bring attention of their own. [text]"""
WORDS = ("sdpa", "flash_attention_2", "eager")
"""Implementations that options.yaml of those rooms prices. [text]"""
UNFUSED = "unfused"
"""Kernel that eager is priced as; the others run fused ones. [text]"""


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    usual: tuple[str, ...]
    families: dict[str, tuple[str, ...]]
    buffers: frozenset[str]


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


def implementations(family: str) -> tuple[str, ...]:
    """Attention that a family's code has, the one to choose first.

    Args:
        family: Hugging Face model type. [text]

    Returns:
        Words of attn_implementation. [text]
    """
    its = _file()
    return its.families.get(family, its.usual)


def implementation(family: str, kernel: object, asked: object = None) -> str | None:
    """Attention that runs what was priced.

    Args:
        family: Hugging Face model type. [text]
        kernel: What was priced. [text]
        asked: Word of the job's stack block, or None. [text]

    Returns:
        Word of attn_implementation; None where the family has none for it. [text]
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
    """The stack block of a job with attention that the family's code has.

    Args:
        room: The framework. [text]
        stack: The job's stack block. [-]
        family: Hugging Face model type. [text]

    Returns:
        The block, with attention where the room's default is none of the family's.

    Raises:
        BadInputError: The family's code does not have what the block asks for.
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


def attention(asked: Asked, room: str) -> str | None:
    """Word of attn_implementation that runs what was priced.

    Args:
        asked: The job. [-]
        room: The target's framework. [text]

    Returns:
        The word, None where the model's code has none for it; of a plan for another
        framework the model's own default. [text]
    """
    family = asked.model.family
    if asked.framework != room:
        return implementations(family)[0]
    kernel, stated = asked.stack.get("attention_kernel"), asked.words.get("attention")
    return implementation(family, kernel, stated)


def attention_lacks(asked: Asked, room: str) -> Iterator[Lack]:
    """Attention that was priced, where the model's code has none for it.

    Args:
        asked: The job. [-]
        room: The target's framework. [text]

    Yields:
        One record, or none.
    """
    if attention(asked, room) is None:
        allowed = ", ".join(implementations(asked.model.family))
        priced = asked.stack.get("attention_kernel")
        yield Lack("no such attention", "spec.stack.attention", priced, allowed)
