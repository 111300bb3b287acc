"""Adapters have the parameters that PEFT makes, to the last one."""

from pathlib import Path
from typing import Any

import pytest
from hugging_face import described, small, theirs

from planner.cost.meshes import Meshes
from planner.cost.parameters.adapters import adapter_parameters
from planner.job.resolve import resolve
from planner.specs.job import JobSpec

peft = pytest.importorskip("peft")
pytestmark = pytest.mark.oracle

MODELS = ("llama-3.1-8b", "qwen2.5-7b")
ONE = Meshes.from_rows([(1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 0)])


def ours(model: dict[str, Any], lora: dict[str, Any]) -> float:
    """Parameters that train, of all layers."""
    spec = {
        "model": model,
        "cluster": {"name": "one", "nodes": 1, "node": "dgx-h100"},
        "training": {"seq_len": 64, "global_batch": 8, "method": "lora", "lora": lora},
        "framework": "accelerate",
    }
    job = JobSpec.model_validate(spec)
    (workload,) = resolve(job, file="job.yaml", base=Path())
    return sum(
        count * float(adapter_parameters(workload, kind, ONE)[0][0])
        for kind, count in workload.model.runs
    )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("variant", [{}, {"dora": True}, {"rslora": True}])
def test_adapters_count_as_those_of_peft(name: str, variant: dict[str, bool]) -> None:
    config = small(name)
    words = {f"use_{word}": on for word, on in variant.items()}
    chosen = peft.LoraConfig(r=4, target_modules="all-linear", **words)
    model = peft.get_peft_model(theirs(name, config, "cpu"), chosen)
    trained = sum(w.numel() for w in model.parameters() if w.requires_grad)
    family = described(name, config).model_type
    lora = {"rank": 4, "targets": "all-linear", **variant}
    assert ours({"name": "small", "model_type": family, **config}, lora) == trained
