"""Layouts that a search did not look at, by rule."""

from pydantic import BaseModel, ConfigDict


class LeftOut(BaseModel):
    """One axis of the full space that the default space has less of."""

    model_config = ConfigDict(frozen=True)

    axis: str
    """Name of the axis. [text]"""
    names: tuple[str, ...]
    """Values that were left out, or the rule that they follow where they are numbers.
    [text]"""
    why: str
    """Reason. [text]"""
