"""Jobs that `planner import` writes, `planner predict` takes, or import refuses."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from planner.cli.app import app

TRAINER = """model_name_or_path: meta-llama/Llama-3.1-8B
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
"""
FACTORY = f"""{TRAINER}stage: dpo
finetuning_type: lora
quantization_bit: 4
lora_rank: 8
lora_target: all
cutoff_len: 1024
bf16: true
"""
AXOLOTL = """base_model: meta-llama/Llama-3.1-8B
load_in_4bit: true
adapter: qlora
sequence_len: 1024
micro_batch_size: 1
gradient_accumulation_steps: 8
lora_r: 8
lora_alpha: 16
lora_target_linear: true
optimizer: adamw_torch
learning_rate: 0.0001
bf16: auto
"""
SFT = f"{TRAINER}max_length: 1024\n"
RUNS = {
    "factory": (FACTORY, "llamafactory-cli train a.yaml"),
    "axolotl": (AXOLOTL, "axolotl train a.yaml"),
    "axolotl, pairs": (f"{AXOLOTL}rl: dpo\n", "axolotl train a.yaml"),
    "trl": (f"{SFT}bf16: true\n", "trl sft --config a.yaml"),
    "trl, auto": (f"{SFT}bf16: auto\n", "trl sft --config a.yaml"),
    "trl, fp32": (f"{SFT}bf16: false\n", "trl sft --config a.yaml"),
}


def brought(tmp_path: Path, run: str, *more: str) -> tuple[int, str]:
    """Exit code of import, and its words on one line."""
    text, command = RUNS[run]
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "run.sh").write_text(command + "\n")
    files = [str(tmp_path / name) for name in ("a.yaml", "run.sh")]
    out = f"--out={tmp_path}/job.yaml"
    done = CliRunner().invoke(app, ["import", *files, out, *more])
    return done.exit_code, " ".join(done.output.split())


@pytest.mark.parametrize("on", ["1xh100", "1xv100", "1xt4"])
@pytest.mark.parametrize("run", RUNS)
def test_predict_takes_what_import_writes(run: str, on: str, tmp_path: Path) -> None:
    code, said = brought(tmp_path, run, f"--on={on}")
    job = tmp_path / "job.yaml"
    assert code == (0 if job.exists() else 2), said
    if code == 0:
        done = CliRunner().invoke(app, ["predict", "-q", str(job)])
        assert done.exit_code == 0, done.output
    else:
        assert "a.yaml:" in said


@pytest.mark.parametrize("run", ["factory", "axolotl, pairs"])
def test_pairs_beside_quantised_weights_say_what_settles_them(
    run: str, tmp_path: Path
) -> None:
    """TRL's adapters are bf16 there; no writer has the fp32 ones of these tools."""
    code, said = brought(tmp_path, run, "--on=1xh100")
    assert code == 2
    assert "training.lora.precision" in said
    settled = "--set=training.lora.precision=bf16"
    assert brought(tmp_path, run, "--on=1xh100", settled)[0] == 0


@pytest.mark.parametrize(
    ("run", "on", "says"),
    [
        ("axolotl", "1xv100", "a.yaml:12: training.precision: v100"),
        ("axolotl", "1xt4", "a.yaml:12: training.precision: t4 has no bf16 units"),
        ("trl, auto", "1xh100", "a.yaml:5: bf16: is a switch"),
    ],
)
def test_a_format_that_a_gpu_has_not_is_refused_with_its_line(
    run: str, on: str, says: str, tmp_path: Path
) -> None:
    code, said = brought(tmp_path, run, f"--on={on}")
    assert code == 2
    assert says in said


def test_block_size_is_the_length_of_whole_rows(tmp_path: Path) -> None:
    """run_clm.py joins texts and cuts the stream: no row is padded."""
    script, job = tmp_path / "run.sh", tmp_path / "job.yaml"
    script.write_text(
        "torchrun --nproc_per_node 8 run_clm.py --model_name_or_path gpt2 --do_train "
        "--block_size 512 --per_device_train_batch_size 4 --bf16 --output_dir o\n"
    )
    words = ["import", str(script), "--model=gpt2", "--on=8xh100", f"--out={job}"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    training = yaml.safe_load(job.read_text())["training"]
    assert training == {"precision": "bf16", "seq_len": 512, "global_batch": 32}


@pytest.mark.parametrize("value", ["02000", "1:30", "0b11"])
@pytest.mark.parametrize("beside", [True, False])
def test_a_number_with_two_readings_is_named(
    value: str, *, beside: bool, tmp_path: Path
) -> None:
    """Such a file was none at all, and no target knew it."""
    text = AXOLOTL.replace("sequence_len: 1024", f"sequence_len: {value}")
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "run.sh").write_text("axolotl train a.yaml\n")
    files = [str(tmp_path / "run.sh"), *([str(tmp_path / "a.yaml")] * beside)]
    words = ["import", *files, "--on=8xh100", f"--out={tmp_path}/job.yaml"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert "a.yaml:4: sequence_len: is another number in YAML" in said
    assert f"'{value}'" in said


def test_the_program_beside_a_recipe_says_its_method(tmp_path: Path) -> None:
    """A recipe of the alignment handbook leaves the method to the script."""
    recipe, program = tmp_path / "a.yaml", tmp_path / "run_dpo.py"
    recipe.write_text(f"{SFT}bf16: true\nbeta: 0.01\nmax_prompt_length: 512\n")
    program.write_text("")
    more = ["--on=8xh100", f"--out={tmp_path}/job.yaml"]
    alone = CliRunner().invoke(app, ["import", str(recipe), *more])
    assert alone.exit_code == 2
    assert "run_dpo.py" in " ".join(alone.output.split())
    both = CliRunner().invoke(app, ["import", str(recipe), str(program), *more])
    assert both.exit_code == 0, both.output
    job = yaml.safe_load((tmp_path / "job.yaml").read_text())
    assert job["training"]["reference"] == "copy"
    other = tmp_path / "run_kto.py"
    other.write_text("")
    several = [str(recipe), str(program), str(other)]
    assert CliRunner().invoke(app, ["import", *several, *more]).exit_code == 2
