"""Linear layers that carry adapters, where an expression over modules names them."""

import re
from typing import get_args

from planner.errors import BadInputError
from planner.specs.training import Target

WORDS = ("all-linear", "attention", "all")
"""Words for sets of layers, which are no expressions. [text]"""
BLOCKS = (
    "model.layers.{}.",
    "model.language_model.layers.{}.",
    "language_model.model.layers.{}.",
    "base_model.model.model.layers.{}.",
)
"""Names of a block in the models of transformers, with its number. [text]"""
INSIDE = ("self_attn.", "mlp.", "attention.", "attn.", "block_sparse_moe.", "")
"""Names of the module of a block that holds linear layers. [text]"""
TRIED = range(128)
"""Numbers of blocks that an expression has to find alike. [1]"""


def targets_of(given: object, file: str) -> object:
    """Linear layers by name.

    Args:
        given: A word for a set, a list of names, or an expression that PEFT matches
            whole against the name of every module. [-]
        file: File, for messages. [text]

    Raises:
        BadInputError: It is no expression, or finds nothing, or not in every block.

    References:
        peft 0.21.2 tuners/tuners_utils.py, check_target_module_exists: re.fullmatch.
    """
    if not isinstance(given, str) or given in WORDS:
        return given
    try:
        wanted = re.compile(given)
    except re.error as error:
        raise _refused(f"is no expression: {error}", given, file) from error
    found = [_found(wanted, number) for number in TRIED]
    if not found[0]:
        raise _refused("finds no linear layer of a text model", given, file)
    if any(other != found[0] for other in found):
        raise _refused("finds layers of some blocks alone", given, file)
    return found[0]


def _found(wanted: re.Pattern[str], number: int) -> list[str]:
    """Linear layers of one block that an expression finds."""
    return [
        name
        for name in get_args(Target)
        if any(
            wanted.fullmatch(f"{block.format(number)}{part}{name}")
            for block in BLOCKS
            for part in INSIDE
        )
    ]


def _refused(why: str, given: str, file: str) -> BadInputError:
    return BadInputError(
        why,
        file=file,
        field="target_modules",
        value=given,
        allowed="all-linear, a list of names, or an expression over names of modules",
    )
