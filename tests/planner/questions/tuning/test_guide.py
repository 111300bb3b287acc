"""The guide docs/guides/tune.md shows what the second form prints of made-up logs."""

from pathlib import Path

import pytest
from fake_runs import log_of, true_step
from rewritten_blocks import rewrite
from shown_commands import ROOT, blocks, shows
from typer.testing import CliRunner

from planner.cli import app
from planner.questions.tuning.readings import LOG

MARK = "run by tests/planner/questions/tuning/test_guide.py"
MADE = ("run-01", "run-03")
"""Runs that were made before the command is shown. [text]"""


@pytest.mark.slow
def test_the_guide_shows_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, rewriting: bool
) -> None:
    page = ROOT / "docs" / "guides" / "tune.md"
    (block,) = (each for each in blocks(page) if each.mark == MARK)
    monkeypatch.chdir(tmp_path)
    begun = CliRunner().invoke(app, ["tune", "llama-3-8b-8-a100", "--out", "runs"])
    assert begun.exit_code == 0, begun.output
    for name in MADE:
        run = Path("runs") / name
        (run / LOG).write_text(log_of(true_step(run)))
    ((command, shown),) = block.commands
    done = CliRunner().invoke(app, command.split()[1:])
    assert done.exit_code == 0, done.output
    assert rewriting or shows(shown, done.output), done.output
    if rewriting:
        rewrite(block, [done.output])
