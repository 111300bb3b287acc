"""A plan that was edited anywhere is emitted or refused, never a traceback."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_hostile_files import FOLDERS, broken

from planner.errors import PlannerError
from planner.launch import read_plan
from planner.launch.emit import emit_own


@settings(max_examples=100)
@given(folder=st.sampled_from(FOLDERS), seed=st.integers(0, 2**32))
def test_an_edited_plan_is_written_or_refused(
    tmp_path_factory: pytest.TempPathFactory, folder: Path, seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311
    text = (folder / "plan.json").read_text()
    for _ in range(rng.choice((1, 1, 2))):
        text = broken(text, rng) or " "
    file = tmp_path_factory.getbasetemp() / "plan.json"
    file.write_text(text)
    try:
        assert len(emit_own(read_plan(file))) > 1
    except PlannerError as error:
        assert error.exit_code != PlannerError.exit_code, error  # noqa: PT017
