"""GPUs by the names that people use."""

import re

from planner.hardware.catalog import gpu as gpu_of
from planner.hardware.reading.files import Catalog
from planner.hardware.reading.nearest import alike
from planner.hardware.specs import GB, GpuSpec
from planner.hardware.spelling.words import SpellingError, tokens, words


def refuse_by_name(text: str) -> None:
    """Refuse hardware that nothing here runs on or prices.

    Raises:
        SpellingError: The hardware is refused; says why and what is nearest.
    """
    plain = "-".join(tokens(text))
    for refusal in words().refused:
        if re.search(refusal.pattern, plain):
            raise SpellingError(
                f"{text!r} is {refusal.name} and cannot be planned: {refusal.why}; "
                f"nearest: {refusal.nearest}"
            )


def gpu_called(text: str, catalog: Catalog) -> GpuSpec:
    """The GPU that a text names.

    Its name in the catalog wins over a short name, and a short name over the words
    that only one GPU has.
    """
    asked, plain = tokens(text), text.strip().lower()
    if not asked:
        raise SpellingError("no GPU is named")
    every = [gpu_of(name, catalog) for name in catalog.names("gpus")]
    exact = [gpu for gpu in every if plain in (gpu.name, *gpu.called)]
    named = exact or [
        gpu for gpu in every if asked in map(tokens, (gpu.name, *gpu.called))
    ]
    matches = named or [gpu for gpu in every if _has(_own(gpu), asked)]
    if not matches and re.search(r"\ds$", plain):
        return gpu_called(plain[:-1], catalog)
    if len(matches) == 1:
        return matches[0]
    if matches:
        names = ", ".join(gpu.name for gpu in matches)
        raise SpellingError(f"{text} may be any of {names}")
    raise SpellingError(f"no GPU is called {text!r}; {_nearest(asked, every)}")


def _own(gpu: GpuSpec) -> tuple[str, ...]:
    """Words of a GPU's name, and the memory on its label in GB."""
    label = gpu.memory_label or gpu.memory_capacity
    return (*tokens(gpu.name), f"{label / GB:g}")


def _has(own: tuple[str, ...], asked: tuple[str, ...]) -> bool:
    """True where every word is a word of the name, or begins one as sxm does."""
    return all(
        any(word == part or (part.isalpha() and word.startswith(part)) for word in own)
        for part in asked
    )


def _nearest(asked: tuple[str, ...], every: list[GpuSpec]) -> str:
    """Names that are spelt like a name, or short names to choose from."""
    spelt = {"-".join(tokens(n)): n for gpu in every for n in (gpu.name, *gpu.called)}
    near = alike("-".join(asked), spelt)
    if near:
        return f"nearest: {', '.join(spelt[name] for name in near)}"
    return "known: h100, h200, b200, a100, mi300x, rtx-4090, ... (planner catalog gpus)"
