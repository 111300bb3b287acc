"""The best plan with one degree changed: what each neighbour would take."""

from collections.abc import Iterator
from dataclasses import dataclass

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.explain.case import Clock
from planner.predict import predict
from planner.reasons import NO_DIFFERENCE, recompute_words, why_slower
from planner.specs.explanation import Neighbour
from planner.specs.layout import Layout, PartialLayout
from planner.specs.result import RankedPlan

KEPT = ("tp", "pp", "vpp", "ep", "etp", "zero_stage", "micro_batch")
"""Degrees that a neighbour has of the plan beside it."""


@dataclass(frozen=True)
class Move:
    """One changed field of a layout."""

    field: str
    value: object
    before: object

    @property
    def words(self) -> str:
        """For example `tp 4 instead of 8`. [text]."""
        name = "zero" if self.field == "zero_stage" else self.field
        return f"{name.replace('_', '-')} {self.value} instead of {self.before}"


def moved(layout: Layout, **changes: object) -> PartialLayout:
    """A layout with some degrees changed; stages, recompute and order are left open.

    ``dp`` follows from the GPUs. A shard group of all replicas stays one.

    Args:
        layout: A complete layout. [-]
        changes: Fields of a layout. [-]

    Returns:
        What a prediction completes. [-]

    Raises:
        ValidationError: A value is none of its field.
    """
    fields: dict[str, object] = {name: getattr(layout, name) for name in KEPT}
    fields["cp"] = layout.cp
    fields["offload"], fields["comm_dtype"] = layout.offload, layout.comm_dtype
    if layout.cp > 1 and changes.get("cp", 2) != 1:
        fields["cp_kind"] = layout.cp_kind
    if layout.tp > 1 and changes.get("tp", 2) != 1:
        fields["sp"] = layout.sp
    if layout.dp_shard != layout.dp * layout.cp:
        fields["dp_shard"] = layout.dp_shard
    return PartialLayout.model_validate(fields | changes)


def neighbours(
    workload: Workload, best: RankedPlan, clock: Clock
) -> tuple[Neighbour, ...]:
    """Price every plan that differs from the best in one degree.

    Each is what ``planner predict`` says of those degrees: stages, recompute and
    rank order are chosen anew, and so are chunks where the old ones are illegal.
    Limits of the search block do not bind them; one that they exclude says so.

    Args:
        workload: The job that the plan is for. [-]
        best: The best plan. [-]
        clock: Time for it. [s]

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
            most = layout.dp * layout.cp if axis == "dp_shard" else value
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
    yield from ("tp", "pp", "cp")
    if workload.model.expert_parameters:
        yield "ep"
    if layout.vpp > 1:
        yield "vpp"
    if workload.framework.limits.hybrid_sharding and layout.zero_stage:
        yield "dp_shard"
    yield "micro_batch"


def _neighbour(workload: Workload, best: RankedPlan, move: Move) -> Neighbour:
    try:
        plan = _plan(workload, best.layout, move)
    except BadInputError as error:
        why = f"not legal: {error.message}"
        return Neighbour(change=move.words, effect=why, legal=False)
    memory, step = plan.estimate.memory, plan.estimate.step_time_s.value
    slower = step / best.estimate.step_time_s.value - 1
    fits = memory.peak_device_gib.value <= memory.capacity_gib
    return Neighbour(
        change=move.words,
        effect=_effect(workload, best, plan, move),
        legal=True,
        fits=fits,
        step_time_s=step,
        slower=slower,
        device_gib=memory.peak_device_gib.value,
    )


def _plan(workload: Workload, layout: Layout, move: Move) -> RankedPlan:
    """The neighbour under its best number of chunks, of one, half, as many and twice.

    Raises the complaint about the plan's own number where none is legal.
    """
    change = {move.field: move.value}
    chunks = [layout.vpp]
    if move.field in ("tp", "pp", "cp", "micro_batch") and layout.pp > 1:
        chunks += [1, layout.vpp // 2, 2 * layout.vpp]
    if move == Move("pp", 1, layout.pp):
        chunks = [1]
    plans: list[RankedPlan] = []
    problem: BadInputError | None = None
    for vpp in dict.fromkeys(v for v in chunks if v):
        try:
            partial = moved(layout, **({"vpp": vpp} | change))
            plans.append(predict(workload, partial))
        except BadInputError as error:
            problem = problem or error
    if not plans:
        assert problem is not None
        raise problem
    return min(plans, key=_preference)


def _preference(plan: RankedPlan) -> tuple[bool, float]:
    """Plans that fit by their step, then the others by what they hold."""
    memory, step = plan.estimate.memory, plan.estimate.step_time_s.value
    over = memory.peak_device_gib.value > memory.capacity_gib
    return over, memory.peak_device_gib.value if over else step


def _effect(workload: Workload, best: RankedPlan, plan: RankedPlan, move: Move) -> str:
    """Faster or slower, why, and what does not fit."""
    estimate = plan.estimate
    share = estimate.step_time_s.value / best.estimate.step_time_s.value - 1
    pace = f"{abs(share):.1%} {'slower' if share >= 0 else 'faster'}"
    why = why_slower(best.estimate, estimate)
    worst = max(estimate.memory.stages, key=lambda stage: stage.device)
    if worst.device > estimate.memory.capacity_gib:
        reach = f"stage {worst.stage} reaches {worst.device:.1f} GiB"
        room = f"of {estimate.memory.capacity_gib:.1f} GiB"
        return f"{pace}, {'but' if share < 0 else 'and'} {reach} {room}"
    outside = "" if _allowed(workload, plan.layout, move) else "; outside your limits"
    return f"{pace}{'' if why == NO_DIFFERENCE else f' ({why})'}{outside}"


def _allowed(workload: Workload, layout: Layout, move: Move) -> bool:
    """Whether the user's limits allow the degrees of a neighbour."""
    if move.field == "recompute":
        return workload.search.allows_text("recompute", str(move.value))
    axes = (*KEPT, "cp", "dp", "dp_shard")
    return all(workload.search.allows(axis, getattr(layout, axis)) for axis in axes)
