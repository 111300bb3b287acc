"""The whole run as `planner predict` and `planner plan` print and write it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.cli import app

JOB = "llama-3-8b-8-a100"
LAYOUT = ["--layout", "tp=2,dp=4,micro_batch=1,zero_stage=1,recompute=full"]
TOKENS = ["--set", "training.tokens=1e12"]
TWO = "phases=[{name: a, tokens: 1e12}, {name: b, tokens: 1e11, seq_len: 16384}]"
CANNOT_EXPRESS = 5
"""Exit code. [1]"""
FIELDS = ("time_to_train_s", "cost_usd", "energy_mwh")


def predicted(*arguments: str) -> dict[str, object]:
    done = CliRunner().invoke(app, ["predict", JOB, *LAYOUT, *arguments, "--json", "-"])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_without_tokens_there_is_no_run() -> None:
    answer = predicted()
    assert answer["run"] is None
    assert [answer["estimate"][name] for name in FIELDS] == [None, None, None]


def test_the_estimate_says_what_the_run_says() -> None:
    answer = predicted(*TOKENS)
    run, estimate = answer["run"], answer["estimate"]
    assert estimate["time_to_train_s"] == run["time_to_train_s"]["value"]
    assert estimate["cost_usd"] == run["cost_usd"]["total"]["value"]
    assert estimate["energy_mwh"] == run["energy_mwh"]["value"]
    assert run["tokens"] == 1e12


def test_setting_compute_clears_tokens() -> None:
    answer = predicted(*TOKENS, "--set", "training.compute=4.818e22 FLOP")
    assert answer["run"]["tokens"] == pytest.approx(1e12, rel=0.001)
    assert "FLOP over 6 x 8.0B parameters" in answer["run"]["tokens_rule"]


def test_two_phases_make_one_run() -> None:
    answer = predicted("--set", TWO)
    first, second = answer["phases"]
    times = [part["estimate"]["time_to_train_s"] for part in (first, second)]
    run = answer["run"]
    assert run["time_to_train_s"]["value"] == pytest.approx(
        sum(times) + run["reshard_s"]
    )
    assert answer["estimate"] == first["estimate"]
    assert [part["name"] for part in run["stretches"]] == ["a", "b"]


def test_the_table_says_time_interruptions_cost_and_energy() -> None:
    done = CliRunner().invoke(app, ["predict", JOB, *LAYOUT, "--set", TWO, "-v"])
    assert done.exit_code == 0
    table = done.stdout.split("The whole run\n")[1].split("\n  Assumed of the run")[0]
    rows = ("tokens", "time", "effective share", "checkpoints", "nodes", "GPU-hours")
    for row in (*rows, "cost", "price", "energy", "carbon", "reshards"):
        assert f"  {row}" in table
    assert "interruption" in done.stdout.split("\n  Assumed of the run")[1]


def test_a_ramp_is_planned_and_never_lost_on_the_way_out(tmp_path: Path) -> None:
    limits = "search={tp: [2], pp: [1], micro_batch: [1], recompute: [full]}"
    ramp = "training.batch_ramp=[{global_batch: 64, tokens: 1e11}]"
    out = tmp_path / "out"
    line = ["plan", JOB, "--set", limits, *TOKENS, "--set", ramp, "--top", "1"]
    refused = CliRunner().invoke(app, [*line, "--out", str(out), "--json", "-"])
    assert refused.exit_code == CANNOT_EXPRESS
    assert "spec.training.batch_ramp" in refused.stderr
    assert not out.exists()
    done = CliRunner().invoke(app, [*line, "--json", "-"])
    assert done.exit_code == 0, done.stderr
    first, rest = json.loads(done.stdout)["run"]["stretches"]
    assert (first["sequences"], rest["sequences"]) == (64, 128)


def test_a_plan_of_two_phases_is_two_files(tmp_path: Path) -> None:
    limits = "search={tp: [2], pp: [1], micro_batch: [1], recompute: [full]}"
    out = tmp_path / "out"
    line = ["plan", JOB, "--set", limits, "--set", TWO, "--top", "1"]
    done = CliRunner().invoke(app, [*line, "--out", str(out), "--json", "-"])
    assert done.exit_code == 0, done.stderr
    result = json.loads(done.stdout)
    plans = sorted(path.name for path in out.glob("plan*.json"))
    assert plans == ["plan-b.json", "plan.json"]
    assert (out / "launch.sh").exists()
    later = json.loads((out / "plan-b.json").read_text())
    assert later["spec"]["training"]["seq_len"] == 16_384
    assert "phases" not in later["spec"]
    assert later["layout"] == result["phases"][1]["result"]["plans"][0]["layout"]
    assert result["run"]["stretches"][1]["seq_len"] == 16_384
