"""Streams and names that a shell may hand over: gone, full, in a ring, not UTF-8."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.cli.app import app

PLANNER = f"{sys.executable} -m planner"
JOB = ("--model", "llama-3.2-1b", "--on", "8xh100")
PREDICT = ("predict", *JOB, "--layout", "dp=8")


def code(line: str, folder: Path) -> int:
    """Exit code of the first command of a line of bash."""
    script = f"{line.format(PLANNER)}; exit ${{PIPESTATUS[0]}}"
    shell = ["/bin/bash", "-c", script]
    return subprocess.run(shell, cwd=folder, check=False, timeout=60).returncode


@pytest.mark.parametrize(
    "line",
    [
        "{} predict wrong.yaml 2>&1 | true",
        "{} predict wrong.yaml 2>/dev/full",
        "{} predict wrong.yaml 2>&-",
        "{} predict wrong.yaml >&- 2>&-",
        "{} predict --no-such-option 2>&1 | true",
        "{} no-such-command 2>&1 | true",
        "{} predict - <&- 2>&1 | true",
    ],
)
def test_a_wrong_input_ends_with_2_whoever_reads_the_message(
    line: str, tmp_path: Path
) -> None:
    (tmp_path / "wrong.yaml").write_text("wrong: 1\n")
    # The reader is gone before the first word.
    assert code(line.replace("| true", "| exec 0<&-"), tmp_path) == 2
    assert code(line, tmp_path) == 2


def test_work_is_done_whoever_reads_the_messages(tmp_path: Path) -> None:
    words = f"predict {' '.join(PREDICT[1:])} --json out.json"
    assert code(f"{{}} {words} 2>&1 | exec 0<&-", tmp_path) == 0
    assert (tmp_path / "out.json").is_file()


@pytest.mark.parametrize("option", ["--json", "--save", "--report"])
def test_an_output_may_have_any_name(option: str, tmp_path: Path) -> None:
    """Bytes that are no UTF-8, and a link that leads to itself."""
    (tmp_path / "ring").symlink_to("ring")
    for name in (os.fsdecode(b"o\xff"), "ring"):
        done = CliRunner().invoke(app, [*PREDICT, option, str(tmp_path / name)])
        assert done.exit_code == 0, done.output
        assert (tmp_path / name).read_text()


@pytest.mark.parametrize(
    "words", [("predict",), ("import", "--out", "x.yaml"), ("validate",), ("compare",)]
)
@pytest.mark.parametrize(
    ("name", "told"),
    [
        (os.fsdecode(b"no\xff"), "/no\\xff: no such file"),
        ("ring", "/ring: links lead in a circle"),
        ("ring/inner", "/ring/inner: links lead in a circle"),
    ],
)
def test_an_input_that_leads_nowhere_is_named(
    words: tuple[str, ...], name: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "ring").symlink_to("ring")
    done = CliRunner().invoke(app, [*words, str(tmp_path / name)])
    assert done.exit_code == 2, done.output
    assert told in done.output


@pytest.mark.parametrize("option", ["--json", "--save", "--report"])
def test_an_output_under_a_ring_is_refused_before_any_answer(
    option: str, tmp_path: Path
) -> None:
    (tmp_path / "ring").symlink_to("ring")
    done = CliRunner().invoke(app, [*PREDICT, option, str(tmp_path / "ring" / "out")])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "links lead in a circle" in done.stderr


@pytest.mark.parametrize("words", ["--help", "plan --help", "--version", "catalog"])
def test_help_that_nobody_reads_is_no_error(words: str, tmp_path: Path) -> None:
    assert code(f"{{}} {words} | exec 0<&-", tmp_path) == 0
