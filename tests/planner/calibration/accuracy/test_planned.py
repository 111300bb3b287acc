"""A run of a plan becomes a row that is priced exactly as its plan was."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from planner.calibration.mapping.cases import case_of
from planner.calibration.rows.rows import read_rows
from planner.cli.app import app
from planner.hardware.reading.files import SHIPPED
from planner.launch import partial_of, read_plan
from planner.planning.prediction.predict import predict

EMIT = Path(__file__).resolve().parents[3] / "golden" / "emit"
PLANS = {
    "megatron/llama-3-8b-8-a100": "Megatron-LM",
    "megatron-bridge/llama-3.1-8b-lora-8-a100": "Megatron-LM",
    "torchtitan/llama-3.1-70b-offload-8-h100": "torchtitan",
    "deepspeed/llama-3-8b-pipeline-8-a100": "DeepSpeed",
    "accelerate/llama-3.1-70b-qlora-2-a6000": "Hugging Face Trainer",
}
"""Golden plans, and whose log a run of each leaves. [text]"""
LOGS = {
    "Megatron-LM": "elapsed time per iteration (ms): 20000.0 | "
    "max allocated: 51200.0\n",
    "torchtitan": "step: 10 loss: 9.1 memory: 47.46GiB(60%)  tps: 6,400\n",
    "DeepSpeed": "RunningAvgSamplesPerSec=8.0, CurrSamplesPerSec=8.0, "
    "MemAllocated=3.0GB, MaxMemAllocated=40.0GB\n",
    "Hugging Face Trainer": "{'loss': '2.1', 'step_time': '19.5', "
    "'max_allocated (GiB)': '31.5'}\n",
}


@pytest.mark.parametrize(("plan", "log"), PLANS.items())
def test_a_log_beside_a_plan_becomes_a_row(plan: str, log: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text((EMIT / plan / "plan.json").read_text())
    (tmp_path / "check.log").write_text(LOGS[log] * 3)
    words = ["validate", "--log", str(tmp_path / "check.log"), "--json", "-"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    (said,) = json.loads(done.stdout)["rows"]
    (row,) = read_rows([tmp_path / "check.row.yaml"]).rows
    case, found = case_of(row, SHIPPED), read_plan(path)
    assert row.job.framework == log
    assert (
        case.layout.model_dump(exclude_none=True).items()
        <= (found.plan.layout.model_dump() | {"recompute": None}).items()
    )
    assert case.workload.training == found.pricing.training
    assert case.stack == found.pricing.framework.profile.name
    measured = case.measured.step_s
    assert measured == pytest.approx(said["measured"]["step_time_s"])
    again = predict(found.pricing, partial_of(found.plan.layout)).estimate
    assert said["predicted"]["step_time_s"] == pytest.approx(again.step_time_s.value)


def test_a_row_with_a_broken_job_is_refused_by_its_field(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text((EMIT / next(iter(PLANS)) / "plan.json").read_text())
    (tmp_path / "check.log").write_text(LOGS["Megatron-LM"] * 3)
    CliRunner().invoke(app, ["validate", "--log", str(tmp_path / "check.log")])
    rows = tmp_path / "check.row.yaml"
    (row,) = yaml.safe_load(rows.read_text())
    row["spec"]["training"]["precision"] = "bf17"
    rows.write_text(yaml.safe_dump([row]))
    done = CliRunner().invoke(app, ["validate", str(rows), "--json", "-"])
    (said,) = json.loads(done.stdout)["rows"]
    assert said["status"] == "unsupported"
    assert "precision" in said["reason"]
