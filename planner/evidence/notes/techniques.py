"""Techniques that a table of a source adds one after the other, row by row."""

import re
from dataclasses import replace

from planner.evidence.notes.rules import rules
from planner.evidence.rows.rows import Row
from planner.specs.frameworks.framework import Framework

_BLOCKS = (
    "compile",
    "memory_traffic",
    "forward_operators",
    "backward_operators",
    "host_forward",
    "host_backward",
    "norm_input_bytes",
    "activation_bytes",
)
"""Fields of a profile that say how a block was compiled."""


def with_techniques(row: Row, room: Framework, stacked: Framework) -> Framework:
    """A stack with what a row of a cumulative table says of compiler and loss.

    Such a row has its own technique, which ends its name, and all before it in
    the table: blocks are compiled from one row on, logits are chunked from another.

    Args:
        row: The measured row. [-]
        room: The framework's own default, compiled and with whole logits. [-]
        stacked: The row's stack, eager and with chunked logits. [-]

    Returns:
        The stack, unchanged for rows of no such table. [-]
    """
    rule = rules().techniques
    ending = next((name for name in rule.order if row.id.endswith(name)), None)
    if ending is None or not re.search(rule.match, row.notes.lower()):
        return stacked
    used = rule.order[: rule.order.index(ending) + 1]
    profile, recipe = stacked.profile, stacked.recipe
    if rule.compiled in used:
        blocks = {name: getattr(room.profile, name) for name in _BLOCKS}
        profile = profile.model_copy(update=blocks)
    if rule.chunked not in used:
        recipe = replace(recipe, logits_bytes=room.recipe.logits_bytes)
    return replace(stacked, profile=profile, recipe=recipe)
