"""Commands import the solver and the page makers only when an answer needs them."""

import subprocess
import sys

import pytest

RUN = """
import sys
from planner.cli import main
try:
    main()
except SystemExit as left:
    code = left.code
print("code", code or 0, file=sys.stderr)
print(*sys.modules, sep="\\n", file=sys.stderr)
"""
JOB = "configs/jobs/tiny-llama-2-a6000.yaml"
HEAVY = {"jinja2", "joblib", "matplotlib", "ortools", "pandas", "plotly"}


def imported(*arguments: str, code: int = 0) -> set[str]:
    """Modules that a command has imported when it leaves with a code."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    lines = done.stderr.splitlines()
    assert f"code {code}" in lines
    return set(lines)


@pytest.mark.parametrize(
    ("arguments", "code"), [(("--help",), 0), (("-h",), 0), ((), 2), (("plna",), 2)]
)
def test_the_list_of_commands_needs_no_command(
    arguments: tuple[str, ...], code: int
) -> None:
    seen = imported(*arguments, code=code)
    assert not seen & (HEAVY | {"numpy", "planner.search.best_first"})
    assert not [name for name in seen if name.startswith("planner.cost")]


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", JOB),
        pytest.param(("memory", JOB), marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_a_job_without_choice_is_answered_without_the_solver(
    arguments: tuple[str, ...],
) -> None:
    """Bounds close every candidate, or leave classes of a single split."""
    assert not imported(*arguments) & HEAVY
