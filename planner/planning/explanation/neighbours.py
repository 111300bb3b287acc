"""The best plan with one degree changed: what each neighbour would take."""

from collections.abc import Iterator
from dataclasses import dataclass

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.frameworks.sanity import compared
from planner.planning.explanation.changes import Clock
from planner.planning.explanation.given import USUAL
from planner.planning.explanation.writable import predict_writable
from planner.planning.reasons import NO_DIFFERENCE, why_slower
from planner.schedules import V_SHAPED
from planner.specs.answer.explanation import Neighbour
from planner.specs.answer.result import RankedPlan
from planner.specs.layouts.axes import AXES, AXIS, FIELDS, FREE, MESH, NUMBERS
from planner.specs.layouts.layout import Layout, PartialLayout, PoolStages
from planner.specs.layouts.layout_text import recompute_words

SPLITTING = {axis.name for axis in AXES if axis.is_mesh or axis.group == "batch"}
"""Axes whose change may ask for other chunks. [text]"""
KEPT = tuple(axis for axis in FREE if axis.is_number)
"""Degrees that a neighbour takes over from the best plan."""


@dataclass(frozen=True)
class Move:
    """One changed field of a layout."""

    field: str
    value: int | str
    before: object

    @property
    def words(self) -> str:
        """Words such as `tp 4 instead of 8`. [text]."""
        return f"{AXIS[self.field].told} {self.value} instead of {self.before}"


def moved(layout: Layout, **changes: object) -> PartialLayout:
    """A layout with some degrees changed; stages, recompute and order are left open.

    ``dp`` follows from the GPUs. A shard group of all replicas stays such a group.
    """
    fields: dict[str, object] = {axis.name: axis.of(layout) for axis in KEPT}
    fields["offload"], fields["comm_dtype"] = layout.offload, layout.comm_dtype
    for axis in FIELDS:
        if axis.under and axis.matters(layout) and changes.get(axis.under, 2) != 1:
            fields[axis.name] = axis.of(layout)
    if layout.schedule not in USUAL and changes.get("pp", 2) != 1:
        fields["schedule"] = layout.schedule
    if layout.dp_shard != layout.dp * layout.cp:
        fields["dp_shard"] = layout.dp_shard
    if changes.get("zero_stage", layout.zero_stage) == layout.zero_stage:
        fields["hpz"] = layout.hpz
    fields["pools"] = _pools(layout, changes.get("pp", layout.pp))
    return PartialLayout.model_validate(fields | changes)


def _pools(layout: Layout, pp: object) -> tuple[PoolStages, ...]:
    """Pools of a layout, each with an equal share of another number of stages.

    Empty where a share is not whole.
    """
    first, pools = 0, []
    for pool in layout.pools:
        ranks, rest = divmod(len(pool.stages) * int(str(pp)), layout.pp)
        if rest or not ranks:
            return ()
        stages = tuple(range(first, first + ranks))
        pools.append(PoolStages(pool=pool.pool, stages=stages))
        first += ranks
    return tuple(pools)


def neighbours(
    workload: Workload, best: RankedPlan, clock: Clock
) -> tuple[Neighbour, ...]:
    """Price every plan that differs from the best in one degree.

    Each neighbour is priced as by ``planner predict``: stages, recompute and rank
    order are chosen anew, and so are chunks where the old chunks are illegal.
    Limits of the search block do not bind neighbours; a neighbour outside the limits
    says so.

    Args:
        workload: The job that the plan is for. [-]
        best: The best plan. [-]
        clock: Time for all neighbours. [s]

    Returns:
        Neighbours in the order of the axes; the last are left out where time ends.
    """
    found: list[Neighbour] = []
    for move in _moves(workload, best.layout):
        if clock.left <= 0:
            break
        found.append(_neighbour(workload, best, move))
    return tuple(found)


