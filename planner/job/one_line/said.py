"""Counts and names of one line, as people write them."""

import re
from collections.abc import Sequence
from math import inf
from typing import cast, get_args

from planner.errors import BadInputError, did_you_mean
from planner.frameworks import FRAMEWORKS
from planner.specs.training import Method

COMPUTE_OPTIMAL = "compute-optimal"
"""Tokens by the rule of thumb. [text]"""
_TOKENS = re.compile(
    r"(\d+(?:\.\d+)?(?:e\+?\d+)?)\s*([kmbt]|thousand|million|billion|trillion)?"
    r"(?:\s*tokens)?",
    re.IGNORECASE,
)
_SCALE = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12, "thousand": 1e3}
_SCALE |= {"million": 1e6, "billion": 1e9, "trillion": 1e12}
_LENGTH = re.compile(r"(\d+)\s*([km]?)", re.IGNORECASE)
_BINARY = {"": 1, "k": 2**10, "m": 2**20}
_LONGEST = 15
"""Digits of a count; more are no job. [1]"""


def read_tokens(text: str) -> float | str:
    """Tokens of a run as people write them.

    Args:
        text: A number, maybe with k, M, B or T; or `compute-optimal`. [text]

    Returns:
        Tokens, or `compute-optimal`. [token]
    """
    if text.strip().lower() == COMPUTE_OPTIMAL:
        return COMPUTE_OPTIMAL
    return token_count(text, "--tokens", f", or {COMPUTE_OPTIMAL}")


def token_count(text: str, option: str, more: str = "") -> float:
    """A number of tokens as people write it.

    Args:
        text: A number, maybe with k, M, B, T or the words for them. [text]
        option: Option of the number, for messages. [text]
        more: What else the option takes, in words. [text]

    Returns:
        Tokens. [token]

    Raises:
        BadInputError: The text is no number above zero.
    """
    match = _TOKENS.fullmatch(_digits(text))
    scale = _SCALE.get((match[2] or "").lower(), 1.0) if match else 0.0
    count = float(match[1]) * scale if match else 0.0
    if not 0 < count < inf:
        raise BadInputError(
            "is no number of tokens",
            field=option,
            value=text,
            allowed=f"a number as 15T, 300B or 2e9{more}",
        )
    return count


def read_length(given: int | str) -> int:
    """Tokens of a sequence as people write them: 8k is 8,192.

    Returns:
        Tokens of a sequence. [token]

    Raises:
        BadInputError: It is no whole number above zero.
    """
    match = _LENGTH.fullmatch(_digits(str(given)))
    if match and len(match[1]) <= _LONGEST and int(match[1]):
        return int(match[1]) * _BINARY[match[2].lower()]
    raise BadInputError(
        "is no number of tokens of a sequence",
        field="--seq-len",
        value=given,
        allowed="a whole number above 0, as 8192 or 8k",
    )


def read_batch(given: int | str) -> int:
    """Sequences of a step.

    Returns:
        Sequences of a step. [sequence]

    Raises:
        BadInputError: It is no whole number above zero.
    """
    plain = _digits(str(given))
    if plain.isascii() and plain.isdigit() and len(plain) <= _LONGEST and int(plain):
        return int(plain)
    raise BadInputError(
        "is no number of sequences",
        field="--global-batch",
        value=given,
        allowed="a whole number above 0; tokens of a step: "
        "--set training.global_batch_tokens=4194304",
    )


def read_method(given: str) -> Method:
    """A method of training in any case."""
    return cast("Method", _one_of("--method", given, get_args(Method)))


def read_framework(given: str) -> str:
    """A framework in any case."""
    known = [*(each.name for each in FRAMEWORKS), "any"]
    return _one_of("--framework", given, known)


def _one_of(option: str, given: str, known: Sequence[str]) -> str:
    plain = given.strip().lower()
    if plain in known:
        return plain
    raise BadInputError(
        f"there is no such {option[2:]}; {did_you_mean(plain, known)}",
        field=option,
        value=given,
        allowed=", ".join(known),
    )


def _digits(text: str) -> str:
    """A text whose digits are not grouped."""
    return re.sub(r"(?<=\d)[,_](?=\d)", "", text.strip())
