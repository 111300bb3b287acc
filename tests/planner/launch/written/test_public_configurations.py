"""Configurations of frameworks' own repositories are understood, and priced."""

import pytest
from typer.testing import CliRunner

from benchmarks.imports.cases import FOLDER, cases, reading_of
from benchmarks.imports.page import PAGE, page
from planner.cli.app import app


@pytest.mark.parametrize("name", cases())
def test_what_the_files_say_is_read(name: str) -> None:
    case = cases()[name]
    found = reading_of(name, case)
    assert case.layout.items() <= found.layout.items()
    assert case.training.items() <= found.training.items()
    left = [its.name for its in found.unknown if not its.ranks]
    assert left == list(case.unknown)


@pytest.mark.parametrize("name", cases())
def test_the_files_are_recognised(name: str, tmp_path: object) -> None:
    case = cases()[name]
    files = [str(f) for f in (FOLDER / name).iterdir() if f.name != "case.yaml"]
    told = [
        f"--{key}={value}" for key, value in case.told.model_dump().items() if value
    ]
    words = ["import", *files, *told, f"--out={tmp_path}/job.yaml"]
    words += [f"--set={assignment}" for assignment in case.set]
    words += [f"--ignore={name}" for name in case.unknown]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output


def test_the_page_is_what_the_command_writes() -> None:
    assert PAGE.read_text() == page()