def _moves(workload: Workload, layout: Layout) -> Iterator[Move]:
    """Degrees twice and half, then other ZeRO stages and recompute kinds."""
    for axis in _axes(workload, layout):
        own = getattr(layout, axis)
        for value in (2 * own, own // 2):
            most = layout.dp * layout.cp if AXIS[axis].group == "data" else value
            if 0 < value <= most:
                yield Move(axis, value, own)
    for zero in workload.framework.limits.zero_stages:
        if zero != layout.zero_stage:
            yield Move("zero_stage", zero, layout.zero_stage)
    kept = recompute_words(layout)
    for kind in workload.framework.limits.recompute:
        if kind != kept:
            yield Move("recompute", kind, kept)


def _axes(workload: Workload, layout: Layout) -> Iterator[str]:
    """Degrees that a neighbour may have twice or half of."""
    yield from (axis.name for axis in MESH if axis.name != "dp")
    if workload.model.expert_parameters:
        yield "ep"
    if layout.vpp > 1:
        yield "vpp"
    if workload.framework.limits.hybrid_sharding and layout.zero_stage:
        yield "dp_shard"
    if layout.hpz > 1:
        yield "hpz"
    yield "micro_batch"


def _neighbour(workload: Workload, best: RankedPlan, move: Move) -> Neighbour:
    try:
        plan = _plan(workload, best.layout, move)
    except BadInputError as error:
        why = f"not legal: {error.message}"
        return Neighbour(
            change=move.words,
            field=move.field,
            value=move.value,
            effect=why,
            legal=False,
        )
    return Neighbour(
        change=_change(best.layout, plan.layout, move),
        field=move.field,
        value=move.value,
        effect=_effect(workload, best, plan, move),
        legal=True,
        fits=_fits(plan),
        tied=_is_tie(best, plan),
        step_time_s=plan.estimate.step_time_s.value,
        slower=_slower(best, plan),
        device_gib=plan.estimate.memory.peak_device_gib.value,
    )


def _change(best: Layout, layout: Layout, move: Move) -> str:
    """The move, and what else had to change with it."""
    also = []
    if move.field != "vpp" and layout.vpp != best.vpp:
        also.append(f"vpp {layout.vpp}")
    if move.field != "recompute" and recompute_words(layout) != recompute_words(best):
        also.append(f"recompute {recompute_words(layout)}")
    return f"{move.words} ({', '.join(also)})" if also else move.words


def _slower(best: RankedPlan, plan: RankedPlan) -> float:
    return plan.estimate.step_time_s.value / best.estimate.step_time_s.value - 1


def _error(best: RankedPlan, plan: RankedPlan) -> float:
    """Median error of a comparison of two such plans. [1]."""
    ours, theirs = best.estimate.time_breakdown_s, plan.estimate.time_breakdown_s
    return compared().error(ours, theirs)


def _is_tie(best: RankedPlan, plan: RankedPlan) -> bool:
    """True where a plan fits and is within the comparison error of the best plan."""
    return _fits(plan) and abs(_slower(best, plan)) <= _error(best, plan)


def _plan(workload: Workload, layout: Layout, move: Move) -> RankedPlan:
    """The neighbour under the first number of chunks with which the plan fits.

    A pipeline of another length first tries as many chunks as keep the number of
    virtual stages. Where nothing fits, the least peak memory decides. Raises the error
    of the first number where none is legal.
    """
    plans: list[RankedPlan] = []
    problem: BadInputError | None = None
    for vpp in dict.fromkeys(v for v in _chunks(layout, move) if v):
        try:
            change = {"vpp": vpp, move.field: move.value}
            plans.append(predict_writable(workload, moved(layout, **change)))
        except BadInputError as error:
            problem = problem or error
            continue
        if _fits(plans[-1]):
            break
    if not plans:
        assert problem is not None
        raise problem
    return min(plans, key=_preference)


def _chunks(layout: Layout, move: Move) -> tuple[int, ...]:
    """Chunks that a neighbour may have, the most alike first. [1]."""
    own = layout.vpp
    if layout.schedule in V_SHAPED or move.field not in SPLITTING:
        return (own,)
    if move == Move("pp", 1, layout.pp):
        return (1,)
    alike = own * layout.pp // int(str(move.value)) if move.field == "pp" else own
    return (alike, own, own // 2, 2 * own, 1) if layout.pp > 1 else (own,)


def _fits(plan: RankedPlan) -> bool:
    memory = plan.estimate.memory
    return memory.peak_device_gib.value <= memory.capacity_gib


def _preference(plan: RankedPlan) -> tuple[bool, float]:
    """Sort key: plans that fit by step time, then other plans by peak memory."""
    held, step = plan.estimate.memory.peak_device_gib, plan.estimate.step_time_s
    return not _fits(plan), step.value if _fits(plan) else held.value


def _effect(workload: Workload, best: RankedPlan, plan: RankedPlan, move: Move) -> str:
    """Faster or slower, why, and what does not fit."""
    share = _slower(best, plan)
    pace = f"{abs(share):.1%} {'slower' if share >= 0 else 'faster'}"
    if not _fits(plan):
        return f"{pace}, {'but' if share < 0 else 'and'} {_reach(plan)}"
    why = why_slower(best.estimate, plan.estimate)
    reason = "" if why == NO_DIFFERENCE else f" ({why})"
    outside = "" if _allowed(workload, plan.layout, move) else "; outside your limits"
    off = f"; a tie, such comparisons are off by {_error(best, plan):.1%}"
    kept = _as_before(workload, best.layout, plan.layout, move)
    tied = off if _is_tie(best, plan) else ""
    return f"{pace}{reason}{tied}{kept}{outside}"


def _reach(plan: RankedPlan) -> str:
    memory = plan.estimate.memory
    worst = max(memory.stages, key=lambda stage: stage.device)
    room = f"of {memory.capacity_gib:.1f} GiB"
    return f"stage {worst.stage} reaches {worst.device:.1f} {room}"


def _as_before(workload: Workload, best: Layout, layout: Layout, move: Move) -> str:
    """Note on a neighbour that does not fit under the best plan's recompute."""
    kind = recompute_words(best)
    if move.field == "recompute" or "+" in kind or recompute_words(layout) == kind:
        return ""
    same = {move.field: move.value, "vpp": layout.vpp, "recompute": kind}
    try:
        plan = predict_writable(workload, moved(best, **same))
    except BadInputError:
        return ""
    return "" if _fits(plan) else f"; with recompute {kind} {_reach(plan)}"


def _allowed(workload: Workload, layout: Layout, move: Move) -> bool:
    """True where the user's limits allow the degrees of a neighbour."""
    if move.field == "recompute":
        return workload.search.allows_text("recompute", str(move.value))
    search = workload.search
    return all(search.allows(axis.name, axis.of(layout)) for axis in NUMBERS)
