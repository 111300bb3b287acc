"""A plan that another target cannot express is refused by the fields to change."""

import re
from pathlib import Path

import pytest
from golden_folders import ROOT
from reworded import reword

from planner.launch.gaps import InexpressibleError
from planner.launch.read_plan import read_plan
from planner.questions.emit import priced
from planner.verify.breach import Breach

PLAN = ROOT / "megatron" / "llama-3.1-70b-32-h100" / "plan.json"
BEYOND = ("comm_dtype.gradients", "cp", "pp", "schedule", "sp", "zero_stage")
"""Fields of its layout that accelerate has not; cp lacks beside tp. [text]"""


def refused(plan: Path, target: str) -> tuple[int, set[str]]:
    """Exit code, and the fields that the refusal names."""
    with pytest.raises(InexpressibleError) as error:
        priced(read_plan(plan), target)
    fields = re.findall(r": ((?:layout|spec)[\w.]*) = ", str(error.value))
    return error.value.exit_code, set(fields)


def test_every_field_to_change_is_named() -> None:
    code, fields = refused(PLAN, "accelerate")
    assert code == 5
    assert fields == {f"layout.{name}" for name in BEYOND}


@pytest.mark.parametrize("target", ["accelerate", "deepspeed", "torchtitan"])
def test_fields_and_exit_code_do_not_hang_on_words(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = refused(PLAN, target)
    reword(monkeypatch, Breach)
    assert refused(PLAN, target) == before
