"""The kinds of context parallelism, and their names in a layout."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from planner.errors import did_you_mean

CpFamily = Literal["ring", "all-gather", "ulysses", "ulysses+ring", "gathered-ring"]
TOLD: dict[CpFamily, str] = {
    "ring": "keys and values go round, beside the attention to the chunks there",
    "all-gather": "keys and values are gathered before the attention",
    "ulysses": "heads are dealt out before the attention, and back after it",
    "ulysses+ring": "Ulysses among neighbours, and a ring that joins their groups: "
    "`ulysses4+ring` has groups of 4",
    "gathered-ring": "keys and values are gathered beside the attention to the own "
    "chunk; gradients go round",
}
"""Exchange around the attention, by kind. [text]"""
FAMILIES = tuple(TOLD)
"""Kinds that a framework has or not. [text]"""
MIXED: CpFamily = "ulysses+ring"
"""Ulysses among neighbours, and a ring that joins those groups. [text]

A layout states the ranks of an inner group: ``ulysses4+ring``.
"""
PLAIN = tuple(family for family in FAMILIES if family != MIXED)
"""Kinds that treat all context ranks alike. [text]"""
MOST_INNER = 256
"""Largest inner group: no model has more heads to share. [1]"""
CP_KINDS = (*PLAIN, *(f"ulysses{u}+ring" for u in range(2, MOST_INNER + 1)))
"""Every kind that a layout can have. [text]"""
_NAMED = re.compile(r"ulysses(\d+)\+ring")


def cp_family(kind: str) -> str:
    """The family of a kind: its name without the size of inner groups.

    Args:
        kind: A kind, such as ``ring`` or ``ulysses4+ring``. [text]

    Returns:
        One of ``FAMILIES``. [text]
    """
    return MIXED if _NAMED.fullmatch(kind) else kind


def mixed_kind(inner: int) -> str:
    """The kind whose inner groups of Ulysses have a number of ranks.

    Returns:
        A kind, such as ``ulysses4+ring``. [text]
    """
    return f"ulysses{inner}+ring"


def inner_degree(kind: str, cp: int) -> int:
    """Ranks among which Ulysses deals heads out: all, some, or one for none."""
    named = _NAMED.fullmatch(kind)
    if named:
        return int(named[1])
    return cp if kind == "ulysses" else 1


def _known(kind: str) -> str:
    if kind not in CP_KINDS:
        near = did_you_mean(kind, (*PLAIN, "ulysses2+ring"))
        raise ValueError(f"no such kind of context parallelism; {near}")
    return kind


CpKind = Annotated[
    str,
    AfterValidator(_known),
    Field(json_schema_extra={"pattern": f"^({'|'.join(PLAIN)}|ulysses[0-9]+\\+ring)$"}),
]
"""A kind of context parallelism, checked as it is read."""
