"""Limits of a search as a user states them."""

from planner.errors import BadInputError

MEMORY = "4 GiB"
"""Memory limit of a search where the user gives none. [text]"""
LEAST_MEMORY = "512 MiB"
"""Least memory limit of a search. [text]"""


def memory_bytes(text: str) -> float:
    """Read a memory limit.

    Args:
        text: Size, as `4 GiB`. [text]

    Returns:
        Memory. [B]

    Raises:
        BadInputError: The text is no size, or the size is too small to work in.
    """
    # Units bring pydantic, which the command line starts without.
    from planner.hardware.reading.units import parse_quantity  # noqa: PLC0415

    try:
        given = parse_quantity(text, "B")
    except ValueError as error:
        raise BadInputError(str(error), field="--memory-limit") from error
    if given < parse_quantity(LEAST_MEMORY, "B"):
        raise BadInputError(
            "is too little to search in",
            field="--memory-limit",
            value=text,
            allowed=f"{LEAST_MEMORY} or more",
        )
    return given
