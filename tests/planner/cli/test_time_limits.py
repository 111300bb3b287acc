"""Every command takes a time limit, and the clock that ends a late one is set by it."""

from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner

from planner.cli import stopping
from planner.cli.app import COMMANDS, app
from planner.errors import BadInputError

LIMIT = 17.5
JOB = {
    "model": "llama-3.2-1b",
    "cluster": "dgx-a100-1-node",
    "training": {"seq_len": 1024, "global_batch": 8},
    "framework": "megatron",
    "layout": {"dp": 8, "micro_batch": 1},
}
WORDS = {
    "calibrate": ["rows.yaml", "--out", "c.yaml"],
    "catalog": [],
    "diff": ["job.yaml", "job.yaml"],
    "emit": ["job.yaml", "--target", "slurm", "--out", "out"],
    "explain": ["job.yaml"],
    "import": ["run.sh", "--out", "read.yaml"],
    "memory": ["job.yaml"],
    "plan": ["job.yaml"],
    "predict": ["job.yaml"],
    "profile": ["--out", "c.yaml"],
    "size": ["--days", "1", "--on", "8xh100"],
    "tune": ["job.yaml", "--out", "out"],
}
OF_SEARCHES = {"compare", "serve", "sweep", "validate"}
"""Commands whose limit is that of each search; their tests are beside the searches."""


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_takes_a_time_limit(name: str) -> None:
    group = typer.main.get_command(app)
    command = group.commands[name]  # type: ignore[attr-defined]
    options = [option for each in command.params for option in each.opts]
    assert "--time-limit" in options
    assert (name in WORDS) != (name in OF_SEARCHES)


@pytest.mark.parametrize("name", sorted(WORDS))
def test_the_clock_is_set_by_the_limit(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def limited(_: object, time_limit: float, *_more: object) -> None:
        seen.append(time_limit)
        raise BadInputError("the clock is set")

    monkeypatch.setattr(stopping.Run, "limited", limited)
    monkeypatch.chdir(tmp_path)
    Path("job.yaml").write_text(yaml.safe_dump(JOB))
    words = [name, *WORDS[name], "--time-limit", str(LIMIT)]
    done = CliRunner().invoke(app, words)
    assert "the clock is set" in done.output
    assert seen == [LIMIT]


@pytest.mark.parametrize("limit", ["inf", "1e308", "1e12"])
def test_a_limit_beyond_the_clock_is_none(limit: str) -> None:
    done = CliRunner().invoke(app, ["catalog", "--time-limit", limit])
    assert done.exit_code == 0, done.output


def test_what_a_limit_left_open_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fewest GPUs that were not found in time are no finding that none hold it."""
    monkeypatch.setattr(stopping, "LATE", 600.0)
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump({k: v for k, v in JOB.items() if k != "layout"}))
    done = CliRunner().invoke(app, ["memory", str(file), "--time-limit", "1e-3"])
    assert done.exit_code == 0, done.output
    assert "fewest GPUs  not found before the time limit" in done.output
    assert "not in time" in done.output
