"""Words of people for hardware, as `words.yaml` lists them."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from planner.hardware.reading.files import read
from planner.hardware.specs import FabricKind

_SIZE = re.compile(r"(?<=\d)[ -]*g(?:i?b)?\b")
_GLUED = re.compile(r"\brtx(?=\d)")
_GAP = re.compile(r"[\s_/-]+")


class SpellingError(ValueError):
    """A text names no hardware; the message says what is nearest."""


class UnknownNetworkError(SpellingError):
    """A text names no network; the message says what is nearest."""


class Refusal(BaseModel):
    """Hardware that is refused by its name.

    Attributes:
        pattern: Regular expression that its names match. [text]
        name: Words for it, with an article. [text]
        why: Reason. [text]
        nearest: GPU of the catalog that is nearest to it. [-]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    pattern: str
    name: str
    why: str
    nearest: str


class Words(BaseModel):
    """Content of `words.yaml`.

    Attributes:
        makers: Words that say nothing beside the name of a GPU. [text]
        fabrics: Word to the kind of fabric that it means. [text]
        providers: Words before the name of a provider's instance. [text]
        one_nic: Kinds of fabric of which a host has one port unless told. [-]
        refused: Hardware that is refused by its name. [-]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    makers: frozenset[str]
    fabrics: Mapping[str, FabricKind]
    providers: frozenset[str]
    one_nic: frozenset[FabricKind]
    refused: tuple[Refusal, ...]


@cache
def words() -> Words:
    """Words for GPUs and networks."""
    return read(files("planner.hardware.spelling") / "words.yaml", Words)


def tokens(text: str) -> tuple[str, ...]:
    """Words of a name in one spelling.

    `A100 SXM4 80 GB`, `a100-sxm4-80g` and `a100-sxm4-80` have the same tokens.
    """
    plain = _GLUED.sub("rtx-", _SIZE.sub("", text.lower().strip()))
    parts = _GAP.split(plain)
    return tuple(part for part in parts if part and part not in words().makers)
