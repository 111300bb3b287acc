"""What is emitted is known to the letter."""

import pytest
from golden_folders import FULL, cases, emitted, golden, kept, rewrite


@pytest.mark.parametrize(("target", "case"), cases())
def test_a_folder_is_written_to_the_letter(
    target: str, case: str, *, rewriting: bool
) -> None:
    if rewriting:
        rewrite(target, case)
    assert kept(target, case, emitted(target, case)) == golden(target, case)


def test_every_target_has_a_golden_folder() -> None:
    from planner.launch import target_names  # noqa: PLC0415  # beside its only use

    assert {target for target, _ in cases()} == set(target_names()) == set(FULL)
    assert {(target, case) for target in FULL for case in FULL[target]} <= set(cases())
