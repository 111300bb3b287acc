"""Converts between layouts, as people write them, and rows of the table."""

from collections.abc import Sequence
from dataclasses import fields
from typing import cast

import numpy as np

from planner.cost.meshes import Meshes
from planner.cost.pipeline.splits import Counts
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.specs.layouts.axes import ORDERS
from planner.specs.layouts.context import CP_KINDS
from planner.specs.layouts.layout import (
    Layout,
    PoolStages,
    RecomputeRange,
    Schedule,
    Stage,
)


def layout_of(
    pricing: Pricing,
    meshes: Meshes,
    row: int,
    *,
    schedule: str,
    vpp: int,
    menu: tuple[str, ...],
    counts: Counts,
    hosting: Sequence[int] = (),
    block: bool = False,
) -> Layout:
    """Write one mesh and its stage split as a layout.

    Args:
        block: The menu's first entry holds for every stage's first layers. [bool]
    """
    at = {f.name: int(getattr(meshes, f.name)[row]) for f in fields(meshes)}
    return Layout(
        tp=at["tp"],
        sp=bool(at["sp"]),
        pp=at["pp"],
        vpp=vpp,
        cp=at["cp"],
        cp_kind=CP_KINDS[at["cp_kind"]],
        ep=at["ep"],
        etp=at["etp"],
        dp=at["dp"],
        dp_shard=at["dp_shard"],
        zero_stage=at["zero"],
        hpz=at["hpz"],
        micro_batch=at["micro_batch"],
        grad_accum=at["micro_batches"],
        schedule=cast("Schedule", schedule),
        order=ORDERS[at["order"]],
        comm_dtype=pricing.sends,
        offload=pricing.offload,
        stages=tuple(
            _stage(of_stage.sum(axis=0, keepdims=True) if block else of_stage, menu)
            for of_stage in counts
        ),
        pools=_pools(pricing, at, hosting),
    )


def _pools(
    pricing: Pricing, at: dict[str, int], hosting: Sequence[int]
) -> tuple[PoolStages, ...]:
    """Ranks of the pipeline that each pool of a mixed fleet hosts."""
    hosts = hosting or [at["pp"]] * len(pricing.stage_pools)
    first, pools = 0, []
    for pool, ranks in zip(pricing.stage_pools, hosts, strict=True):
        stages = tuple(range(first, first + ranks))
        tp, dp = int(at["tp"] * pool.wider), int(at["dp"] * pool.more)
        pools += [PoolStages(pool=pool.name, stages=stages, tp=tp, dp=dp)]
        first += ranks
    return tuple(pools)


def _stage(of_stage: Counts, menu: tuple[str, ...]) -> Stage:
    """Layers of one stage: kinds in model order, within a kind in menu order."""
    ranges, at = [], 0
    for of_kind in of_stage:
        for entry, count in enumerate(of_kind.tolist()):
            if count:
                part = RecomputeRange(start=at, stop=at + count, kind=menu[entry])
                ranges.append(part)
                at += count
    return Stage(layers=at, recompute=tuple(_merged(ranges)))


def _merged(ranges: list[RecomputeRange]) -> list[RecomputeRange]:
    """Join neighbours of one kind."""
    merged: list[RecomputeRange] = []
    for part in ranges:
        if merged and merged[-1].kind == part.kind:
            merged[-1] = RecomputeRange(
                start=merged[-1].start, stop=part.stop, kind=part.kind
            )
        else:
            merged.append(part)
    return merged


def counts_of(workload: Workload, layout: Layout, menu: tuple[str, ...]) -> Counts:
    """Count a layout's layers by stage, kind and menu entry.

    Returns:
        Counts. [1], shape (stages, kinds, menu)
    """
    of_layer = np.repeat(
        [kind for kind, _ in workload.runs], [count for _, count in workload.runs]
    )
    shape = (len(layout.stages), len(workload.kinds), len(menu))
    counts = np.zeros(shape, dtype=np.int64)
    at = 0
    for index, stage in enumerate(layout.stages):
        for part in stage.recompute:
            for layer in range(at + part.start, at + part.stop):
                counts[index, of_layer[layer], menu.index(part.kind)] += 1
        at += stage.layers
    return counts


def recompute_kinds(layout: Layout) -> tuple[str, ...]:
    """Recompute kinds that a layout uses, in order of first use."""
    names = (part.kind for stage in layout.stages for part in stage.recompute)
    return tuple(dict.fromkeys(names)) or ("none",)
