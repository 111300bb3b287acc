"""No command writes over a file that it reads, whatever the file is called."""

import os
from pathlib import Path
from shutil import copyfile

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from planner.cli.app import app
from planner.models import read_preset

JOB = {
    "model": "config.json",
    "cluster": "mine.yaml",
    "training": {
        "seq_len": 512,
        "global_batch": 8,
        "lengths": {"file": "lengths.txt"},
    },
    "framework": "accelerate",
    "layout": {"dp": 1},
}
INPUTS = ("job.yaml", "config.json", "mine.yaml", "lengths.txt")
OPTIONS = {
    "predict": ("--json", "--report", "--trace", "--save"),
    "plan": ("--json", "--report", "--trace", "--save"),
    "memory": ("--json", "--save"),
    "explain": ("--json", "--report", "--save"),
    "sweep": ("--json", "--report"),
    "compare": ("--json", "--report"),
}
PAIRS = [(command, option) for command, every in OPTIONS.items() for option in every]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(JOB))
    config = read_preset("llama-3.2-1b").config
    (tmp_path / "config.json").write_text(
        yaml.safe_dump(config, default_flow_style=True)
    )
    cluster = {"name": "mine", "node": "dgx-h100", "nodes": 1}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(cluster))
    (tmp_path / "lengths.txt").write_text("128\n256\n")
    return tmp_path


def named(folder: Path, file: str, spelling: str) -> Path:
    """Another name of a file: through folders, by a link, or a second entry."""
    other = folder / f"{spelling}-{file}"
    other.unlink(missing_ok=True)
    if spelling == "link":
        other.symlink_to(file)
    elif spelling == "second":
        other.hardlink_to(folder / file)
    else:
        return folder / ".." / folder.name / "." / file
    return other


@given(
    pair=st.sampled_from(PAIRS),
    file=st.sampled_from(INPUTS),
    spelling=st.sampled_from(("through", "link", "second")),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_input_is_kept(
    folder: Path, pair: tuple[str, str], file: str, spelling: str
) -> None:
    before = {name: (folder / name).read_bytes() for name in INPUTS}
    command, option = pair
    to = named(folder, file, spelling)
    words = [command, str(folder / "job.yaml"), option, str(to)]
    more = {"sweep": ["--over", "training.seq_len=512"]}.get(command, [])
    done = CliRunner().invoke(app, [*words, *more])
    assert done.exit_code == 2, done.output
    assert option in done.output
    assert "would be lost" in done.output
    assert before == {name: (folder / name).read_bytes() for name in INPUTS}


def test_an_old_answer_is_replaced(folder: Path) -> None:
    (folder / "answer.json").write_text("old")
    words = ["--model", "llama-3.2-1b", "--on", "1xh100"]
    done = CliRunner().invoke(
        app, ["memory", *words, "--json", str(folder / "answer.json")]
    )
    assert done.exit_code == 0, done.output
    assert (folder / "answer.json").read_text() != "old"


def test_the_script_that_is_imported_is_kept(tmp_path: Path) -> None:
    script = tmp_path / "run.yaml"
    script.write_text("base_model: a/b\nmicro_batch_size: 1\nsequence_len: 512\n")
    words = ["import", str(script), "--on", "1x4090", "--model", "llama-3.2-1b"]
    done = CliRunner().invoke(app, [*words, "--out", str(script)])
    assert done.exit_code == 2
    assert "would be lost" in done.output
    inside = CliRunner().invoke(
        app, ["import", str(tmp_path), *words[2:], "--out", str(script)]
    )
    assert "would be lost" in inside.output


@pytest.fixture
def launch(tmp_path: Path) -> Path:
    """A folder of launch files and of a file of the user's."""
    words = ["plan", "--model", "llama-3.2-1b", "--on", "8xh100", "--framework"]
    done = CliRunner().invoke(app, [*words, "megatron", "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    copyfile(tmp_path / "run" / "plan.json", tmp_path / "run" / "mine.json")
    return tmp_path / "run"


def test_a_folder_that_holds_an_input_is_kept(launch: Path) -> None:
    """--force deletes the folder; it took the plan along."""
    before = sorted(launch.iterdir())
    (launch.parent / "link").symlink_to(launch)
    for plan, out in (("mine", "run"), ("plan", "run"), ("mine", "link")):
        words = ["emit", str(launch / f"{plan}.json"), "--target", "megatron"]
        done = CliRunner().invoke(
            app, [*words, "--force", "--out", str(launch.parent / out)]
        )
        assert done.exit_code == 2, done.output
        assert "holds a file that the command reads" in done.output
        assert sorted(launch.iterdir()) == before


def test_every_file_of_a_folder_that_is_read_is_kept(launch: Path) -> None:
    (launch.parent / "second").hardlink_to(launch / "arguments.sh")
    before = {path: path.read_bytes() for path in launch.iterdir()}
    for out in (*before, launch.parent / "second"):
        words = ["import", str(launch), "--on", "8xh100", "--model", "llama-3.2-1b"]
        done = CliRunner().invoke(app, [*words, "--out", str(out)])
        assert done.exit_code == 2, done.output
        assert "would be lost" in done.output
    assert before == {path: path.read_bytes() for path in launch.iterdir()}


def test_a_file_that_a_script_names_is_kept(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("accelerate launch --config_file=a.yaml t.py\n")
    (tmp_path / "a.yaml").write_text("num_processes: 8\n")
    words = ["import", str(tmp_path / "run.sh"), "--out", str(tmp_path / "a.yaml")]
    assert "would be lost" in CliRunner().invoke(app, words).output


def test_an_input_that_is_no_yaml_is_told_before_an_old_output(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("a: [")
    (tmp_path / "old.json").write_text("")
    words = [
        "predict",
        str(tmp_path / "job.yaml"),
        "--json",
        str(tmp_path / "old.json"),
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "is no YAML" in done.output


SAID = {
    "mine.yaml": "mine.yaml",
    "lengths.txt": "training.lengths.file",
    "config.json": "config.json",
}


@pytest.mark.parametrize("name", SAID)
def test_devices_and_pipes_are_not_read(folder: Path, name: str) -> None:
    """A device has no end, and nobody may write to a pipe."""
    for make in (lambda path: path.symlink_to("/dev/zero"), os.mkfifo):
        (folder / name).unlink()
        make(folder / name)
        done = CliRunner().invoke(app, ["memory", str(folder / "job.yaml")])
        assert done.exit_code == 2, done.output
        assert SAID[name] in done.output
