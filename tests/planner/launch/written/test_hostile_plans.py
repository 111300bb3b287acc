"""A plan that was edited anywhere is emitted or refused, never a traceback."""

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from examples import examples
from hostile import TEXT, answered, as_json, check, mutated
from hypothesis import given, settings
from hypothesis import strategies as st
from test_hostile_files import FOLDERS, broken

from planner.errors import PlannerError
from planner.launch import read_plan
from planner.launch.emit import emit_own

PLANS = sorted(
    {f.parent.name: f for f in FOLDERS if (f / "plan.json").exists()}.items()
)


def check_plan(target: str, plan: Any) -> None:
    """Refused in one line, or written with nothing of it live."""
    files = {"plan.json": as_json(plan)}
    arguments = ["emit", "plan.json", "--target", target, "--out", "o"]
    answer = answered(arguments, files)
    check(answer, files, "spec", "layout")
    assert answer.code == 0 or not answer.left
    for name, content in answer.left.items():
        if name.endswith((".sh", ".sbatch")):
            parsed = subprocess.run(["bash", "-n"], input=content, check=False)
            assert parsed.returncode == 0, name
            live = [line for line in content.splitlines() if b"owned" in line]
            assert not [line for line in live if not line.startswith(b"# ")]
        if name.endswith(".py"):
            compile(content, name, "exec")
        if name.endswith(".yaml"):
            list(yaml.safe_load_all(content))


@settings(max_examples=examples(25))
@given(st.sampled_from(PLANS), st.data())
def test_a_plan_with_something_wrong_is_written_or_refused(
    place: tuple[str, Path], draw: st.DataObject
) -> None:
    target, folder = place
    plan = json.loads((folder / "plan.json").read_text())
    check_plan(target, draw.draw(mutated(plan)))


@pytest.mark.slow
@settings(max_examples=150)
@given(st.sampled_from(PLANS), st.data())
def test_many_plans_with_something_wrong_are_written_or_refused(
    place: tuple[str, Path], draw: st.DataObject
) -> None:
    target, folder = place
    plan = json.loads((folder / "plan.json").read_text())
    part = draw.draw(st.sampled_from(("spec", "layout", "estimate", "versions")))
    check_plan(target, {**plan, part: draw.draw(mutated(plan[part]))})


@pytest.mark.parametrize(
    "plans", [5, "x", {"a": 1}, [], [5], [None], [{}], [[]], None], ids=str
)
def test_a_result_without_a_plan_is_refused(plans: object) -> None:
    files = {"plan.json": as_json({"schema": "planner/result@1", "plans": plans})}
    arguments = ["emit", "plan.json", "--target", "megatron", "--out", "o"]
    answer = answered(arguments, files)
    check(answer, files)
    assert answer.code == 2


@pytest.mark.parametrize("text", TEXT, ids=lambda text: repr(text[:12]))
def test_a_plan_that_is_no_plan_is_refused(text: str) -> None:
    files = {"plan.json": text.encode()}
    arguments = ["emit", "plan.json", "--target", "megatron", "--out", "o"]
    answer = answered(arguments, files)
    check(answer, files)
    assert answer.code == 2


@settings(max_examples=examples(100))
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
