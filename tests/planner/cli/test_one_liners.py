"""Lines of the guide are answered at once, a plan on one screen."""

import resource
import shlex
import subprocess
import sys
import time
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
MOST = 24e6
"""Entries of a dictionary that are made in the time of an answer, at most: ten seconds
of a processor that makes 2.4 million in one, whatever processor the test meets. [1]"""
SAMPLE = 400_000
"""Entries whose making is timed before an answer and after it. [1]"""
HIGH, WIDE = 40, 100
"""Lines and columns of the first screen of a plan. [1]"""


def test_the_guide_has_fifteen_lines() -> None:
    assert len(LINES) >= 15


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_a_line_is_answered_at_once(line: str, tmp_path: Path) -> None:
    words = shlex.split(line)[1:]
    command = [sys.executable, "-m", "planner", *words]
    counted = [_entry_s()]
    before = _used_s()
    done = subprocess.run(
        command, cwd=tmp_path, check=True, capture_output=True, text=True
    )
    used = _used_s() - before
    counted.append(_entry_s())
    assert used < MOST * sum(counted) / len(counted)
    screen = done.stdout.splitlines()
    assert max(map(len, screen)) <= WIDE
    assert len(screen) <= HIGH or words[0] in {"memory", "explain"}


def _used_s() -> float:
    """Processor time of all processes that this one waited for. [s]."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _entry_s() -> float:
    """Processor time of making one entry of a dictionary, on this machine now. [s]."""
    before = time.process_time()
    made = {str(at): [at] for at in range(SAMPLE)}
    return (time.process_time() - before) / len(made)
