"""A given layout beside the best plan: what is wrong, and what would mend most."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.planning.explanation.changes import Clock
from planner.planning.explanation.writable import predict_writable
from planner.planning.optimize import optimize
from planner.planning.reasons import NO_DIFFERENCE, why_slower
from planner.specs.answer.explanation import Change, Judgement
from planner.specs.answer.result import RankedPlan
from planner.specs.layouts import axes
from planner.specs.layouts.layout import Layout, PartialLayout, Stage
from planner.specs.layouts.layout_text import SEVERAL, recompute_words
from planner.specs.layouts.offload import offload_text

CHOICES = tuple(axis for axis in axes.FREE if axis in axes.FIELDS)
"""Fields of a layout that no other field decides."""
USUAL = ("1f1b", "interleaved")
"""Schedules that follow from the number of chunks. [text]"""
SPLITS = {axis.name for axis in axes.AXES if axis.group == "pipeline"} | {"stages"}
"""Changes after which the layers have to be split anew."""
MOST = 0.8
"""Share of the gain that counts as most of the gain. [1]"""
FREE = tuple(axis.name for axis in axes.FREE if axis.group != "ranks")
"""Axes that may be freed, one after the other. [text]"""
TOGETHER = 3
"""Most axes freed together, and most changes to the best plan priced together. [1]"""


def judged(
    workload: Workload, given: RankedPlan, best: RankedPlan, clock: Clock
) -> Judgement:
    """Say what is wrong with a layout, and what the best plan would save.

    Args:
        workload: The job that the layout is for. [-]
        given: The layout, priced. [-]
        best: The best plan. [-]
        clock: Time for the judgement. [s]

    Returns:
        Faults, the gain, and the fewest changes that take most of the gain.
    """
    memory, step = given.estimate.memory, given.estimate.step_time_s.value
    gain = 1 - best.estimate.step_time_s.value / step
    worth = gain > 0 or not _fits(given)
    single, few = _fewest(workload, given, best, clock) if worth else (None, None)
    return Judgement(
        layout=given.layout,
        step_time_s=step,
        device_gib=memory.peak_device_gib.value,
        verdict=memory.verdict,
        wrong=tuple(_faults(workload, given, best, gain)),
        gain=max(gain, 0.0),
        single=single if single is not None and single.share > 0 else None,
        fewest=few,
    )


def _fits(plan: RankedPlan) -> bool:
    memory = plan.estimate.memory
    return memory.peak_device_gib.value <= memory.capacity_gib


def _faults(
    workload: Workload, given: RankedPlan, best: RankedPlan, gain: float
) -> Iterator[str]:
    """Faults of a layout beside the best plan, in sentences."""
    memory, layout = given.estimate.memory, given.layout
    worst = max(memory.stages, key=lambda stage: stage.device)
    reach = f"stage {worst.stage} reaches {worst.device:.1f} GiB"
    if not _fits(given):
        yield f"It does not fit: {reach} of {memory.capacity_gib:.1f} GiB."
    elif memory.verdict != "fits":
        high = memory.peak_device_gib.high
        yield f"It is {memory.verdict}: {reach}, and up to {high:.1f} GiB."
    outside = [
        axis.name
        for axis in axes.NUMBERS
        if not workload.search.allows(axis.name, axis.of(layout))
    ]
    if outside:
        yield f"It is outside the limits of the search on {', '.join(outside)}."
    why = why_slower(best.estimate, given.estimate)
    if gain > 0 and why != NO_DIFFERENCE:
        yield f"Over the best plan it pays {why} of the step."


def differences(given: Layout, best: Layout) -> dict[str, str]:
    """The choices in which a layout differs from the best, in words.

    Returns:
        Words by choice, for example `tp 8 -> 4`; dp follows from the others.
    """
    found = {
        axis.name: f"{axis.name} {axis.of(given)} -> {axis.of(best)}"
        for axis in CHOICES
        if axis.of(given) != axis.of(best)
    }
    shards = _shard(given), _shard(best)
    if shards != (None, None) and given.dp_shard != best.dp_shard:
        found["dp_shard"] = f"dp_shard {given.dp_shard} -> {best.dp_shard}"
    if given.hpz != best.hpz:
        found["hpz"] = f"hpz {given.hpz} -> {best.hpz}"
    if _schedule(given) != _schedule(best):
        found["schedule"] = f"schedule {given.schedule} -> {best.schedule}"
    if given.offload != best.offload:
        found["offload"] = offload_text(best.offload) or "no offload"
    if given.comm_dtype != best.comm_dtype:
        sent = best.comm_dtype
        found["comm_dtype"] = f"{sent.gradients} gradients, {sent.parameters} gathers"
    ours, theirs = recompute_words(best), recompute_words(given)
    if ours != theirs:
        found["recompute"] = f"recompute {theirs} -> {ours}"
    same_grid = (given.pp, given.vpp) == (best.pp, best.vpp)
    if same_grid and given.layers_per_stage != best.layers_per_stage:
        found["stages"] = "layers split by the solver"
    return found


def _schedule(layout: Layout) -> str | None:
    """The schedule, None where it follows from the number of chunks."""
    return None if layout.schedule in USUAL else layout.schedule


def _shard(layout: Layout) -> int | None:
    """The shard group, None where it is all replicas."""
    return None if layout.dp_shard == layout.dp * layout.cp else layout.dp_shard


def changed(given: Layout, best: Layout, chosen: Collection[str]) -> PartialLayout:
    """A layout with some choices of the best layout; all other choices stay.

    Args:
        given: A complete layout. [-]
        best: The layout to take from. [-]
        chosen: Names of :func:`differences`. [text]
    """
    source = {a.name: best if a.name in chosen else given for a in CHOICES}
    fields: dict[str, object] = {a.name: a.of(source[a.name]) for a in CHOICES}
    for axis in axes.FIELDS:
        if axis.under:
            of = source[axis.under]
            fields[axis.name] = axis.of(of) if axis.matters(of) else axis.default
    fields["dp_shard"] = _shard(best if "dp_shard" in chosen else given)
    fields["hpz"] = (best if "hpz" in chosen else given).hpz
    fields["schedule"] = _schedule(best if "schedule" in chosen else given)
    fields["offload"] = (best if "offload" in chosen else given).offload
    fields["comm_dtype"] = (best if "comm_dtype" in chosen else given).comm_dtype
    kind = recompute_words(best if "recompute" in chosen else given)
    fields["recompute"] = None if SEVERAL in kind else kind
    if not SPLITS & set(chosen) and not ("recompute" in chosen and SEVERAL in kind):
        fields["stages"] = _stages(given, plain="recompute" in chosen)
    return PartialLayout.model_validate(fields)


def _stages(given: Layout, *, plain: bool) -> tuple[Stage, ...]:
    """The split of a layout, with each stage's recompute kinds or with none given."""
    if not plain:
        return given.stages
    return tuple(Stage(layers=count) for count in given.layers_per_stage)


