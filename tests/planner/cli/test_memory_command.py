"""`planner memory` prints, writes JSON, fails when asked to, and is quick."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner
from typer.testing import Result as Run

from planner.cli import app
from planner.cost.table.table import CostTable, fill_table

LORA = {
    "model": "llama-3.1-8b",
    "cluster": "rtx-4090-1",
    "training": {"seq_len": 4096, "global_batch": 16, "method": "lora"},
    "framework": "torchtitan",
}
SERVED = {
    "model": "llama-3-8b",
    "cluster": "rtx-4090-1",
    "inference": {"context": 8192, "weights": "int8"},
}
JOB = "llama-3.1-405b-16k-h100"


def run(*arguments: str) -> Run:
    return CliRunner().invoke(app, ["memory", *arguments])


def written(folder: Path, fields: dict[str, object]) -> str:
    file = folder / "job.yaml"
    file.write_text(yaml.safe_dump(fields))
    return str(file)


@pytest.mark.usefixtures("own_method")
def test_json_has_the_fields_of_the_schema() -> None:
    done = run(JOB, "--json", "-")
    answer = json.loads(done.stdout)
    assert answer["schema"] == "planner/memory@1"
    assert {"stages", "verdict", "peak_device_gib"} <= answer["memory"].keys()
    assert answer["largest"].keys() == {"micro_batch", "seq_len"}
    assert answer["gpus_needed"] == answer["methods"][0]["gpus_needed"]
    assert answer["layout"]["tp"] == 8
    assert answer["checkpoint"]["bytes_per_parameter"] == pytest.approx(12, rel=0.01)
    assert done.stderr == ""


def test_the_report_says_what_people_ask(tmp_path: Path) -> None:
    text = " ".join(run(written(tmp_path, LORA)).stdout.split())
    for part in ("The most that fits", "micro-batch", "fewest GPUs", "By method"):
        assert part in text
    for part in ("largest model", "Checkpoint", "adapters alone", "the fullest GPU"):
        assert part in text


def test_the_report_of_inference_has_the_cache(tmp_path: Path) -> None:
    text = " ".join(run(written(tmp_path, SERVED)).stdout.split())
    for part in ("KV cache", "128.0 KiB a token", "fits", "int8 weights"):
        assert part in text


def test_inference_has_the_same_schema(tmp_path: Path) -> None:
    answer = json.loads(run(written(tmp_path, SERVED), "--json", "-").stdout)
    assert answer["schema"] == "planner/memory@1"
    assert answer["largest"].keys() == {"batch", "context"}
    assert answer["gpus_needed"] == 1


@pytest.mark.usefixtures("own_method")
@pytest.mark.parametrize(
    ("fields", "verdict", "codes"),
    [
        ({"method": "qlora"}, "fits", {"": 0, "at-risk": 0}),
        ({"method": "full"}, "oom", {"": 0, "oom": 3, "at-risk": 3}),
    ],
)
def test_a_verdict_fails_only_when_asked_to(
    tmp_path: Path, fields: dict[str, str], verdict: str, codes: dict[str, int]
) -> None:
    file = written(tmp_path, LORA | {"training": LORA["training"] | fields})
    for limit, code in codes.items():
        words = ("--fail-on", limit) if limit else ()
        done = run(file, "--json", "-", *words)
        assert done.exit_code == code
        assert json.loads(done.stdout)["memory"]["verdict"] == verdict


@pytest.mark.usefixtures("own_method")
def test_a_layout_on_the_command_line_replaces_that_of_the_spec() -> None:
    done = run(JOB, "--layout", "tp=8,pp=16,stages=even,recompute=full", "--json", "-")
    assert json.loads(done.stdout)["layout"]["vpp"] == 1


@pytest.mark.usefixtures("own_method")
def test_json_goes_to_a_file_beside_the_report(tmp_path: Path) -> None:
    file = tmp_path / "memory.json"
    done = run(written(tmp_path, LORA), "--json", str(file))
    assert "Memory" in done.stdout
    assert json.loads(file.read_text())["schema"] == "planner/memory@1"


@pytest.mark.parametrize(
    ("command", "fields", "told"),
    [
        ("plan", SERVED, ["inference", "planner memory"]),
        ("predict", SERVED, ["inference", "planner memory"]),
        ("memory", SERVED | {"layout": {"tp": 2}}, ["layout", "inference.tp"]),
        ("memory", LORA | {"framework": "any"}, ["framework", "allowed: megatron"]),
        ("memory", LORA | {"layout": {"tp": 2}}, ["training.method", "adapters"]),
        (
            "memory",
            LORA | {"framework": "megatron", "layout": {"tp": 2}},
            ["layout", "cluster's 1 GPUs"],
        ),
        ("memory", {**LORA, **SERVED}, ["training", "not both"]),
        ("memory", {"model": "gpt2", "cluster": "a6000-2"}, ["training", "missing"]),
        (
            "memory",
            SERVED | {"inference": {"context": 1, "weights": "int3"}},
            ["inference.weights", "'int3'", "int4"],
        ),
        (
            "memory",
            SERVED | {"inference": {"context": 1, "tp": 2}},
            ["inference.tp", "allowed: 1"],
        ),
        (
            "memory",
            SERVED | {"inference": {"contxt": 1}},
            ["inference.contxt", "did you mean context?"],
        ),
    ],
)
def test_bad_input_is_one_message(
    tmp_path: Path, command: str, fields: dict[str, object], told: list[str]
) -> None:
    file = written(tmp_path, fields)
    done = CliRunner().invoke(app, [command, file])
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert done.stderr.count("error: ") == 1
    assert [part for part in told if part not in done.stderr] == []


@pytest.mark.slow
@pytest.mark.parametrize("job", [JOB, LORA])
def test_an_answer_prices_few_tables(
    tmp_path: Path, job: str | dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its two seconds a table takes ten milliseconds, so a hundred would be many."""
    filled: list[int] = []

    def counted(*args: Any, **kwargs: Any) -> CostTable:
        filled.append(len(args[1]))
        return fill_table(*args, **kwargs)

    for module in ("planner.planning.capacity.leanest", "planner.cost.table.mixed"):
        monkeypatch.setattr(f"{module}.fill_table", counted)
    file = job if isinstance(job, str) else written(tmp_path, job)
    done = CliRunner().invoke(app, ["memory", file, "--json", "-"])
    assert done.exit_code == 0, done.output
    assert 5 < len(filled) < 100
