"""A plan file is checked as if it were new."""

import json
from pathlib import Path
from typing import Any

import pytest
from golden_folders import ROOT

from planner.errors import BadInputError
from planner.launch import read_plan

GOOD = ROOT / "megatron" / "llama-3.1-70b-32-h100" / "plan.json"


@pytest.fixture
def fields() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(GOOD.read_text())
    return loaded


def write(tmp_path: Path, fields: object) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(fields, indent=2))
    return path


def test_a_plan_is_read_with_its_job() -> None:
    found = read_plan(GOOD)
    assert found.brief.nodes == 4
    assert found.brief.gpus_per_node == 8
    assert found.brief.job == "llama-3-1-70b"
    assert found.brief.architecture.layers == 80


def test_a_result_stands_for_its_first_plan(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    first = {"rank": 1, "layout": fields["layout"], "estimate": fields["estimate"]}
    result = {"schema": "planner/result@1", "spec": fields["spec"], "plans": [first]}
    assert read_plan(write(tmp_path, result)).plan.layout == read_plan(GOOD).plan.layout


def test_a_result_without_plans_is_refused(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    result = {"schema": "planner/result@1", "spec": fields["spec"], "plans": []}
    with pytest.raises(BadInputError, match="no plan in it"):
        read_plan(write(tmp_path, result))


@pytest.mark.parametrize("schema", ["planner/plan@2", "planner/estimate@1", None])
def test_another_schema_is_refused_by_name(
    tmp_path: Path, fields: dict[str, Any], schema: str | None
) -> None:
    fields["schema"] = schema
    with pytest.raises(BadInputError, match="planner/plan@1 or planner/result@1"):
        read_plan(write(tmp_path, fields))


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("tp", 3, "tp 3 does not divide the 64 heads"),
        ("zero_stage", 3, "zero_stage"),
        ("micro_batch", 7, "not the batch"),
        ("dp_shard", 3, "dp_shard"),
        ("schedule", "zb-v", "schedule"),
    ],
)
def test_a_plan_edited_into_something_illegal_is_refused(
    tmp_path: Path, fields: dict[str, Any], field: str, value: object, words: str
) -> None:
    fields["layout"][field] = value
    with pytest.raises(BadInputError, match="not legal") as told:
        read_plan(write(tmp_path, fields))
    assert words in str(told.value)
    assert "plan.json" in str(told.value)


def test_an_unknown_field_is_named(tmp_path: Path, fields: dict[str, Any]) -> None:
    fields["layout"]["tensor"] = 4
    with pytest.raises(BadInputError, match="tensor"):
        read_plan(write(tmp_path, fields))


def test_what_is_no_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("{")
    with pytest.raises(BadInputError, match="is no JSON"):
        read_plan(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="cannot be read"):
        read_plan(tmp_path / "none.json")


def test_the_line_of_a_field_is_found() -> None:
    found = read_plan(GOOD)
    line = found.line_of("layout.cp")
    assert line is not None
    assert '"cp":' in GOOD.read_text().splitlines()[line - 1]
    assert found.line_of("layout.nothing") is None
