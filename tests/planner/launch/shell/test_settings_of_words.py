"""Words of a command line as settings."""

import pytest

from planner.launch.shell.settings import settings_of


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("--lr 0.5 --bf16", {"lr": 0.5, "bf16": True}),
        ("epochs=2 ~clip_grad_norm", {"epochs": 2, "~clip_grad_norm": True}),
        ("dataset.packed=True ~a b=1", {"dataset.packed": True, "~a": True, "b": 1}),
    ],
)
def test_a_setting_that_is_taken_away_has_a_name_of_its_own(
    words: str, found: dict[str, object]
) -> None:
    assert settings_of(words.split()) == found
