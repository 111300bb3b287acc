"""`--as` plans an unknown architecture as a known family, and no target writes it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner
from typer.testing import Result as Run

from planner.cli import app

ALIEN = {
    "architectures": ["AlienForCausalLM"],
    "model_type": "alien",
    "hidden_size": 512,
    "intermediate_size": 1536,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "vocab_size": 32_000,
    "laser_rank": 32,
}


def run(*arguments: str) -> Run:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def job(tmp_path: Path) -> str:
    """A job whose model is of an architecture that nobody knows."""
    (tmp_path / "alien.json").write_text(json.dumps(ALIEN))
    spec = {
        "model": "alien.json",
        "cluster": "a6000-2",
        "training": {"seq_len": 1024, "global_batch": 8},
        "framework": "torchtitan",
    }
    (tmp_path / "job.yaml").write_text(json.dumps(spec))
    return str(tmp_path / "job.yaml")


def test_an_unknown_architecture_is_planned_on_request_alone(job: str) -> None:
    refused = run("predict", job, "--layout", "tp=1")
    assert refused.exit_code == 2
    assert "--as llama plans it so" in refused.stderr
    told = run("predict", job, "--layout", "tp=1", "--as", "llama")
    assert told.exit_code == 0
    assert "not understood and left out: laser_rank" in " ".join(told.stdout.split())


@pytest.mark.slow
def test_memory_takes_the_family_too(job: str) -> None:
    told = run("memory", job, "--as", "llama")
    assert "planned as llama" in " ".join(told.stdout.split())


def test_a_family_that_is_none_names_the_nearest(job: str) -> None:
    refused = run("plan", job, "--as", "lama")
    assert refused.exit_code == 2
    assert "families: llama" in refused.stderr


def test_no_target_writes_files_for_a_stand_in(job: str, tmp_path: Path) -> None:
    refused = run("plan", job, "--as", "llama", "--out", str(tmp_path / "out"))
    assert refused.exit_code == 5
    assert "is another architecture" in " ".join(refused.stderr.split())


def test_one_line_names_the_family_and_takes_it(job: str) -> None:
    """A config without a job, refused with what it is like, and planned on request."""
    alien = str(Path(job).parent / "alien.json")
    line = ["predict", "--model", alien, "--on", "2xa6000", "--layout", "dp=2"]
    refused = run(*line)
    assert refused.exit_code == 2
    said = " ".join(refused.stderr.split())
    assert "which understands all but laser_rank: --as llama plans it so" in said
    told = run(*line, "--as", "llama")
    assert told.exit_code == 0, told.output
    assert "not understood and left out: laser_rank" in " ".join(told.stdout.split())
    none = run(*line, "--as", "lama")
    assert (none.exit_code, "families: llama" in none.stderr) == (2, True)
