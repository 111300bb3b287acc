"""Public names of the package: light, typed, and with the arguments of the commands."""

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from each import each

import planner

ROOT = Path(__file__).resolve().parents[3]
STUB = ast.parse((ROOT / "planner" / "__init__.pyi").read_text())
RENAMED = {"set": "assignments", "rows": "paths", "log": "log_file", "job": "spec"}
"""Argument of a function to the argument of the command, where they differ."""
OUR_OWN = {"on_progress"}
"""Arguments that commands lack: a terminal has a bar."""
OF_EVERY = {"assignments", "hardware", "calibration"}
"""Arguments of every command that reads a job."""
CALLER = """
import planner

def told(state: planner.Progress) -> None:
    if state.gap is not None and state.gap < 0.05:
        raise planner.StopSearch

def main() -> float:
    try:
        result = planner.plan("a.yaml", set={"training.seq_len": 1}, on_progress=told)
    except planner.PlannerError as error:
        where: tuple[str | None, str | None, int]
        where = error.file, error.field, error.exit_code
        raise SystemExit(error.exit_code) from error
    tp: int = result.plans[0].layout.tp
    result.report("plan.html")
    names: tuple[str, ...] = result.emit("run/", target="slurm")
    rows: list[dict[str, object]] = result.table()
    job = planner.Job(model="llama-3-8b", cluster="dgx-a100-1-node")
    priced: planner.Prediction = planner.predict(job, layout=result.plans[0].layout)
    held = planner.memory({"model": "llama-3-8b"}).memory.verdict
    fit = planner.calibrate("rows.yaml")
    planner.validate("rows.yaml", calibration=fit.file).summary
    planner.explain(job, layout="tp=8").relaxations
    planner.compare(["a.yaml", job]).best
    planner.size("8xh100", days=1, serve_tokens="1T").nearest.plan.layout
    planner.diff(result, "b/plan.json").step_time_s.difference
    return result.objective.gap + priced.estimate.step_time_s.value

planner.plan("job.yaml", top="4")  # wrong
planner.plan("job.yaml").plans[0].layout.tq  # wrong
"""
"""A program of a user; two lines of it are wrong."""


def test_the_stub_names_what_the_package_gives() -> None:
    stub = {
        alias.asname: node.module
        for node in STUB.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert stub == planner._HOMES
    given = {name: getattr(planner, name) for name in stub}
    assert {"__version__", *given} == {*planner.__all__} <= {*dir(planner)}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = planner.nothing


def test_the_package_is_imported_without_any_other() -> None:
    code = (
        "import sys, planner; "
        "print([m for m in sys.modules if m.startswith(('planner.', 'numpy', 'pyd'))])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert ran.stdout.strip() == "[]"


@each("name", ["plan", "predict", "memory", "explain", "compare", "validate"])
def test_a_function_has_the_arguments_of_its_command(name: str) -> None:
    command = getattr(import_module(f"planner.cli.commands.{name}"), name)
    theirs = inspect.signature(command).parameters
    ours = inspect.signature(getattr(planner, name)).parameters
    named = {RENAMED.get(arg, arg): arg for arg in ours if arg not in OUR_OWN}
    assert {*named} <= {*theirs}
    assert {*named} >= OF_EVERY
    pairs = {arg: (ours[named[arg]], theirs[arg]) for arg in named}
    kept = {
        name: (one.default, other.default)
        for name, (one, other) in pairs.items()
        if name not in {"paths", "spec", "specs"}
    }
    assert [arg for arg, (one, other) in kept.items() if one != other] == []


@pytest.mark.slow
def test_types_hold_from_outside(tmp_path: Path) -> None:
    """The package is typed, and a wrong call is seen without a run."""
    file = tmp_path / "caller.py"
    file.write_text(CALLER)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(file)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    lines = [n for n, line in enumerate(CALLER.splitlines(), 1) if "# wrong" in line]
    told = [line for line in done.stdout.splitlines() if "error:" in line]
    assert [int(line.split(":")[1]) for line in told] == lines, done.stdout
