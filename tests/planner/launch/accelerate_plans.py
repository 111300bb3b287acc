"""Plans of a model of two layers for accelerate, priced without a search."""

import json
from pathlib import Path
from typing import Any

from planner.launch.read_plan import PlanFile, read_plan
from planner.predict import predict
from planner.resolve import resolve
from planner.specs.job import JobSpec
from planner.specs.layout import PartialLayout
from planner.specs.result import Plan

MODEL = {
    "name": "tiny",
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 257,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
}
CLUSTERS = {1: "rtx-4090-1", 2: "a6000-2", 4: "rtx-4090-4", 8: "dgx-a100-1-node"}


def plan_of(gpus: int, layout: dict[str, Any], **spec: Any) -> Plan:
    """A priced plan; `training` and `stack` are those of the spec.

    Args:
        gpus: Ranks: 1, 2, 4 or 8. [1]
        layout: Fields of a layout. [-]
        spec: Blocks of a job, laid over the tiny one's. [-]

    Returns:
        The plan. [-]
    """
    training = {"seq_len": 32, "global_batch": 8} | spec.pop("training", {})
    fields = {
        "model": MODEL,
        "cluster": CLUSTERS[gpus],
        "training": training,
        "framework": "accelerate",
        **spec,
    }
    job = JobSpec.model_validate(fields)
    (workload,) = resolve(job, file="tiny", base=Path())
    given = {"micro_batch": 1, "recompute": "none"} | layout
    priced = predict(workload, PartialLayout.model_validate(given))
    return Plan.model_validate(
        {
            "schema": "planner/plan@1",
            "spec": job.model_dump(mode="json", by_alias=True) | {"model": MODEL},
            "layout": priced.layout.model_dump(mode="json", by_alias=True),
            "estimate": priced.estimate.model_dump(mode="json", by_alias=True),
            "versions": {"planner": "0"},
        }
    )


def filed(plan: Plan, folder: Path) -> PlanFile:
    """A plan, written and read back as `planner emit` reads it.

    Args:
        plan: The plan. [-]
        folder: For its file. [-]

    Returns:
        The plan with its job. [-]
    """
    path = folder / "plan.json"
    path.write_text(json.dumps(plan.model_dump(mode="json", by_alias=True), indent=2))
    return read_plan(path)
