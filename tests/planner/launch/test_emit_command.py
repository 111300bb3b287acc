"""`planner emit` and `planner import` as a user types them."""

from pathlib import Path

import pytest
import yaml
from golden_folders import ROOT
from typer.testing import CliRunner

from planner.cli.app import app

PLAN = ROOT / "megatron" / "llama-3.1-70b-32-h100" / "plan.json"
runner = CliRunner()


def run(*words: object) -> tuple[int, str]:
    result = runner.invoke(app, [str(word) for word in words])
    return result.exit_code, result.output


def test_a_folder_is_written_and_read_back(tmp_path: Path) -> None:
    out, spec = tmp_path / "out", tmp_path / "back.yaml"
    code, text = run("emit", PLAN, "--target", "slurm", "--out", out)
    assert code == 0, text
    assert {"job.sbatch", "launch.sh", "plan.json"} <= {p.name for p in out.iterdir()}
    told = ("--cluster", "dgx-h100-4-nodes", "--model", "llama-3.1-70b")
    code, text = run("import", out, "--out", spec, *told)
    assert code == 0, text
    layout = yaml.safe_load(spec.read_text())["layout"]
    assert (layout["tp"], layout["pp"], layout["vpp"], layout["cp"]) == (4, 4, 20, 2)


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    code, text = run("emit", PLAN, "--target", "slurm", "--out", tmp_path)
    assert code == 2
    assert "--force" in text


def test_an_unknown_target_names_the_nearest(tmp_path: Path) -> None:
    code, text = run("emit", PLAN, "--target", "megatronn", "--out", tmp_path / "x")
    assert code == 2
    assert "did you mean megatron" in text
    assert not (tmp_path / "x").exists()


def test_what_the_files_do_not_say_is_asked_for_at_once(tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    script.write_text(
        "torchrun --nproc_per_node gpu pretrain_gpt.py --bf16 "
        "--tensor-model-parallel-size 2 --micro-batch-size 1"
    )
    code, text = run("import", script, "--out", tmp_path / "job.yaml")
    assert code == 2
    flat = " ".join(text.split())
    for words in (
        "the model",
        "--cluster",
        "training.seq_len",
        "training.global_batch",
    ):
        assert words in flat
    assert not (tmp_path / "job.yaml").exists()


def test_what_is_not_understood_is_refused_or_set_aside(tmp_path: Path) -> None:
    script, spec = tmp_path / "train.sh", tmp_path / "job.yaml"
    script.write_text(
        "torchrun --nproc_per_node gpu pretrain_gpt.py --bf16 "
        "--tensor-model-parallel-size 2 --micro-batch-size 1 "
        "--global-batch-size 64 --seq-length 4096 --my-own-flag 3 "
        "--position-embedding-type rope"
    )
    told = ("--model", "llama-2-7b", "--node", "dgx-a100-80gb", "--nodes", 1)
    code, text = run("import", script, "--out", spec, *told)
    assert code == 2, text
    assert "train.sh:1: --my-own-flag" in text
    assert not spec.exists()
    aside = ("--ignore", "--my-own-flag")
    code, text = run("import", script, "--out", spec, *told, *aside)
    assert code == 0, text
    assert "--my-own-flag" in text
    assert "#   --my-own-flag" in spec.read_text()
    code, text = run("import", script, "--out", spec, *told, "--ignore", "--bf16")
    assert (code, "--ignore" in text) == (2, True)


@pytest.mark.parametrize("text", ["", "hello: world", "[1, 2"])
def test_files_of_no_target_are_refused(tmp_path: Path, text: str) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(text)
    code, said = run("import", other, "--out", tmp_path / "job.yaml")
    assert code == 2
    assert "--target" in said


def test_a_value_that_megatron_refuses_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    script.write_text(
        "torchrun x.py --tensor-model-parallel-size two --micro-batch-size 1"
    )
    code, said = run("import", script, "--out", tmp_path / "job.yaml")
    assert code == 2
    assert "tensor-model-parallel-size" in said


def test_a_model_of_other_sizes_is_refused(tmp_path: Path) -> None:
    told = ("--cluster", "dgx-h100-4-nodes", "--model", "llama-3.1-8b")
    spec = tmp_path / "back.yaml"
    code, said = run("import", PLAN.parent, "--out", spec, *told)
    assert code == 2
    flat = " ".join(said.split())
    assert "llama-3.1-8b has 32 layers, the files have another model" in flat
    assert not spec.exists()


def test_a_launcher_starts_what_can_express_the_plan(tmp_path: Path) -> None:
    plan = ROOT / "megatron-bridge" / "llama-3.1-8b-lora-8-a100" / "plan.json"
    code, text = run("emit", plan, "--target", "slurm", "--out", tmp_path / "out")
    assert code == 0, text
    assert {"train.py", "overrides.yaml", "job.sbatch"} <= {
        p.name for p in (tmp_path / "out").iterdir()
    }
