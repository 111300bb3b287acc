"""Reads the profile and the options of a framework's room."""

from importlib.resources import files

import yaml

from planner.specs.framework import Option
from planner.specs.profile import Profile


def read_profile(room: str) -> Profile:
    """Read ``planner/frameworks/<room>/profile.yaml``.

    Args:
        room: Name of the framework's folder. [text]

    Returns:
        The default software stack of that framework.
    """
    text = (files("planner.frameworks") / room / "profile.yaml").read_text()
    return Profile.model_validate(yaml.safe_load(text))


def read_options(room: str) -> dict[str, dict[str, Option]]:
    """Read ``planner/frameworks/<room>/options.yaml``.

    Args:
        room: Name of the framework's folder. [text]

    Returns:
        What every word of every setting changes. [-]
    """
    text = (files("planner.frameworks") / room / "options.yaml").read_text("utf-8")
    given: dict[str, dict[str, object]] = yaml.safe_load(text)
    return {
        name: {word: Option.model_validate(entry) for word, entry in words.items()}
        for name, words in given.items()
    }
