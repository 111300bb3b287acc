"""Commands are imported when they are asked for, and are all there all the same."""

import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from planner.cli import app
from planner.cli.app import COMMANDS

GROUP = typer.main.get_command(app)


def test_the_command_line_starts_without_any_command() -> None:
    code = (
        "import sys, planner.cli; "
        "print([m for m in ('numpy', 'ortools', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_the_function_of_its_file(name: str) -> None:
    assert name in GROUP.commands
    assert GROUP.commands[name].help == COMMANDS[name]


def test_an_unknown_command_is_refused_with_the_nearest() -> None:
    done = CliRunner().invoke(app, ["predit"])
    assert done.exit_code == 2
    assert "predict" in done.stderr
    assert GROUP.commands.get("predit") is None
    assert len(GROUP.commands) == len(COMMANDS) == len(list(GROUP.commands))
