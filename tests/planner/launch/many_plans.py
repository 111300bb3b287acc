"""Plans of many layouts without a search: a golden plan's job, another layout."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from golden_folders import ROOT
from pydantic import ValidationError

from planner.launch import read_plan
from planner.launch.read_plan import PlanFile
from planner.specs.layouts.layout import Layout, even_layers
from planner.verify.legality import rule_violations

DRAWS = 6000
"""Layouts that are drawn before a job is given up. [1]"""


Draw = Callable[[PlanFile, random.Random], dict[str, Any]]
"""Fields of a layout of the job's GPUs, legal or not."""


def many_plans(
    folder: Path, count: int, seed: int = 7, *, draw: Draw | None = None
) -> list[PlanFile]:
    """Legal plans of one job.

    Args:
        folder: A golden folder, for the job. [-]
        count: How many at most. [1]
        seed: Of the draw. [1]
        draw: Of one layout; None for Megatron's. [-]

    Returns:
        Plans, no layout twice. [-]
    """
    found = read_plan(folder / "plan.json")
    chosen: dict[str, PlanFile] = {}
    rng = random.Random(seed)  # noqa: S311
    for layout in _drawn(found, rng, draw or _fields):
        key = layout.model_dump_json()
        if key not in chosen and not rule_violations(found.pricing, layout):
            plan = found.plan.model_copy(update={"layout": layout})
            chosen[key] = replace(found, plan=plan)
        if len(chosen) == count:
            break
    return list(chosen.values())


def _drawn(found: PlanFile, rng: random.Random, draw: Draw) -> Iterator[Layout]:
    for _ in range(DRAWS):
        try:
            yield Layout.model_validate(draw(found, rng))
        except (ValidationError, ZeroDivisionError):
            continue


def _fields(found: PlanFile, rng: random.Random) -> dict[str, Any]:
    """Fields of a layout of the job's GPUs, legal or not."""
    gpus = found.plan.layout.gpus
    tp, pp, cp = (rng.choice(n) for n in ((1, 2, 4, 8), (1, 2, 4, 8), (1, 1, 2, 4)))
    dp = gpus // (tp * pp * cp)
    vpp = rng.choice((1, 1, 2, 4)) if pp > 1 else 1
    experts = bool(found.pricing.model.expert_parameters)
    micro = rng.choice((1, 1, 2, 4))
    zero = rng.choice((0, 1, 1))
    layers = found.pricing.model.layers
    quarter = layers // 4 / layers
    shard = dp * cp // rng.choice((1, 1, 2)) if zero else 1
    return {
        "tp": tp,
        "sp": tp > 1 and rng.random() < 0.8,
        "pp": pp,
        "vpp": vpp,
        "cp": cp,
        "cp_kind": rng.choice(("ring", "all-gather")) if cp > 1 else "all-gather",
        "ep": rng.choice((1, 2, 4, 8)) if experts else 1,
        "etp": rng.choice((1, tp)) if experts else 1,
        "dp": dp,
        "dp_shard": shard,
        "zero_stage": zero,
        "micro_batch": micro,
        "grad_accum": found.pricing.training.sequences // (dp * micro),
        "schedule": "interleaved" if vpp > 1 else "1f1b",
        "order": rng.choice(("tp-cp-ep-dp-pp", "tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp")),
        "offload": {
            "optimizer": rng.choice((0, 0, 0, 0.5, 1)) if zero else 0,
            "activations": rng.choice((0, 0, quarter)) if pp == 1 else 0,
        },
        "stages": drawn_stages(layers, pp * vpp, rng),
    }


def drawn_stages(layers: int, stages: int, rng: random.Random) -> list[dict[str, Any]]:
    """Even stages, or a layer of the last moved to another, with one recompute."""
    counts = list(even_layers(layers, stages))
    if stages > 1 and rng.random() < 0.5:
        counts[-1] -= 1
        counts[rng.randrange(stages - 1)] += 1
    kind = rng.choice(("none", "selective", "full"))
    return [
        {
            "layers": count,
            "recompute": [{"from": 0, "to": count, "kind": kind}] if count else [],
        }
        for count in counts
    ]


def jobs(target: str) -> list[Path]:
    """Golden folders of a target. [-]."""
    return sorted(path.parent for path in (ROOT / target).glob("*/plan.json"))
