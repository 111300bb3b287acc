"""A job of the command line: every name is looked up once."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.cli.app import app
from planner.cost.workload import Workload
from planner.hardware.reading.files import SHIPPED
from planner.job import case
from planner.job.loading import load
from planner.planning.economics.phases import phases_of

ROOT = Path(__file__).resolve().parents[3]
JOB = ROOT / "configs" / "jobs" / "tiny-llama-2-a6000.yaml"
PHASES = ROOT / "configs" / "jobs" / "llama-3.1-405b-two-phases.yaml"


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders of the jobs that were resolved since the test began."""
    found: list[Path] = []
    resolve = case.resolve

    def counted(*args: object, base: Path, **options: object) -> tuple[Workload, ...]:
        found.append(base)
        return resolve(*args, base=base, **options)

    monkeypatch.setattr(case, "resolve", counted)
    return found


def test_a_plan_looks_up_the_names_of_its_job_once(
    looked_up: list[Path], tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    done = CliRunner().invoke(app, ["plan", str(JOB), "--out", out])
    assert done.exit_code == 0, done.output
    assert looked_up == [JOB.parent]


def test_each_phase_is_looked_up_once_and_keeps_the_files(
    looked_up: list[Path],
) -> None:
    job = load(PHASES, (), catalog=SHIPPED)
    phases = phases_of(job)
    assert len(looked_up) == 1 + len(phases) == 3
    for phase in phases:
        assert phase.job.workloads[0].training == phase.job.spec.training
        assert (phase.job.file, phase.job.base) == (job.file, job.base)
    assert len(looked_up) == 3


def test_a_calibration_of_another_gpu_is_said_to_change_nothing(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    for gpu, told in (("h100-sxm5-80gb", True), ("rtx-a6000", False)):
        fit = f"{{gpu: {gpu}, stack: megatron-2024, rows: 1, residual: 0}}"
        file.write_text(f"schema: planner/calibration@1\nstacks: [{fit}]\n")
        said = f"{file} has nothing of rtx-a6000; it changes nothing"
        assert (said in load(JOB, (), SHIPPED, file).warnings) is told
