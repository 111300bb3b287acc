"""Plans of a model of two layers for accelerate, priced without a search."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from golden_folders import ROOT
from pydantic import ValidationError
from target_gaps import accelerate as gaps

from planner.job.resolve import resolve
from planner.launch.brief import Brief, Gap
from planner.launch.read_plan import PlanFile, read_plan
from planner.planning.prediction.predict import predict
from planner.specs.answer.result import Plan
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import Layout, PartialLayout
from planner.verify.legality import rule_violations

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


Gaps = Callable[[Brief], Sequence[Gap]]
"""Parts of a plan that a target has no words for."""
DRAWS = 4000
"""Layouts that are drawn before a job is given up. [1]"""


def drawn_plans(
    folder: Path, count: int, seed: int = 7, gaps: Gaps = gaps
) -> list[PlanFile]:
    """Legal plans of one golden folder's job that have words, no layout twice.

    Args:
        folder: A golden folder. [-]
        count: How many at most. [1]
        seed: Of the draw. [1]
        gaps: What the target has no words for. [-]

    Returns:
        Plans. [-]
    """
    found = read_plan(folder / "plan.json")
    chosen: dict[str, PlanFile] = {}
    for layout in _layouts(found, random.Random(seed)):  # noqa: S311
        key = layout.model_dump_json()
        if key in chosen or rule_violations(found.pricing, layout):
            continue
        plan = replace(found, plan=found.plan.model_copy(update={"layout": layout}))
        if not gaps(plan.brief):
            chosen[key] = plan
        if len(chosen) == count:
            break
    return list(chosen.values())


def _layouts(found: PlanFile, rng: random.Random) -> Iterator[Layout]:
    for _ in range(DRAWS):
        try:
            yield Layout.model_validate(_fields(found, rng))
        except (ValidationError, ZeroDivisionError):
            continue


def _fields(found: PlanFile, rng: random.Random) -> dict[str, Any]:
    """Fields of a layout of the job's GPUs, legal or not."""
    limits = found.pricing.framework.limits
    gpus, layers = found.plan.layout.gpus, found.pricing.model.layers
    tp, cp = rng.choice((1, 1, 2, 4)), rng.choice((1, 1, 2, 8))
    dp, micro = gpus // (tp * cp), rng.choice((1, 2, 4))
    zero = rng.choice(limits.zero_stages)
    kind = rng.choice(("none", "full"))
    return {
        "tp": tp,
        "cp": cp,
        "cp_kind": rng.choice(limits.cp_kinds) if cp > 1 else _kind(found),
        "dp": dp,
        "dp_shard": dp * cp // rng.choice((1, 1, 2, 4)) if zero else 1,
        "zero_stage": zero,
        "hpz": rng.choice((1, 2, 4)) if zero == 3 and limits.hpz else 1,
        "micro_batch": micro,
        "grad_accum": found.pricing.training.sequences // (dp * micro),
        "comm_dtype": found.plan.layout.comm_dtype.model_dump(),
        "offload": _offload(found, rng),
        "stages": [
            {"layers": layers, "recompute": [{"from": 0, "to": layers, "kind": kind}]}
        ],
    }


def _kind(found: PlanFile) -> str:
    """What a layout without context ranks has: the golden plan's."""
    its = found.plan.layout
    return its.cp_kind if its.cp == 1 else "all-gather"


def _offload(found: PlanFile, rng: random.Random) -> dict[str, float]:
    groups = sorted(found.pricing.framework.limits.offload)
    chosen = rng.choice(["", "", *groups])
    return {name: 1.0 for name in chosen.split("+") if name}


def jobs(target: str = "accelerate") -> list[Path]:
    """Golden folders of a target. [-]."""
    return sorted(path.parent for path in (ROOT / target).glob("*/plan.json"))
