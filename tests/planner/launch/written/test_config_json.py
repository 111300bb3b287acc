"""A config.json of every family goes through plan and emit, whatever its numbers."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tiers import some

from planner.cost.estimate.estimate import estimate
from planner.errors import BadInputError, UnsupportedPlanError
from planner.hardware.reading.files import SHIPPED
from planner.job.loading import Job, from_spec
from planner.launch import emit, read_plan
from planner.models import preset, preset_names, preset_sizes, read_preset
from planner.planning.prediction.predict import complete
from planner.specs.answer.estimate import Estimate
from planner.specs.answer.result import Plan
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout

TARGETS = ("megatron", "torchtitan", "deepspeed", "accelerate")
SMALL = {"rms_norm_eps": 1e-05, "layer_norm_epsilon": 1e-05, "initializer_range": 1e-06}
"""Numbers that json.dumps writes without a point, as Hugging Face does. [1]"""


@cache
def families() -> dict[str, str]:
    """The smallest preset of every family. [text]."""
    sizes = preset_sizes()
    names = sorted(preset_names(), key=lambda name: sizes[name], reverse=True)
    return {preset(name).family: name for name in names}


def job_of(config: dict[str, Any], framework: str, folder: Path) -> Job:
    (folder / "config.json").write_text(json.dumps(config))
    assert "e-0" in (folder / "config.json").read_text()
    file = folder / "job.yaml"
    file.write_text("")
    spec = JobSpec.model_validate(
        {
            "model": "config.json",
            "cluster": "dgx-a100-1-node",
            "training": {"seq_len": 512, "global_batch": 8},
            "framework": framework,
        }
    )
    return from_spec(spec, str(file), file.parent, catalog=SHIPPED)


@cache
def priced(framework: str) -> Estimate:
    """Some estimate of the framework: what is written does not hang on it."""
    spec = JobSpec.model_validate(
        {
            "model": "gpt2",
            "cluster": "dgx-a100-1-node",
            "training": {"seq_len": 512, "global_batch": 8},
            "framework": framework,
        }
    )
    (workload,) = from_spec(spec, "", Path(), catalog=SHIPPED).workloads
    return estimate(workload, complete(workload, PartialLayout(tp=1)))


def check(family: str, framework: str, folder: Path) -> None:
    """It is emitted, or refused for a feature of the model that is named."""
    job = job_of(read_preset(families()[family]).config | SMALL, framework, folder)
    (workload,) = job.workloads
    layout = complete(workload, PartialLayout.model_validate({"recompute": "none"}))
    plan = Plan(
        spec=job.resolved(None),
        layout=layout,
        estimate=priced(framework),
        versions={"planner": "0"},
    )
    path = folder / "plan.json"
    path.write_text(plan.model_dump_json(by_alias=True))
    try:
        files = {file.name: file.text for file in emit(read_plan(path), framework)}
    except (UnsupportedPlanError, BadInputError) as error:
        assert "spec." in str(error) or "layout." in str(error)  # noqa: PT017
        return
    written = files.get("config.json", json.dumps(SMALL))
    assert json.loads(written)["rms_norm_eps"] == SMALL["rms_norm_eps"]


@pytest.mark.parametrize("family", some(sorted(families()), 3))
def test_a_config_of_every_family_is_emitted_or_refused_by_name(
    family: str, tmp_path: Path
) -> None:
    turn = sorted(families()).index(family)
    check(family, TARGETS[turn % len(TARGETS)], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(families()))
def test_a_config_of_every_family_under_all_targets(
    family: str, tmp_path: Path
) -> None:
    for framework in TARGETS:
        check(family, framework, tmp_path)


def test_broken_json_is_told_as_json(tmp_path: Path) -> None:
    from planner.specs.reading.read import read_spec  # noqa: PLC0415  # beside its only use

    path = tmp_path / "job.json"
    path.write_text('{"model": ')
    with pytest.raises(BadInputError, match="is no JSON"):
        read_spec(path)
