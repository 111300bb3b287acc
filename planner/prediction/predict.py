"""Price one given layout: fill in what it leaves open, choose nothing else."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from planner.cost.meshes import Meshes
from planner.cost.pricing import Pricing
from planner.cost.table.mixed import price_meshes
from planner.cost.table.table import CostTable
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.estimate.estimate import estimate
from planner.estimate.layouts import layout_of
from planner.job.fleets import on_pools, room_for
from planner.pipeline.memory_rows import rank_blocks
from planner.pipeline.splits import Counts, step_ns
from planner.planning.sanity import refuse_long
from planner.prediction.refusals import (
    Degrees,
    refuse_formats,
    refuse_host,
    refuse_offload,
    refuse_recompute,
    refuse_schedule,
)
from planner.schedules import SPLIT, V_SHAPED, placement
from planner.search.bounds.paths import even_counts, in_class
from planner.search.mesh_answer import MeshAnswer
from planner.search.solver.only import OnlySplit, only_split
from planner.search.space.blocks import block_counts
from planner.search.space.fleet import divisors
from planner.search.space.switches import chosen_together
from planner.specs.answer.result import RankedPlan
from planner.specs.layouts.axes import FIELDS, MESH, NUMBERS, ORDERS
from planner.specs.layouts.blocks import with_block
from planner.specs.layouts.layout import (
    Layout,
    PartialLayout,
    PoolStages,
    RecomputeRange,
    Stage,
    even_layers,
)
from planner.specs.layouts.recompute import BLOCK_KINDS, block_of
from planner.specs.search import SearchSpec
from planner.specs.table import StageCosts
from planner.verify.legality import rule_violations


def predict(workload: Workload, partial: PartialLayout) -> RankedPlan:
    """Complete a layout and estimate it.

    Absent degrees take the framework's defaults. The inner solver chooses the best
    stages, recompute and rank order. A layout that does not fit is priced, too.

    Args:
        workload: The job.
        partial: The part of the layout that the user fixed.

    Returns:
        The completed layout with its estimate, rank 1.

    Raises:
        BadInputError: Cluster, model or framework rule out the layout, or the host is
            too small for its offload; says which numbers clash.
    """
    workload = replace(workload, search=SearchSpec(space=workload.search.space))
    layout = complete(workload, partial)
    priced = estimate(workload, layout)
    refuse_host(workload, priced.memory)
    return RankedPlan(rank=1, layout=layout, estimate=priced)


def complete(workload: Workload, partial: PartialLayout) -> Layout:
    """Fill in what a layout leaves open.

    Args:
        workload: The job.
        partial: The part of the layout that the user fixed.

    Returns:
        A legal, complete layout.

    Raises:
        BadInputError: No legal layout has those degrees.
    """
    refuse_formats(workload, partial)
    pricing = _as_far_as_given(workload, partial)
    refuse_schedule(pricing, partial)
    degrees = _degrees(pricing, partial)
    refuse_long(pricing, degrees)
    refuse_offload(pricing, degrees)
    if isinstance(partial.stages, tuple):
        kind = partial.recompute or "none"
        stages = tuple(_with_recompute(stage, kind) for stage in partial.stages)
        layout = _skeleton(pricing, degrees, stages, partial.order or ORDERS[0])
        layout = layout.model_copy(update={"offload": pricing.offload})
        _refuse_illegal(pricing, layout)
        return layout
    best = min(_options(pricing, partial, degrees), key=lambda option: option.sort_key)
    return best.layout


def _as_far_as_given(workload: Workload, partial: PartialLayout) -> Pricing:
    """The job with what the given part of a layout sets for its price.

    A layout that was run elsewhere is priced, whoever wrote its files.
    """
    candidate = Pricing.candidate(
        workload.unwritten(), offload=partial.offload, comm_dtype=partial.comm_dtype
    )
    return on_pools(candidate, partial.pools)


def _degrees(workload: Pricing, partial: PartialLayout) -> Degrees:
    """Every degree, from the user or by default."""
    limits, given = workload.framework.limits, partial.given()
    at: Degrees = {axis.name: given.get(axis.name, axis.default) for axis in FIELDS}
    if partial.schedule in V_SHAPED and partial.vpp is None:
        at["vpp"] = 2
    micro_batch = partial.micro_batch or workload.training.together
    each = prod(at[axis.name] for axis in MESH if axis.name != "dp")
    dp = partial.dp or _replicas(workload, partial, each, micro_batch)
    accum = max(workload.sequences // (dp * micro_batch), 1)
    at |= {"dp": dp, "grad_accum": partial.grad_accum or accum}
    at |= {
        axis.name: axis.filled(limits, at)
        for axis in FIELDS
        if axis.filled and axis.name not in given
    }
    return at | {"pools": _own_degrees(partial, at)}


def _own_degrees(partial: PartialLayout, at: Degrees) -> tuple[PoolStages, ...]:
    """Pools of a fleet, each with its own degrees or those of the layout."""
    return tuple(
        pool.model_copy(update={"tp": pool.tp or at["tp"], "dp": pool.dp or at["dp"]})
        for pool in partial.pools
    )


def _replicas(
    workload: Pricing, partial: PartialLayout, each: int, micro_batch: int
) -> int:
    """Replicas that fill the fleet, or the most that divide the batch if none do."""
    whole = max(workload.gpus // each, 1)
    if workload.mixed:
        whole = room_for(workload, partial.pools, each // (partial.pp or 1))
    sequences = workload.sequences // micro_batch
    if (whole * each == workload.gpus and not workload.mixed) or sequences < 1:
        return whole
    return max(dp for dp in divisors(sequences) if dp <= whole)


def _with_recompute(stage: Stage, kind: str) -> Stage:
    """Layers without a recompute kind take the given one."""
    if stage.recompute or stage.layers == 0:
        return stage
    if block := block_of(kind):
        return with_block(stage.layers, block)
    whole = RecomputeRange(start=0, stop=stage.layers, kind=kind)
    return Stage(layers=stage.layers, recompute=(whole,))


def _skeleton(
    workload: Pricing,
    degrees: Degrees,
    stages: tuple[Stage, ...],
    order: str,
) -> Layout:
    layout = Layout.model_validate({**degrees, "stages": stages, "order": order})
    return layout.model_copy(update={"comm_dtype": workload.sends})


def _refuse_illegal(workload: Workload, layout: Layout) -> None:
    wrong = rule_violations(workload, layout)
    if wrong:
        raise BadInputError("; ".join(wrong[:3]), field="layout", value=_shown(layout))


def _shown(layout: Layout) -> str:
    told = [axis for axis in NUMBERS if axis.name != "zero_stage"]
    return ",".join(f"{axis.name}={axis.of(layout)}" for axis in told)


@dataclass(frozen=True)
class _Option:
    """One way to complete a layout, with a key to compare ways."""

    layout: Layout
    sort_key: tuple[bool, float, int, int]


def _options(
    workload: Pricing, partial: PartialLayout, degrees: Degrees
) -> Iterator[_Option]:
    """Rank orders times recompute kinds, each with its best split."""
    limits = workload.framework.limits
    orders = (partial.order,) if partial.order else limits.orders
    menu = _menu(workload, partial)
    refuse_recompute(workload, menu)
    legal = [
        order
        for order in orders
        if not rule_violations(workload, _probe(workload, degrees, order, menu[0]))
    ]
    if not legal:
        _refuse_illegal(workload, _probe(workload, degrees, orders[0], menu[0]))
    every = BLOCK_KINDS if block_of(menu[0]) else menu
    tied = limits.recompute_scope == "plan" and every is menu
    for rank, order in enumerate(legal):
        tables: dict[frozenset[str] | None, CostTable] = {}
        for entry, kinds in enumerate(chosen_together(workload, every, tied=tied)):
            probe = _probe(workload, degrees, order, kinds[0])
            job = replace(workload, without=Pricing.of(workload, probe).without)
            if job.without not in tables:
                mesh = Meshes.of_layout(probe)
                tables[job.without] = price_meshes(job, mesh, every)
            choice = tuple(every.index(kind) for kind in kinds)
            yield _option(tables[job.without], degrees, choice, partial, (rank, entry))


def _menu(workload: Workload, partial: PartialLayout) -> tuple[str, ...]:
    """Recompute kinds to choose from: none where the schedule allows no other."""
    limits = workload.framework.limits
    if partial.recompute is not None:
        return (partial.recompute,)
    if partial.schedule in SPLIT and not limits.recomputes_split:
        return ("none",)
    return limits.recompute


def _probe(workload: Pricing, degrees: Degrees, order: str, kind: str) -> Layout:
    """The layout with an even split, to check that it is legal at all."""
    shape = int(degrees["pp"]), int(degrees["vpp"])
    stages = placement(str(degrees["schedule"]), *shape).depth
    layers = even_layers(workload.model.layers, stages)
    even = tuple(_with_recompute(Stage(layers=count), kind) for count in layers)
    return _skeleton(workload, degrees, even, order)


def _option(
    table: CostTable,
    degrees: Degrees,
    choice: tuple[int, ...],
    partial: PartialLayout,
    tie: tuple[int, int],
) -> _Option:
    """Best split of one order and recompute choice; the even split if none fits."""
    hosting = tuple(len(pool.stages) for pool in degrees["pools"])
    costs = table.stage_costs(
        0,
        schedule=degrees["schedule"],
        vpp=degrees["vpp"],
        menu=choice,
        block=block_of(partial.recompute or ""),
        hosting=hosting,
    )
    counts, fits = _split(costs, even=partial.stages == "even")
    layout = layout_of(
        table.workload,
        table.meshes,
        0,
        schedule=costs.schedule,
        vpp=costs.vpp,
        menu=costs.menu,
        counts=counts,
        block=costs.block > 0,
        hosting=hosting,
    )
    step = step_ns(costs, counts) * costs.slowdown
    over = 0.0 if fits else float(_excess(costs, counts))
    return _Option(layout, (not fits, over or step, *tie))


def _excess(costs: StageCosts, counts: Counts) -> int:
    """Blocks by which the fullest rank exceeds its budget; negative if it fits."""
    return int((rank_blocks(costs, counts) - np.array(costs.budgets)).max())


def _split(costs: StageCosts, *, even: bool) -> tuple[Counts, bool]:
    """The solver's split, or the even split where asked for or nothing fits."""
    counts = block_counts(costs) if costs.block else even_counts(costs)
    room = _excess(costs, counts) <= 0
    if even or costs.block or not in_class(costs, counts):
        return counts, room
    answer = _answered(costs)
    if answer.counts is None:
        return counts, room
    return answer.counts, True


def _answered(costs: StageCosts) -> MeshAnswer:
    """Best split of a layout, by the solver where there is a choice."""
    only = only_split(costs)
    if only is not None:
        return OnlySplit(costs, only).advance(None)
    # OR-Tools takes longer to import than a layout takes to price.
    from planner.search.solver.solve import solve_mesh  # noqa: PLC0415

    return solve_mesh(costs)
