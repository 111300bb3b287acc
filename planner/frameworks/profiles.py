"""Reads the profile of a framework's room."""

from importlib.resources import files

from hardware.files import parse_facts
from planner.specs.framework import Profile


def read_profile(room: str) -> Profile:
    """Read ``planner/frameworks/<room>/profile.yaml``.

    Args:
        room: Name of the framework's folder. [text]

    Returns:
        The default software stack of that framework.
    """
    text = (files("planner.frameworks") / room / "profile.yaml").read_text()
    return Profile.model_validate(parse_facts(text))
