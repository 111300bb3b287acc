"""A job from a file, from stdin and from one line: one answer, one refusal."""

import json
from pathlib import Path

import pytest
import typer
import yaml
from typer.core import TyperGroup
from typer.testing import CliRunner

from planner.cli import app
from planner.cli.app import COMMANDS

LINE = ["--model", "Qwen/Qwen2.5-7B", "--on", "8xh100", "--method", "lora"]
LAYOUT = ["--layout", "dp=8,zero_stage=2"]


def asked(*words: str, stdin: str = "") -> dict[str, object]:
    done = CliRunner().invoke(app, [*words, "--json", "-"], input=stdin)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_a_line_its_saved_job_and_stdin_have_one_answer(tmp_path: Path) -> None:
    job = tmp_path / "there" / "job.yaml"
    line = asked("predict", *LINE, *LAYOUT, "--save", str(job))
    assert asked("predict", str(job)) == line
    assert asked("predict", "-", stdin=job.read_text()) == line


@pytest.mark.slow
def test_a_saved_job_leads_to_its_files_from_anywhere(tmp_path: Path) -> None:
    """Relative paths are whole in the copy, and assignments are put in."""
    config = {"model": "config.json", "cluster": "c.yaml"}
    config |= {"training": {"seq_len": 128, "global_batch": 8}}
    fields = yaml.safe_load(Path("configs/jobs/tiny-llama-2-a6000.yaml").read_text())
    (tmp_path / "config.json").write_text(json.dumps(fields["model"]))
    (tmp_path / "c.yaml").write_text("{name: two, node: workstation-a6000-2, nodes: 1}")
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(config))
    copy = tmp_path / "elsewhere" / "copy.yaml"
    more = ["--set", "training.seq_len=64", "--set", "framework=accelerate"]
    job = str(tmp_path / "job.yaml")
    first = asked("memory", job, *more, "--save", str(copy))
    assert asked("memory", str(copy)) == first
    assert yaml.safe_load(copy.read_text())["training"]["seq_len"] == 64


@pytest.mark.slow
def test_assumptions_stand_below_the_answer() -> None:
    done = CliRunner().invoke(app, ["memory", *LINE, "--seq-len", "1024"])
    answer, head, assumed = done.stdout.partition("Assumed, where the line")
    assert answer
    assert head
    assert "64 sequences a step" in assumed
    assert "1,024" not in assumed


@pytest.mark.parametrize("command", ["plan", "predict", "memory", "explain"])
def test_two_sources_half_a_source_and_none_are_refused(command: str) -> None:
    """One message each, and an example that is valid."""
    for words, problem in {
        ("job.yaml", *LINE): "both given",
        ("job.yaml", "--seq-len", "8"): "--set training.seq_len=",
        ("gpt2", "--on", "8xh100"): "give it as --model gpt2",
        ("--model", "gpt2"): "--model stands alone",
        ("--on", "8xh100"): "--on stands alone",
        (): "--model Qwen/Qwen2.5-7B --on 8xh100",
    }.items():
        done = CliRunner().invoke(app, [command, *words])
        assert done.exit_code == 2
        assert problem in done.stderr
        assert done.stderr.count("error:") == 1


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--set", "training.method=full"], "training.method"),
        (["--set", "training.double_quantization=true"], "double_quantization"),
    ],
)
def test_a_field_said_twice_or_read_by_another_method_is_refused(
    words: list[str], field: str
) -> None:
    done = CliRunner().invoke(app, ["memory", *LINE, *words])
    assert (done.exit_code, field in done.stderr) == (2, True)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_of_one_value_is_refused_the_second_time(command: str) -> None:
    """Every option of every command that does not repeat, by its name."""
    found = typer.main.get_command(app)
    assert isinstance(found, TyperGroup)
    options = [its for its in found.commands[command].params if its.opts[0][:1] == "-"]
    for its in options:
        word = [its.opts[0]] if its.is_flag else [its.opts[0], "1"]  # type: ignore[attr-defined]
        done = CliRunner().invoke(app, [command, *word, *word])
        refused = f"'{its.opts[0]}' is given twice" in done.stderr
        assert refused != its.multiple, its.name  # type: ignore[attr-defined]


def test_the_first_line_says_how_many_gpus_run() -> None:
    line = ["--model", "llama-3.1-8b", "--on", "16xh100"]
    done = CliRunner().invoke(app, ["predict", *line, *LAYOUT])
    assert " 8 of 16 x h100" in done.stdout


def test_stdin_that_is_no_job_is_refused() -> None:
    done = CliRunner().invoke(app, ["memory", "-"], input="model: [")
    assert done.exit_code == 2
    assert done.stderr.startswith("error: stdin: line 1")
