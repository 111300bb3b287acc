"""Numbers of a user's file: true and false are none, as they are in Python."""

from typing import Annotated, Any

import pydantic
from pydantic import BeforeValidator, Strict
from pydantic_core import PydanticKnownError


def _no_switch(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticKnownError("float_type")
    return value


NO_SWITCH = BeforeValidator(_no_switch)
"""Refuses true and false, and takes 1e12, which is text in YAML 1.1."""
PositiveInt = Annotated[pydantic.PositiveInt, NO_SWITCH]
NonNegativeInt = Annotated[pydantic.NonNegativeInt, NO_SWITCH]
PositiveFloat = Annotated[pydantic.PositiveFloat, Strict()]
NonNegativeFloat = Annotated[pydantic.NonNegativeFloat, Strict()]
Float = Annotated[float, Strict()]
