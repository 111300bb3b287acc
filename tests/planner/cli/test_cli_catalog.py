"""The catalog shows everything that is known, with units, marks and sources."""

import json

import pytest
from typer.testing import CliRunner

from planner.cli import app
from planner.report.catalog import KINDS, kind_names

ENTRIES = [(kind, name) for kind in KINDS for name in kind_names(kind)]


def shown(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["catalog", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_overview_names_everything() -> None:
    text = shown()
    assert [name for _, name in ENTRIES if name not in text] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_a_row_for_each_of_its_names(kind: str) -> None:
    rows = [line.split()[0] for line in shown(kind).splitlines() if line.strip()]
    assert [name for name in kind_names(kind) if name not in rows] == []


@pytest.mark.parametrize(("kind", "name"), ENTRIES)
def test_an_entry_shows_its_name_and_its_json_holds_it(kind: str, name: str) -> None:
    assert name in shown(kind, name)
    (entry,) = json.loads(shown(kind, name, "--json", "-"))[kind]
    assert entry["name"] == name


def test_numbers_are_in_natural_units_and_unverified_ones_are_marked() -> None:
    text = shown("gpus")
    assert "[GiB]" in text
    row = next(line for line in text.splitlines() if line.startswith("h100-sxm5"))
    assert row.split()[1:] == ["hopper", "79.647", "?", "3,350", "989", "1,979", "700"]


def test_one_gpu_shows_the_source_of_its_numbers() -> None:
    text = shown("gpus", "h100-sxm5-80gb")
    row = next(line for line in text.splitlines() if line.startswith("memory_capacity"))
    assert "79.647 GiB" in row
    assert "nvidia-smi" in row


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["gpu"], ["'gpu'", "did you mean gpus?", "frameworks"]),
        (["gpus", "h100-sxm5"], ["'h100-sxm5'", "h100-sxm5-80gb"]),
        (["models", "llama-3.1-40b"], ["did you mean llama-3.1-405b"]),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(
    arguments: list[str], fragments: list[str]
) -> None:
    done = CliRunner().invoke(app, ["catalog", *arguments])
    assert done.exit_code == 2
    assert [f for f in fragments if f not in done.stderr] == []
