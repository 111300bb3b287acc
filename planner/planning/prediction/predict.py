"""Price one given layout: fill in what it leaves open, choose nothing else."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from planner.cost.estimate.estimate import estimate
from planner.cost.estimate.layouts import layout_of
from planner.cost.meshes import Meshes
from planner.cost.pipeline.memory_rows import rank_blocks
from planner.cost.pipeline.splits import Counts, step_ns
from planner.cost.pricing import Pricing
from planner.cost.table.mixed import price_meshes
from planner.cost.table.table import CostTable
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.job.fleets import on_pools, room_for
from planner.planning.prediction.best_split import best_splits
from planner.planning.prediction.refusals import (
    Degrees,
    refuse_formats,
    refuse_host,
    refuse_offload,
    refuse_recompute,
    refuse_schedule,
)
from planner.planning.sanity import refuse_long
from planner.schedules import SPLIT, V_SHAPED, placement
from planner.search.bounds.paths import even_counts, in_class
from planner.search.space.blocks import block_counts
from planner.search.space.fleet import divisors
from planner.search.space.switches import chosen_together
from planner.search.stop import after
from planner.specs.answer.result import RankedPlan
from planner.specs.layouts.axes import FIELDS, MESH, NUMBERS, ORDERS
from planner.specs.layouts.blocks import with_recompute
from planner.specs.layouts.layout import (
    Layout,
    PartialLayout,
    PoolStages,
    Stage,
    even_layers,
)
from planner.specs.layouts.recompute import BLOCK_KINDS, block_of
from planner.specs.table import StageCosts
from planner.verify.legality import rule_violations

MOST_TIME = 60.0
"""Most time to choose stages, recompute and rank order, whose work is limited too. [s]
"""


@dataclass(frozen=True)
class Completed:
    """A layout with everything filled in.

    Attributes:
        layout: The layout. [-]
        gap: Most by which other stages, recompute and rank order of the same degrees
            may be faster; 0 where they are proven to be no faster. [1]
    """

    layout: Layout
    gap: float = 0.0


def predict(workload: Workload, partial: PartialLayout) -> RankedPlan:
    """Complete a layout and estimate it.

    Absent degrees take the framework's defaults. The inner solver chooses the best
    stages, recompute and rank order. A layout that does not fit is priced, too.

    Raises:
        BadInputError: Cluster, model or framework rule out the layout, or the host is
            too small for its offload; says which numbers clash.
    """
    free = replace(workload, search=workload.search.unlimited())
    return predict_limited(free, partial)


def predict_limited(workload: Workload, partial: PartialLayout) -> RankedPlan:
    """Complete a layout within the limits of the search block, and estimate it.

    Raises:
        BadInputError: As by :func:`predict`, and where a limit rules the layout out.
    """
    completed = _completed(workload, partial)
    priced = estimate(workload, completed.layout)
    refuse_host(workload, priced.memory)
    return RankedPlan(
        rank=1,
        layout=completed.layout,
        estimate=priced,
        gap=completed.gap,
        settings=Pricing.of(workload, completed.layout).chosen,
    )


def complete(workload: Workload, partial: PartialLayout) -> Layout:
    """Fill in what a layout leaves open.

    Raises:
        BadInputError: No legal layout has those degrees.
    """
    return _completed(workload, partial).layout


def _completed(workload: Workload, partial: PartialLayout) -> Completed:
    refuse_formats(workload, partial)
    pricing = _as_far_as_given(workload, partial)
    refuse_schedule(pricing, partial)
    degrees = _degrees(pricing, partial)
    refuse_long(pricing, degrees)
    refuse_offload(pricing, degrees)
    if isinstance(partial.stages, tuple):
        kind = partial.recompute or "none"
        stages = tuple(with_recompute(stage, kind) for stage in partial.stages)
        layout = _skeleton(pricing, degrees, stages, partial.order or ORDERS[0])
        _refuse_illegal(pricing, layout)
        return Completed(layout)
    return _best(list(_options(pricing, partial, degrees)))


def _as_far_as_given(workload: Workload, partial: PartialLayout) -> Pricing:
    """The job with what the given part of a layout sets for its price.

    A layout that was run elsewhere is priced, whoever wrote its files.
    """
    wanted, own = partial.comm_dtype, workload.framework.own_formats
    formats = wanted.over(own) if wanted else None
    candidate = Pricing.candidate(
        workload.unwritten(), offload=partial.offload, comm_dtype=formats
    )
    return on_pools(candidate, partial.pools)


def _degrees(pricing: Pricing, partial: PartialLayout) -> Degrees:
    """Every degree, from the user or by default."""
    limits, given = pricing.framework.limits, partial.given()
    at: Degrees = {axis.name: given.get(axis.name, axis.default) for axis in FIELDS}
    if partial.schedule in V_SHAPED and partial.vpp is None:
        at["vpp"] = 2
    micro_batch = partial.micro_batch or pricing.training.together
    each = prod(at[axis.name] for axis in MESH if axis.name != "dp")
    dp = partial.dp or _replicas(pricing, partial, each, micro_batch)
    accum = max(pricing.sequences // (dp * micro_batch), 1)
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
    pricing: Pricing, partial: PartialLayout, each: int, micro_batch: int
) -> int:
    """Replicas that fill the fleet, or the most that divide the batch if none do."""
    gpus = min(pricing.search.largest("gpus") or pricing.gpus, pricing.gpus)
    whole = max(gpus // each, 1)
    if pricing.mixed:
        whole = room_for(pricing, partial.pools, each // (partial.pp or 1))
    sequences = pricing.sequences // micro_batch
    if (whole * each == gpus and not pricing.mixed) or sequences < 1:
        return whole
    return max(dp for dp in divisors(sequences) if dp <= whole)


def _skeleton(
    pricing: Pricing,
    degrees: Degrees,
    stages: tuple[Stage, ...],
    order: str,
) -> Layout:
    layout = Layout.model_validate({**degrees, "stages": stages, "order": order})
    sent = {"comm_dtype": pricing.sends, "offload": pricing.offload}
    return layout.model_copy(update=sent)


def _refuse_illegal(workload: Workload, layout: Layout) -> None:
    wrong = rule_violations(workload, layout)
    if wrong:
        said = "; ".join(breach.sentence for breach in wrong[:3])
        raise BadInputError(said, field="layout", value=_shown(layout))


def _shown(layout: Layout) -> str:
    told = [axis for axis in NUMBERS if axis.name != "zero_stage"]
    return ",".join(f"{axis.name}={axis.of(layout)}" for axis in told)


@dataclass(frozen=True)
class _Option:
    """One way to complete a layout but for its split, whose even one stands by."""

    table: CostTable
    costs: StageCosts
    hosting: tuple[int, ...]
    even: Counts
    is_even: bool
    """True where no other split is looked for."""

    @property
    def is_open(self) -> bool:
        """True where the solver may choose the split."""
        chosen = self.is_even or self.costs.block
        return not chosen and in_class(self.costs, self.even)

    def layout(self, counts: Counts) -> Layout:
        """The layout of one split."""
        return layout_of(
            self.table.pricing,
            self.table.meshes,
            0,
            schedule=self.costs.schedule,
            vpp=self.costs.vpp,
            menu=self.costs.menu,
            counts=counts,
            block=self.costs.block > 0,
            hosting=self.hosting,
        )


def _best(options: list[_Option]) -> Completed:
    """The fastest that fits, the first of equals; else the one that lacks least."""
    open_ = [option.costs for option in options if option.is_open]
    answer = best_splits(open_, after(MOST_TIME))
    found = dict(zip(open_, answer.found, strict=True))
    splits = [found[option.costs] if option.is_open else None for option in options]
    every = [
        (option, option.even if split is None else split.counts)
        for option, split in zip(options, splits, strict=True)
    ]
    option, counts = min(every, key=lambda each: _sort_key(each[0].costs, each[1]))
    step = step_ns(option.costs, counts) * option.costs.slowdown
    return Completed(option.layout(counts), max(step / answer.bound - 1, 0.0))


def _sort_key(costs: StageCosts, counts: Counts) -> tuple[bool, float]:
    """Splits that fit by their step [ns], then the others by what they lack [block]."""
    over = _excess(costs, counts)
    fits = over <= 0
    return not fits, step_ns(costs, counts) * costs.slowdown if fits else float(over)


def _options(
    pricing: Pricing, partial: PartialLayout, degrees: Degrees
) -> Iterator[_Option]:
    """Rank orders times recompute kinds, in order of preference."""
    limits = pricing.framework.limits
    allows = pricing.search.allows_text
    allowed = tuple(order for order in limits.orders if allows("order", order))
    orders = (partial.order,) if partial.order else allowed or limits.orders
    menu = _menu(pricing, partial)
    refuse_recompute(pricing, menu)
    legal = [
        order
        for order in orders
        if not rule_violations(pricing, _probe(pricing, degrees, order, menu[0]))
    ]
    if not legal:
        _refuse_illegal(pricing, _probe(pricing, degrees, orders[0], menu[0]))
    every = BLOCK_KINDS if block_of(menu[0]) else menu
    tied = limits.recompute_scope == "plan" and every is menu
    for order in legal:
        tables: dict[frozenset[str] | None, CostTable] = {}
        for kinds in chosen_together(pricing, every, tied=tied):
            probe = _probe(pricing, degrees, order, kinds[0])
            job = replace(pricing, without=Pricing.of(pricing, probe).without)
            if job.without not in tables:
                mesh = Meshes.of_layout(probe)
                tables[job.without] = price_meshes(job, mesh, every)
            choice = tuple(every.index(kind) for kind in kinds)
            yield _option(tables[job.without], degrees, choice, partial)


def _menu(workload: Workload, partial: PartialLayout) -> tuple[str, ...]:
    """Recompute kinds to choose from: none where the schedule allows no other."""
    limits = workload.framework.limits
    if partial.recompute is not None:
        return (partial.recompute,)
    if partial.schedule in SPLIT and not limits.recomputes_split:
        return ("none",)
    allows = workload.search.allows_text
    kept = tuple(kind for kind in limits.recompute if allows("recompute", kind))
    return kept or limits.recompute


def _probe(pricing: Pricing, degrees: Degrees, order: str, kind: str) -> Layout:
    """The layout with an even split, to check that it is legal at all."""
    shape = int(degrees["pp"]), int(degrees["vpp"])
    stages = placement(str(degrees["schedule"]), *shape).depth
    layers = even_layers(pricing.model.layers, stages)
    even = tuple(with_recompute(Stage(layers=count), kind) for count in layers)
    return _skeleton(pricing, degrees, even, order)


def _option(
    table: CostTable, degrees: Degrees, choice: tuple[int, ...], partial: PartialLayout
) -> _Option:
    """One order and recompute choice."""
    hosting = tuple(len(pool.stages) for pool in degrees["pools"])
    costs = table.stage_costs(
        0,
        schedule=degrees["schedule"],
        vpp=degrees["vpp"],
        menu=choice,
        block=block_of(partial.recompute or ""),
        hosting=hosting,
    )
    even = block_counts(costs) if costs.block else even_counts(costs)
    return _Option(table, costs, hosting, even, partial.stages == "even")


def _excess(costs: StageCosts, counts: Counts) -> int:
    """Blocks by which the fullest rank exceeds its budget; negative if it fits."""
    return int((rank_blocks(costs, counts) - np.array(costs.budgets)).max())