def _fewest(
    workload: Workload, given: RankedPlan, best: RankedPlan, clock: Clock
) -> tuple[Change | None, Change | None]:
    """The best change of one axis, and the fewest found that take most of the gain.

    One axis at a time is freed with all others as given. The axis with the largest
    gain stays free, up to three axes. If that is not enough, pairs and triples of the
    changes to the best plan are priced, then all changes but the unneeded ones.
    """
    freed = list(_freed(workload, given, best, clock))
    single = freed[0] if freed else None
    enough = [change for change in freed if change.share >= MOST]
    if enough:
        return single, enough[0]
    words = differences(given.layout, best.layout)
    for size in range(2, min(TOGETHER, len(words) - 1) + 1):
        top = _best(
            change
            for chosen in combinations(words, size)
            if clock.left > 0
            for change in _tried(workload, given, best, words, chosen)
        )
        if top is not None and top.share >= MOST:
            return single, top
    return single, _thinned(workload, given, best, words, clock) if words else None


def _best(changes: Iterable[Change]) -> Change | None:
    """The change with most of the gain; of equals the change of fewest choices."""
    return max(changes, key=lambda c: (c.share, -len(c.changes)), default=None)


def _freed(
    workload: Workload, given: RankedPlan, best: RankedPlan, clock: Clock
) -> Iterator[Change]:
    """The best plan with one axis free, then with two, and so on."""
    free: tuple[str, ...] = ()
    plan, reached = given, 0.0
    for _ in range(TOGETHER):
        found: dict[str, RankedPlan] = {}
        for axis in FREE:
            if axis not in free and _moves(workload, axis) and clock.left > 0:
                its = _only_changing(workload, given, (*free, axis), plan, clock)
                found |= {} if its is None else {axis: its}
        if not found:
            return
        axis = min(found, key=lambda each: found[each].estimate.step_time_s.value)
        free, plan = (*free, axis), found[axis]
        step = plan.estimate.step_time_s.value
        share = _share(given, best, step)
        if share <= reached:
            return
        reached = share
        names = tuple(differences(given.layout, plan.layout).values())
        yield Change(changes=names, step_time_s=step, share=share)
        if share >= MOST:
            return


