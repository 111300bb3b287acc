"""Lines of the guide are answered within ten seconds, a plan on one screen."""

import resource
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from shown_commands import ROOT, blocks

PAGE = ROOT / "docs" / "guides" / "one-line.md"
LINES = [
    command
    for block in blocks(PAGE)
    if block.runs and not block.exit_code
    for command, _ in block.commands
    if "--model" in command
]
MOST = 10.0
"""Processor time of an answer, which no busy machine changes. [s]"""
HIGH, WIDE = 40, 100
"""Lines and columns of the first screen of a plan. [1]"""


def test_the_guide_has_fifteen_lines() -> None:
    assert len(LINES) >= 15


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_a_line_is_answered_in_ten_seconds(line: str, tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = shlex.split(line)[1:]
    command = [sys.executable, "-m", "planner", *words]
    done = subprocess.run(
        command, cwd=tmp_path, check=True, capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert used < MOST
    screen = done.stdout.splitlines()
    assert max(map(len, screen)) <= WIDE
    assert len(screen) <= HIGH or words[0] in {"memory", "explain"}
