"""Whatever a file says, the answer is an answer or one line that says what is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from examples import examples
from hostile import PAYLOADS, TEXT, answered, as_json, as_yaml, broken, check, mutated
from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[4]
JOB: dict[str, Any] = {
    "model": "llama-3-8b",
    "cluster": {
        "name": "mine",
        "node": "dgx-h100",
        "nodes": 2,
        "tiers": [{"name": "pod", "gpus": 16, "oversubscription": 2}],
    },
    "training": {"seq_len": 4096, "global_batch": 64, "tokens": 1e10},
    "framework": "megatron",
    "search": {"tp": [1, 2, 4], "pp": {"max": 4}, "recompute": ["none", "full"]},
    "layout": {"tp": 4, "pp": 2, "micro_batch": 1, "zero_stage": 1},
}
BUY: dict[str, Any] = {
    "job": {
        "model": "gpt2",
        "training": {"seq_len": 1024, "global_batch": 64, "tokens": 1e9},
    },
    "budget": "1 MUSD",
    "deadline": "60 d",
    "candidates": [
        {
            "name": "A",
            "cluster": {"node": "dgx-a100-80gb"},
            "most_nodes": 1,
            "price": "1.5 USD/GPU-h",
            "source": "a quote",
        },
        {"cluster": {"node": "dgx-h100"}, "most_nodes": 1},
    ],
}
PREDICT = ("predict", "job.yaml", "--json", "o.json")
COMPARE = ("compare", "buy.yaml", "--time-limit", "2", "--tolerance", "0.5")
CONFIGS = {
    name: yaml.safe_load((ROOT / f"configs/models/{name}.yaml").read_text())["config"]
    for name in ("llama-3-8b", "mixtral-8x7b", "deepseek-v2-lite", "gemma-2-2b", "gpt2")
}
CLUSTER = ROOT / "configs/clusters/dgx-a100-1-node.yaml"
GPU = ROOT / "hardware/gpus/a100-sxm4-80gb.yaml"


def check_job(content: bytes, *more: str) -> None:
    files = {"job.yaml": content}
    check(answered([*PREDICT, *more], files), files)


def check_config(content: bytes, command: str) -> None:
    job = {**JOB, "model": "config.json", "layout": {"tp": 1}, "search": {}}
    files = {"job.yaml": as_yaml(job), "config.json": content}
    check(answered([command, "job.yaml", "--json", "o.json"], files), files)


def check_hardware(file: str, content: bytes) -> None:
    job = {**JOB, "cluster": "dgx-a100-1-node", "layout": {"tp": 2, "pp": 2}}
    files = {"job.yaml": as_yaml(job), f"hw/{file}": content}
    arguments = ["predict", "job.yaml", "--json", "o.json", "--hardware", "hw"]
    check(answered(arguments, files), files, "hw/", "--hardware")


@settings(max_examples=examples(40))
@given(mutated(JOB))
def test_a_job_with_something_wrong(job: dict[str, Any]) -> None:
    check_job(as_yaml(job))


@settings(max_examples=examples(20))
@given(broken(as_yaml(JOB).decode()))
def test_a_job_that_is_broken_as_text(content: bytes) -> None:
    check_job(content)


@settings(max_examples=examples(30))
@given(st.sampled_from(sorted(CONFIGS)).flatmap(lambda name: mutated(CONFIGS[name])))
def test_a_config_with_something_wrong(config: dict[str, Any]) -> None:
    check_config(as_json(config), "predict")


@pytest.mark.parametrize("text", TEXT, ids=lambda text: repr(text[:12]))
def test_a_config_that_is_no_config(text: str) -> None:
    check_config(text.encode(), "predict")


@settings(max_examples=examples(12))
@given(mutated(yaml.safe_load(CLUSTER.read_text())))
def test_a_cluster_of_ones_own_with_something_wrong(cluster: dict[str, Any]) -> None:
    check_hardware(f"clusters/{CLUSTER.name}", as_yaml(cluster))


@settings(max_examples=examples(12))
@given(mutated(yaml.safe_load(GPU.read_text())))
def test_a_gpu_of_ones_own_with_something_wrong(gpu: dict[str, Any]) -> None:
    check_hardware(f"gpus/{GPU.name}", as_yaml(gpu))


@settings(max_examples=examples(20))
@given(mutated(BUY))
def test_a_purchase_with_something_wrong(buy: dict[str, Any]) -> None:
    """Its candidates are read; a whole comparison is for the slow tests."""
    files = {"buy.yaml": as_yaml({**buy, "candidates": 5} if buy == BUY else buy)}
    arguments = [*COMPARE, "--budget", "0 d", "--json", "o.json"]
    check(answered(arguments, files), files, "--budget", "candidates", "job")


PLACED = [(place, p) for place in ("model", "cluster", "tier") for p in PAYLOADS]
ON_A_PAGE = [
    pytest.param("source", p, marks=[pytest.mark.slow] * (not set(p) & set("<{")))
    for p in PAYLOADS
]
"""Pages are written: in the first line those of HTML and of templates alone."""


@pytest.mark.parametrize(("place", "payload"), [*PLACED, *ON_A_PAGE])
def test_no_payload_in_a_name_comes_to_life(place: str, payload: str) -> None:
    job = json.loads(json.dumps(JOB))
    if place == "model":
        job["model"] = {**CONFIGS["gpt2"], "name": payload}
        job["layout"] = {"tp": 1, "pp": 1}
    elif place == "cluster":
        job["cluster"]["name"] = payload
    elif place == "tier":
        job["cluster"]["tiers"][0]["name"] = payload
    else:
        job["cluster"]["sources"] = {"*": payload}
    check_job(as_yaml(job), *(("--report", "o.html") if place == "source" else ()))


LONG = "a" * 300
ODD_PATHS = ("", LONG, "a" * 5000, "/dev/zero", ".", "~nobody-of-this-name/x")


@pytest.mark.parametrize("path", ODD_PATHS, ids=lambda text: repr(text[:12]))
@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "{}"],
        ["compare", "{}"],
        ["import", "{}", "--out", "o.yaml"],
        ["emit", "{}", "--target", "megatron", "--out", "o"],
        ["validate", "{}"],
        ["predict", "job.yaml", "--set", "model={}"],
        ["predict", "job.yaml", "--set", "cluster={}"],
        ["predict", "job.yaml", "--calibration", "{}"],
        ["predict", "job.yaml", "--hardware", "{}"],
        ["predict", "job.yaml", "--report", "{}/" + LONG],
        ["predict", "job.yaml", "--json", "{}/" + LONG],
        ["catalog", "gpus", "{}x"],
    ],
    ids=lambda arguments: " ".join(arguments)[:40],
)
def test_a_path_that_leads_nowhere_is_refused(arguments: list[str], path: str) -> None:
    files = {"job.yaml": as_yaml(JOB)}
    answer = answered([word.replace("{}", path) for word in arguments], files)
    assert answer.code == 2, answer.err
    assert "Traceback" not in answer.err
    assert answer.left == {}


@pytest.mark.slow
@settings(max_examples=60)
@given(mutated(JOB), st.sampled_from(("predict", "memory", "explain")))
def test_many_jobs_with_something_wrong(job: dict[str, Any], command: str) -> None:
    files = {"job.yaml": as_yaml(job)}
    arguments = [command, "job.yaml", "--json", "o.json"]
    limit = ["--time-limit", "2"] if command == "explain" else []
    check(answered([*arguments, *limit], files), files)


@pytest.mark.slow
@settings(max_examples=6)
@given(mutated(BUY))
def test_whole_comparisons_with_something_wrong(buy: dict[str, Any]) -> None:
    files = {"buy.yaml": as_yaml(buy)}
    arguments = [*COMPARE, "--json", "o.json", "--report", "o.html"]
    check(answered(arguments, files), files, "candidates", "budget", "deadline")
