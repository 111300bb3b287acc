"""Plans of many layouts for torchtitan, without a search."""

import random
from pathlib import Path
from typing import Any

from many_plans import drawn_stages, many_plans

from planner.launch.read_plan import PlanFile

STATES = ("parameters", "gradients", "optimizer")


def torchtitan_plans(folder: Path, count: int, seed: int = 7) -> list[PlanFile]:
    """Legal plans of one job.

    Args:
        folder: A golden folder, for the job. [-]
        count: How many at most. [1]
        seed: Of the draw. [1]

    Returns:
        Plans, no layout twice. [-]
    """
    return many_plans(folder, count, seed, draw=_fields)


def _fields(found: PlanFile, rng: random.Random) -> dict[str, Any]:
    gpus = found.plan.layout.gpus
    tp, pp = (rng.choice((1, 2, 4, 8)) for _ in range(2))
    cp = rng.choice((1, 1, 2, 4))
    if found.pricing.model.mtp_layers:
        # Multi-token prediction has neither a pipeline nor context ranks.
        pp = cp = 1
    dp = gpus // (tp * pp * cp)
    vpp = rng.choice((1, 1, 2, 4)) if pp > 1 else 1
    micro, zero = rng.choice((1, 1, 2, 4)), rng.choice((2, 3, 3))
    layers, experts = found.pricing.model.layers, found.pricing.model
    # Without stages or replicas there is one order, and one schedule.
    turned = min(pp, dp) > 1 and rng.random() < 0.3
    schedules = {1: ("1f1b", "gpipe"), 2: ("interleaved", "zb-v", "dualpipe-v")}
    states = dict.fromkeys(STATES, 1.0) if rng.random() < 0.2 else {}
    return {
        "tp": tp,
        "sp": tp > 1 and rng.random() < 0.8,
        "pp": pp,
        "vpp": vpp,
        "cp": cp,
        "ep": rng.choice((1, 2, 4, 8)) if experts.expert_parameters else 1,
        "dp": dp,
        "dp_shard": dp * cp // rng.choice((1, 1, 2, 4)),
        "zero_stage": 3 if states else zero,
        "micro_batch": micro,
        "grad_accum": found.pricing.training.sequences // (dp * micro),
        "schedule": rng.choice(schedules.get(vpp, ("interleaved",)))
        if pp > 1
        else "1f1b",
        "order": "tp-cp-ep-pp-dp" if turned else "tp-cp-ep-dp-pp",
        "comm_dtype": found.pricing.framework.own_formats.model_dump(),
        "offload": states,
        "stages": drawn_stages(layers, pp * vpp, rng),
    }
