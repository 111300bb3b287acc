"""Parameters of which the first line has some, and the gate all."""

from collections.abc import Iterable
from typing import Any

import pytest


def some(values: Iterable[Any], each: int) -> list[Any]:
    """Parameters of a test; those that are not one in so many are slow.

    Args:
        values: One value each, or a tuple of several. [-]
        each: One in so many is in the first line, from the first on. [1]

    Returns:
        What `pytest.mark.parametrize` takes.
    """
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=[pytest.mark.slow] * (at % each > 0),
        )
        for at, value in enumerate(values)
    ]
