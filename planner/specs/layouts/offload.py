"""Categories that may lie in host memory, and their names."""

from collections.abc import Iterable
from itertools import combinations

from planner.errors import did_you_mean

CATEGORIES = ("optimizer", "parameters", "gradients", "activations")
"""Categories that can be offloaded: the fields of a layout's offload block."""
NOTHING = "none"
"""The word for keeping everything on the GPU."""
LEAST_ZERO = {"parameters": 3, "gradients": 2}
"""ZeRO stage from which a category is sharded; before, it stays on the GPU. [1]

Source: Rajbhandari et al. 2020, arXiv 1910.02054; DeepSpeed's configuration page,
``offload_param`` is for stage 3 only.
"""

Parts = frozenset[str]
"""Categories that one setting offloads, empty for none."""


def parts_of(choice: str) -> Parts:
    """The categories that a word such as `optimizer+parameters` names.

    Raises:
        ValueError: A category does not exist, or is named twice.
    """
    names = [name.strip() for name in choice.split("+")]
    if names == [NOTHING]:
        return frozenset()
    for name in names:
        if name not in CATEGORIES:
            near = did_you_mean(name, [NOTHING, *CATEGORIES])
            raise ValueError(f"nothing called {name!r} can be offloaded; {near}")
    if len(set(names)) < len(names):
        raise ValueError(f"{choice!r} names a category twice")
    return frozenset(names)


def word_for(parts: Iterable[str]) -> str:
    """The word for a set of categories, in their fixed order."""
    held = set(parts)
    return "+".join(name for name in CATEGORIES if name in held) or NOTHING


def unions(groups: Iterable[str]) -> tuple[Parts, ...]:
    """Every set that a framework can offload: unions of what moves together."""
    known = sorted(map(parts_of, groups), key=_place)
    found = {
        frozenset[str]().union(*chosen): None
        for count in range(len(known) + 1)
        for chosen in combinations(known, count)
    }
    return tuple(found)


def _place(parts: Parts) -> list[int]:
    return sorted(CATEGORIES.index(name) for name in parts)


def offload_text(offload: object) -> str:
    """Name what lies in host memory, with shares.

    Returns:
        For example `offload optimizer 1.0 + activations 0.5`; empty for none. [text]
    """
    shares = {name: float(getattr(offload, name)) for name in CATEGORIES}
    parts = [f"{name} {round(share, 3)}" for name, share in shares.items() if share]
    return "offload " + " + ".join(parts) if parts else ""
