"""Every command is in the README, and every command and option explains itself."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from planner.cli import app

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = sorted(typer.main.get_command(app).commands.items())
NAMES = [name for name, _ in COMMANDS]
TRAINED = "training.method=lora"
NOTHING_FITS = 3
"""Exit code. [1]"""


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_shows_a_command(name: str) -> None:
    assert f"planner {name}" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=NAMES)
def test_a_command_and_its_parameters_have_help(
    name: str, command: typer.core.TyperCommand
) -> None:
    done = CliRunner().invoke(app, [name, "--help"])
    assert done.exit_code == 0
    assert command.help
    assert command.help in done.stdout
    silent = [p.name for p in command.params if not getattr(p, "help", None)]
    assert silent == []


def test_help_lists_every_command_and_the_exit_codes() -> None:
    text = " ".join(CliRunner().invoke(app, ["--help"]).stdout.split())
    assert [name for name in NAMES if name not in text] == []
    for code in ("0 success", "2 bad input", "3 proven infeasible", "4 time limit"):
        assert code in text


def without_timing(text: str) -> str:
    """White space folded and the search's own seconds left out."""
    return re.sub(r"solved, [\d.]+ s", "solved", " ".join(text.split()))


def test_the_readme_shows_what_the_first_command_prints() -> None:
    """The plan of the README is the plan of today, to the last digit."""
    shown = (ROOT / "README.md").read_text().split("```text\n")[1].split("```")[0]
    job = "configs/jobs/llama-3.1-405b-16k-h100.yaml"
    run = subprocess.run(
        [sys.executable, "-m", "planner", "plan", job],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert without_timing(run.stdout) == without_timing(shown)


def after(summary: str) -> str:
    """The first output that the README shows below a line."""
    return (ROOT / "README.md").read_text().split(summary)[1].split("```text\n")[1]


def test_the_readme_shows_what_planner_explain_prints() -> None:
    """What clashes, what is needed and what helps, to the last digit."""
    job = "configs/jobs/llama-2-7b-4-rtx-4090.yaml"
    shown = after(f"planner explain {job}</summary>").split("```")[0]
    run = subprocess.run(
        [sys.executable, "-m", "planner", "explain", job],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == NOTHING_FITS
    assert run.stdout.rstrip() == shown.rstrip()


def test_the_readme_shows_what_planner_memory_prints() -> None:
    """Up to the stack, whose constants `planner plan` shows above it."""
    shown = (ROOT / "README.md").read_text().split("```text\n")[2].split("```")[0]
    job = "configs/jobs/llama-2-7b-4-rtx-4090.yaml"
    run = subprocess.run(
        [sys.executable, "-m", "planner", "memory", job, "--set", TRAINED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert run.stdout.split("\nStack assumed")[0].rstrip() == shown.rstrip()


def test_the_readme_shows_what_a_whole_run_takes() -> None:
    """Time, interruptions, cost and energy of two phases, to the last digit."""
    job = "configs/jobs/llama-3.1-405b-two-phases.yaml"
    shown = after(f"planner predict {job}</summary>").split("```")[0]
    done = CliRunner().invoke(app, ["predict", str(ROOT / job)])

    printed = done.stdout.split("\nThe whole run\n")[1]
    run = printed.split("\nAssumptions of the run")[0]
    assert shown.rstrip() == f"The whole run\n{run.rstrip()}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "job",
    ["llama-3.1-70b-512-h100-256-a100", "llama-3.1-405b-1013-of-1024-nodes"],
)
def test_the_readme_shows_fleets_that_are_mixed_or_broken(job: str) -> None:
    """The proven plan, up to the stack."""
    path = f"configs/jobs/{job}.yaml"
    shown = after(f"planner plan {path}</summary>").split("```")[0]
    run = subprocess.run(
        [sys.executable, "-m", "planner", "plan", path, "--time-limit", "600"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    printed = run.stdout.split("\nStack assumed")[0]
    assert "optimal: gap 0.00%" in printed
    assert without_timing(printed) == without_timing(shown)


@pytest.mark.slow
def test_the_readme_shows_what_planner_compare_prints() -> None:
    """Up to the prices; work ends the searches, so it is the same on any machine."""
    path = "configs/purchases/70b-one-month.yaml"
    shown = after(f"planner compare {path}</summary>").split("```")[0]
    run = subprocess.run(
        [sys.executable, "-m", "planner", "compare", path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    printed = run.stdout.split("\nPrices")[0]
    assert "Best" in shown
    assert " ".join(printed.split()) == " ".join(shown.split())


FOLDER = ROOT / "tests" / "golden" / "emit" / "slurm" / "llama-3.1-70b-32-h100"


def test_the_readme_shows_one_launch_folder_in_full() -> None:
    """To the letter, but for the plan and what says the same in YAML."""
    text = (ROOT / "README.md").read_text()
    left_out = {"plan.json", "arguments.yaml"}
    shown = [path for path in FOLDER.iterdir() if path.name not in left_out]
    assert len(shown) == 5
    assert [path.name for path in shown if path.read_text() not in text] == []
