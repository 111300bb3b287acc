"""Settings of a trainer's file that go not together."""

from collections.abc import Iterable, Mapping
from typing import Any

from planner.errors import BadInputError
from planner.frameworks.accelerate.switches import NO


def on(given: Mapping[str, Any], name: str) -> bool:
    """Tell if a setting is given, and not off. [-]."""
    return str(given.get(name)).lower() not in NO


def refuse_together(
    given: Mapping[str, Any], pairs: Iterable[tuple[str, str]], file: str
) -> None:
    """Refuse two settings of which a run takes one."""
    for name, other in pairs:
        if on(given, name) and on(given, other):
            what = f"goes not with {other}"
            raise wrong(given, name, what, "one of the two", file)


def wrong(
    given: Mapping[str, Any], name: str, what: str, allowed: str, file: str
) -> BadInputError:
    """Complaint about a setting."""
    value = given.get(name)
    return BadInputError(what, file=file, field=name, value=value, allowed=allowed)


def refuse_auto(given: Mapping[str, Any], file: str) -> None:
    """Refuse a format that is left to the tool, which Trainer's arguments never are.

    Raises:
        BadInputError: bf16 or fp16 is `auto`.

    References:
        transformers 5.23.0 training_args.py; hf_argparser.py, string_to_bool. axolotl
        reads the word before, and takes bf16 where PyTorch computes in it.
    """
    for name in ("bf16", "fp16"):
        if given.get(name) == "auto":
            raise wrong(given, name, "is a switch", "true or false", file)
