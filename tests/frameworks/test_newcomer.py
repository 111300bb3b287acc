"""A page's path from a job to a model that trained here, line by line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ports import free_port

pytestmark = pytest.mark.frameworks
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/guides/launch.md"
MARK = "<!-- run by tests/frameworks/test_newcomer.py -->"


def lines() -> str:
    """The commands below the mark."""
    return PAGE.read_text().split(f"{MARK}\n```bash\n")[1].split("```")[0]


def binaries(folder: Path) -> Path:
    """`planner` and `python` of this very tree, as the README's first command has."""
    here = folder / "bin"
    here.mkdir()
    for name, words in (("planner", "-m planner "), ("python", "")):
        script = f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} {words}"$@"\n'
        (here / name).write_text(script)
        (here / name).chmod(0o755)
    return here


def test_the_path_of_the_page_trains_a_model(tmp_path: Path) -> None:
    for name in ("configs", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    path = f"{binaries(tmp_path)}{os.pathsep}{os.environ['PATH']}"
    folder = os.environ.get("PLANNER_ENVIRONMENTS", str(ROOT / ".environments"))
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", lines()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={
            **clean,
            "PATH": path,
            "PLANNER_ENVIRONMENTS": folder,
            "MASTER_PORT": str(free_port()),
        },
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    log = (tmp_path / "tiny-run" / "check.log").read_text()
    losses = [float(part.split("'")[0]) for part in log.split("{'loss': '")[1:]]
    assert len(losses) == 20
    assert losses[0] > 8.0
    assert losses[-1] < 5.0
    assert log.count("LAYOUT {") == 2
    (row,) = yaml.safe_load((tmp_path / "tiny-run" / "check.row.yaml").read_text())
    assert row["measured"]["step_time_s"] > 0
    assert "plan.json" in {p.name for p in (tmp_path / "tiny").iterdir()}
