"""Every command ends in time: by `--time-limit`, or because nothing in it is long."""

import pytest
import typer

from planner.cli.app import COMMANDS, app

BOUNDED = {
    "catalog": "prints what is known",
    "calibrate": "fits a few constants to rows, in a fixed number of evaluations",
    "profile": "times a fixed list of kernels",
}
"""Commands without a time limit, each with what bounds it. [text]"""


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_takes_a_time_limit_or_is_bounded(name: str) -> None:
    group = typer.main.get_command(app)
    command = group.commands[name]  # type: ignore[attr-defined]
    options = [option for each in command.params for option in each.opts]
    assert ("--time-limit" in options) != (name in BOUNDED)