def _moves(workload: Workload, axis: str) -> bool:
    return axes.AXIS[axis].group != "expert" or workload.model.expert_parameters > 0


def _only_changing(
    workload: Workload,
    given: RankedPlan,
    chosen: Collection[str],
    before: RankedPlan,
    clock: Clock,
) -> RankedPlan | None:
    """The best plan with the chosen axes free, if any is as fast as the plan before."""
    layout, search = given.layout, workload.search
    kept = {
        axis: getattr(layout, axis)
        for axis in FREE
        if axis not in (*chosen, "recompute")
    }
    kind = recompute_words(layout)
    if "recompute" not in chosen and "+" not in kind:
        kept["recompute"] = kind
    known = before.estimate.step_time_s.value if _fits(before) else float("inf")
    job = replace(workload, search=search.model_copy(update=kept))
    try:
        found = optimize([job], top=1, time_limit=clock.left, known_s=known)
    except BadInputError:
        return None
    return found.plans[0] if found.plans else None


def _thinned(
    workload: Workload,
    given: RankedPlan,
    best: RankedPlan,
    words: dict[str, str],
    clock: Clock,
) -> Change:
    """All changes but those not needed for most of the gain."""
    step = best.estimate.step_time_s.value
    kept, change = (
        list(words),
        Change(changes=tuple(words.values()), step_time_s=step, share=1.0),
    )
    for name in words:
        fewer = [each for each in kept if each != name]
        if clock.left <= 0 or not fewer:
            break
        found = _tried(workload, given, best, words, fewer)
        if found and found[0].share >= MOST:
            kept, change = fewer, found[0]
    return change


def _tried(
    workload: Workload,
    given: RankedPlan,
    best: RankedPlan,
    words: dict[str, str],
    chosen: Sequence[str],
) -> list[Change]:
    """One set of changes, if it is legal and fits."""
    try:
        kept = changed(given.layout, best.layout, chosen)
        plan = predict_writable(workload, kept)
    except BadInputError:
        return []
    if not _fits(plan):
        return []
    step = plan.estimate.step_time_s.value
    names = tuple(words[name] for name in chosen)
    share = _share(given, best, step)
    return [Change(changes=names, step_time_s=step, share=share)]


def _share(given: RankedPlan, best: RankedPlan, step: float) -> float:
    """Share of the gain that a step time takes. [1].

    Share of the best plan's rate where the given layout does not fit or is no slower.
    """
    target = best.estimate.step_time_s.value
    before = given.estimate.step_time_s.value
    if not _fits(given) or before <= target:
        return target / step
    return (before - step) / (before - target)
