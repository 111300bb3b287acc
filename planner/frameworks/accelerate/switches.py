"""Settings that are on or off, as YAML and command lines say so."""

from collections.abc import Mapping
from typing import Any

from planner.errors import BadInputError

YES = frozenset({"true", "1", "yes", "on", "t", "y"})
NO = frozenset({"false", "0", "no", "off", "f", "n", "none", ""})
"""Words of a switch, as YAML and transformers' command lines have them. [text]"""


def true(its: Mapping[str, Any], name: str, *, absent: object = None) -> bool:
    """Tell if a switch is on.

    Returns:
        True where the switch is on; False where it is off or left to others (`auto`).

    Raises:
        BadInputError: The value is neither yes nor no.
    """
    value = its.get(name)
    word = str(absent if value is None else value).lower()
    if word not in YES | NO | {"auto"}:
        raise BadInputError(
            "is a switch", field=name, value=value, allowed="true or false"
        )
    return word in YES
