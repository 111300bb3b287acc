"""Kernels of attention by one word each, whichever tool's word is given.

Data of `calibration/attention.yaml`.
"""

from collections.abc import Collection, Mapping
from functools import cache

from pydantic import BaseModel, ConfigDict, RootModel

from planner.hardware.reading.files import read
from planner.hardware.reading.shipped import shipped

UNFUSED = "unfused"
"""Attention by explicit scores: two products around a fused softmax. [text]"""
BY_PYTORCH = "sdpa"
"""Kernel that PyTorch chooses by GPU. [text]"""


class _Kernel(BaseModel):
    """Other words for a kernel, its architectures, and kernels like it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    also: tuple[str, ...]
    archs: tuple[str, ...] | None = None
    like: tuple[str, ...] = ()
    source: str


class _File(RootModel[Mapping[str, _Kernel]]):
    """Kernels by name."""


@cache
def _kernels() -> Mapping[str, _Kernel]:
    return read(shipped("hardware") / "calibration" / "attention.yaml", _File).root


@cache
def attention_words() -> Mapping[str, str]:
    """Kernel of attention by every word that some tool has for it. [text]."""
    known = _kernels()
    also = {word: name for name, kernel in known.items() for word in kernel.also}
    return {**also, **{name: name for name in known}}


def attention_word(word: object) -> object:
    """Name a kernel of attention by the word that all frameworks share."""
    return attention_words().get(word, word) if isinstance(word, str) else word


def attention_on(arch: str) -> tuple[str, ...]:
    """Kernels of attention that run on GPUs of an architecture."""
    known = _kernels().items()
    return tuple(
        name for name, kernel in known if kernel.archs is None or arch in kernel.archs
    )


def stand_in(kernel: str, measured: Collection[str]) -> str | None:
    """Measured kernel whose rates a kernel is priced by.

    Returns:
        The kernel itself where it was measured, else the nearest; None without one.
        [text]
    """
    known = _kernels().get(kernel)
    wanted = (kernel, *(known.like if known else ()))
    return next((name for name in wanted if name in measured), None)
