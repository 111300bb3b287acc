"""Presets say what their weights mean, and launch files repeat it."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.job.resolve import resolve
from planner.launch import emit, read_plan
from planner.models import preset, preset_names, read_preset
from planner.planning.prediction.predict import predict
from planner.specs.answer.result import Plan
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout

MEANING: dict[str, list[str]] = yaml.safe_load(
    Path(__file__).with_name("meaning.yaml").read_text()
)
EPSILONS = "rms_norm_eps layer_norm_epsilon layer_norm_eps norm_epsilon norm_eps"
PUBLISHED = {
    ("llama-7b", "rms_norm_eps"): 1e-6,
    ("llama-65b", "rms_norm_eps"): 1e-5,
    ("qwen2.5-7b", "rms_norm_eps"): 1e-6,
    ("qwen2.5-14b", "rms_norm_eps"): 1e-5,
    ("gemma-2-27b", "query_pre_attn_scalar"): 144,
    ("gemma-3-27b", "query_pre_attn_scalar"): 168,
    ("mistral-small-24b", "rope_theta"): 1e8,
    ("deepseek-v2", "routed_scaling_factor"): 16.0,
    ("deepseek-v3", "routed_scaling_factor"): 2.5,
    ("olmo-2-7b", "rms_norm_eps"): 1e-6,
    ("command-r-plus", "rope_theta"): 75e6,
}
"""Values that a family's default in transformers is not. [-]"""
FLAVOURS = ("llama-3.1-8b", "qwen3-8b", "qwen3-30b-a3b")
LATENT = ("deepseek-v2-lite", "deepseek-v3")
GROUPED = ("llama-3.1-8b", "mistral-nemo-12b", "qwen2.5-7b", "qwen3-8b", "minitron-8b")
ROUTED = ("mixtral-8x7b", "qwen3-30b-a3b")
OTHERS = ("gpt2-xl",)


def test_every_preset_says_what_its_weights_mean() -> None:
    lacking = {
        name: [x for x in MEANING[preset(name).family] if x not in fields]
        for name in preset_names()
        for fields in [read_preset(name).config]
    }
    assert {name: names for name, names in lacking.items() if names} == {}


def test_every_family_has_its_list() -> None:
    assert {preset(name).family for name in preset_names()} == MEANING.keys()


@pytest.mark.parametrize(("name", "field"), PUBLISHED)
def test_a_preset_has_the_published_value(name: str, field: str) -> None:
    assert read_preset(name).config[field] == PUBLISHED[name, field]


def test_deepseek_v2_stretches_its_positions() -> None:
    for name in ("deepseek-v2", "deepseek-v2-lite"):
        scaling = read_preset(name).config["rope_scaling"]
        assert scaling["type"] == "yarn"
        assert (scaling["factor"], scaling["mscale"]) == (40, 0.707)


def folder(model: str, target: str, scratch: Path) -> tuple[dict[str, str], Any]:
    """Files of a plan of a preset for a target, and the preset's fields."""
    framework = "megatron" if target.startswith("megatron") else target
    fields: dict[str, Any] = {
        "model": model,
        "cluster": {"node": "dgx-h100", "nodes": 16},
        "training": {"seq_len": 1024, "global_batch": 128},
        "framework": framework,
    }
    spec = JobSpec.model_validate(fields)
    (workload,) = resolve(spec, file=model, base=Path())
    given = {"micro_batch": 1, "recompute": "none", "stages": "even"}
    priced = predict(workload, PartialLayout.model_validate(given))
    its = {"name": model, **read_preset(model).config}
    plan = Plan.model_validate(
        {
            "schema": "planner/plan@1",
            "spec": spec.model_dump(mode="json", by_alias=True) | {"model": its},
            "layout": priced.layout.model_dump(mode="json", by_alias=True),
            "estimate": priced.estimate.model_dump(mode="json", by_alias=True),
            "versions": {"planner": "0"},
        }
    )
    path = scratch / "plan.json"
    path.write_text(plan.model_dump_json(by_alias=True))
    return {file.name: file.text for file in emit(read_plan(path), target)}, its


def epsilon_of(its: dict[str, Any]) -> float:
    (found,) = [float(its[name]) for name in EPSILONS.split() if name in its]
    return found


@pytest.mark.parametrize("model", [*GROUPED, *LATENT, *ROUTED, *OTHERS])
def test_megatron_is_told(model: str, tmp_path: Path) -> None:
    files, its = folder(model, "megatron", tmp_path)
    told = yaml.safe_load(files["arguments.yaml"])["MODEL_ARGS"]
    assert float(told["--norm-epsilon"]) == epsilon_of(its)
    if "rope_theta" in its:
        assert told["--rotary-base"] == round(its["rope_theta"])
    if model in LATENT:
        scaling = its["rope_scaling"]
        assert told["--rope-type"] == "yarn"
        assert told["--rotary-scaling-factor"] == scaling["factor"]
        assert told["--mscale-all-dim"] == scaling["mscale_all_dim"]
        factor = its["routed_scaling_factor"]
        assert told["--moe-router-topk-scaling-factor"] == factor
    rows = int(re.search(r"--padded-vocab-size (\d+)", files["arguments.sh"])[1])
    assert rows >= its["vocab_size"]
    assert rows % 128 == 0
    assert rows - its["vocab_size"] < 128


@pytest.mark.parametrize("model", ["llama-3.1-8b", "qwen3-8b", *LATENT, *ROUTED])
def test_torchtitan_is_told(model: str, tmp_path: Path) -> None:
    """Where the model is no flavour of torchtitan's own the numbers are in the code."""
    files, its = folder(model, "torchtitan", tmp_path)
    calls = [
        {k.arg: k.value for k in node.keywords}
        for text in files.values()
        if "model_spec" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
    ]
    own = [one for one in calls if {"eps", "theta"} <= one.keys()]
    # A flavour of torchtitan's own is taken where its numbers are the preset's.
    assert bool(own) == (model not in FLAVOURS)
    for one in own:
        assert ast.literal_eval(one["eps"]) == epsilon_of(its)
        assert ast.literal_eval(one["theta"]) == its["rope_theta"]


@pytest.mark.parametrize("target", ["accelerate", "deepspeed", "megatron-bridge"])
@pytest.mark.parametrize("model", ["gemma-2-9b", "qwen2.5-7b", "llama-3.1-8b"])
def test_a_config_of_hugging_face_is_the_presets(
    model: str, target: str, tmp_path: Path
) -> None:
    files, its = folder(model, target, tmp_path)
    name = "model/config.json" if target == "megatron-bridge" else "config.json"
    told = json.loads(files[name])
    assert told == {key: value for key, value in its.items() if key != "name"}
