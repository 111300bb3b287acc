"""A layout in text: in words, in short, and beside another layout."""

from collections import Counter
from collections.abc import Iterable
from itertools import groupby

from planner.specs.answer.result import RankedPlan
from planner.specs.counted import counted
from planner.specs.layouts.axes import DEGREES, FIELDS, READING
from planner.specs.layouts.blocks import recomputed_block
from planner.specs.layouts.layout import Layout, PartialLayout, PoolStages
from planner.specs.layouts.offload import offload_text
from planner.specs.layouts.recompute import block_name

SEVERAL = " and "
"""Separator between the recompute kinds of one layout. [text]"""


def run_length(counts: Iterable[int]) -> str:
    """Equal neighbours together: 0, 1, 1, 1, 0 is `0 + 3 x 1 + 0`.

    Args:
        counts: Layers of each virtual stage in model order, shape (stages,). [1]
    """
    runs = ((value, len(list(group))) for value, group in groupby(counts))
    return " + ".join(f"{n} x {value}" if n > 1 else f"{value}" for value, n in runs)


def recompute_kinds(layout: Layout | PartialLayout) -> tuple[str, ...]:
    """Recompute kinds of the layers of a layout."""
    stages = layout.stages if isinstance(layout.stages, tuple) else ()
    return tuple(dict.fromkeys(part.kind for s in stages for part in s.recompute))


def recompute_words(layout: Layout) -> str:
    """Recompute kinds that a layout uses."""
    block = recomputed_block(layout.stages)
    if block:
        return block_name(block)
    return SEVERAL.join(sorted(recompute_kinds(layout))) or "none"


def recompute_text(layout: Layout) -> str:
    """Recompute kinds with the layers of each: `none`, or `full on 40 of 80 layers`."""
    layers: Counter[str] = Counter()
    for stage in layout.stages:
        ranges = [(r.kind, r.stop - r.start) for r in stage.recompute]
        layers.update(dict.fromkeys([kind for kind, _ in ranges], 0))
        for kind, count in ranges or [("none", stage.layers)]:
            layers[kind] += count
    used = {kind: count for kind, count in layers.items() if count}
    if len(used) <= 1:
        return next(iter(used), "none")
    total = sum(used.values())
    active = [(kind, count) for kind, count in used.items() if kind != "none"]
    return ", ".join(f"{kind} on {count} of {total} layers" for kind, count in active)


def pools_words(layout: Layout) -> str:
    """Pools of a mixed fleet and the pipeline ranks on them."""
    return ", ".join(f"{pool.pool} {stages_words(pool)}" for pool in layout.pools)


def stages_words(pool: PoolStages) -> str:
    """Pipeline ranks on a pool, as `3` or `0-3`. [text]."""
    first, last = pool.stages[0], pool.stages[-1]
    return str(first) if first == last else f"{first}-{last}"


def layout_rows(layout: Layout) -> list[tuple[str, str]]:
    """Parts of a layout under the names that practitioners use."""
    return [
        ("tensor", f"TP {layout.tp}, SP {'on' if layout.sp else 'off'}"),
        ("pipeline", _pipeline(layout)),
        ("context", _context(layout)),
        ("expert", f"EP {layout.ep}, expert TP {layout.etp}"),
        ("data", _data(layout)),
        ("ZeRO stage", str(layout.zero_stage)),
        ("micro-batch", counted(layout.micro_batch, "sequence")),
        ("grad accumulation", f"{layout.grad_accum} micro-batches"),
        ("rank order", f"{layout.order} (innermost first)"),
        ("recompute", recompute_text(layout)),
        ("layers by stage", run_length(layout.layers_per_stage)),
        *([("pools", f"ranks on {pools_words(layout)}")] if layout.pools else []),
    ]


def _pipeline(layout: Layout) -> str:
    if layout.pp == 1:
        return "PP 1"
    return f"PP {layout.pp} x VPP {layout.vpp}, {layout.schedule}"


def _data(layout: Layout) -> str:
    copied = f", hpZ {layout.hpz}" if layout.hpz > 1 else ""
    return f"DP {layout.dp}, sharded over {layout.dp_shard}{copied}"


def _context(layout: Layout) -> str:
    return f"CP {layout.cp}" + (f", {layout.cp_kind}" if layout.cp > 1 else "")


def field_rows(layout: Layout) -> list[tuple[str, str]]:
    """Fields of a layout by name, then layers, pools, recompute and offload.

    Returns:
        (axis, value). [text], shape (axes,)
    """
    told = [axis for axis in FIELDS if axis.is_told(layout)]
    rows = [(axis.name, str(axis.of(layout))) for axis in told]
    stages = " ".join(str(count) for count in layout.layers_per_stage)
    kinds = ", ".join(recompute_kinds(layout)) or "none"
    rows += [("layers by stage", stages)]
    rows += [("pools by stage", pools_words(layout))] if layout.pools else []
    rows += [("recompute", kinds)]
    offload = offload_text(layout.offload)
    return [*rows, ("offload", offload)] if offload else rows


