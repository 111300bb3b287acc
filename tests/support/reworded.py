"""Records whose sentence is `x`, so that who parses sentences finds nothing."""

import inspect
from typing import Any

import pytest

WORDS = "x"
SENTENCES = ("sentence", "problem", "change", "effect")
"""Parameters of records that hold words for people. [text]"""


def reword(monkeypatch: pytest.MonkeyPatch, record: type) -> None:
    """Replace the sentence of every record of a type that is made from now on."""
    true = record.__init__
    takes = inspect.signature(true)

    def init(self: Any, *values: Any, **named: Any) -> None:
        given = takes.bind(self, *values, **named)
        for name in set(SENTENCES) & given.arguments.keys():
            given.arguments[name] = WORDS
        true(*given.args, **given.kwargs)

    monkeypatch.setattr(record, "__init__", init)