def difference(layout: Layout, best: Layout) -> str:
    """Differences of a layout from the best: `tp 8 -> 4, dp 16 -> 32`."""
    parts = [f"{name} {a} -> {b}" for name, a, b in axes_changed(best, layout)]
    if pools_words(layout) != pools_words(best):
        parts.append(f"ranks on {pools_words(layout)}")
    if recompute_text(layout) != recompute_text(best):
        parts.append(f"recompute {recompute_text(layout)}")
    # Other degrees change the stages anyway; other stages alone are a difference.
    if not parts and layout.layers_per_stage != best.layers_per_stage:
        parts.append(f"layers {run_length(layout.layers_per_stage)}")
    return ", ".join(parts) or "the same"


def axes_changed(before: Layout, after: Layout) -> list[tuple[str, str, str]]:
    """Axes that differ and have an effect in both of two layouts.

    Returns:
        Name, value before, value after, in reading order. [text]
    """
    return [
        (axis.name, _plain(axis.of(before)), _plain(axis.of(after)))
        for axis in READING
        if axis.of(before) != axis.of(after)
        and axis.matters(after)
        and axis.matters(before)
    ]


def parts_changed(before: Layout, after: Layout) -> list[tuple[str, str, str]]:
    """Parts of a layout that differ: axes, pools, recompute, layers and the rest."""
    others = {
        "pools": pools_words,
        "recompute": recompute_text,
        "layers by stage": lambda layout: run_length(layout.layers_per_stage),
        "offload": lambda layout: offload_text(layout.offload),
        "formats": _formats_words,
    }
    told = [(name, say(before), say(after)) for name, say in others.items()]
    changed = [(name, a or "none", b or "none") for name, a, b in told if a != b]
    return axes_changed(before, after) + changed


def _formats_words(layout: Layout) -> str:
    """Formats of what the ranks exchange."""
    return ", ".join(f"{name} {word}" for name, word in layout.comm_dtype)


def _plain(value: object) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def plan_difference(plan: RankedPlan, best: RankedPlan) -> str:
    """Differences of a plan from the best: settings, offload, then the layout."""
    parts = [
        f"{name} {best.settings.get(name)} -> {value}"
        for name, value in plan.settings.items()
        if value != best.settings.get(name)
    ]
    if plan.layout.offload != best.layout.offload:
        parts.append(offload_text(plan.layout.offload) or "offload none")
    changed = difference(plan.layout, best.layout)
    if changed != "the same" or not parts:
        parts.append(changed)
    return ", ".join(parts)


def degrees_changed(ours: Layout, theirs: Layout) -> list[str]:
    """Degrees, pools and recompute of another layout where two layouts differ."""
    differing = [
        f"{axis.name} {axis.of(theirs)}"
        for axis in FIELDS
        if axis.names_rivals
        and axis.of(ours) != axis.of(theirs)
        and axis.matters(theirs)
    ]
    if pools_words(ours) != pools_words(theirs):
        differing.append(pools_words(theirs))
    if recompute_words(ours) != recompute_words(theirs):
        differing.append(f"recompute {recompute_words(theirs)}")
    return differing


def short_layout(layout: Layout) -> str:
    """A layout in short form: degrees above one, ZeRO, micro-batch, recompute."""
    parts = [f"{a.name}={a.of(layout)}" for a in DEGREES if a.of(layout) > 1]
    parts += [f"zero_stage={layout.zero_stage}", f"micro_batch={layout.micro_batch}"]
    kinds = recompute_kinds(layout)
    if block := recomputed_block(layout.stages):
        parts.append(f"recompute={block_name(block)}")
    elif len(kinds) == 1:
        parts.append(f"recompute={kinds[0]}")
    return ",".join(parts)


def degrees_text(layout: Layout) -> str:
    """Degrees of a layout as the command line takes them.

    Returns:
        `key=value` pairs: tp, pp, dp, ZeRO stage and micro-batch, then other degrees
        above 1. [text]
    """
    more = [a for a in DEGREES if not a.tells_one and a.of(layout) > 1]
    told = [a.name for a in DEGREES if a.tells_one]
    told += ["zero_stage", "micro_batch", *(axis.name for axis in more)]
    return ",".join(f"{name}={getattr(layout, name)}" for name in told)


def packed_layout(layout: Layout | PartialLayout) -> str:
    """A layout in a cell: degrees over 1, micro-batch, ZeRO stage, group, recompute.

    Returns:
        Words, as `tp8 pp4 dp4 mb1 z1 shard2 full`. [text]
    """
    sizes = [(axis.name, getattr(layout, axis.name) or 1) for axis in DEGREES]
    words = [f"{name}{size}" for name, size in sizes if size > 1]
    words += ["sp"] if layout.sp else []
    words += [f"mb{layout.micro_batch}", f"z{layout.zero_stage}"]
    if 1 < (layout.dp_shard or 1) < (layout.dp or 1) * (layout.cp or 1):
        words += [f"shard{layout.dp_shard}"]
    return " ".join([*words, *sorted({*recompute_kinds(layout)} - {"none"})])
