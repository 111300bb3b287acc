"""A layout in the field's words."""

from collections import Counter
from collections.abc import Iterable
from itertools import groupby

from planner.reasons import pools_words
from planner.specs.blocks import recomputed_block
from planner.specs.layout import Layout
from planner.specs.offload import offload_text
from planner.specs.recompute import block_name
from planner.specs.result import RankedPlan

_DIFFERENCE_FIELDS = (
    "tp",
    "sp",
    "cp",
    "cp_kind",
    "ep",
    "etp",
    "pp",
    "vpp",
    "schedule",
    "dp",
    "dp_shard",
    "zero_stage",
    "micro_batch",
    "grad_accum",
    "order",
)


def run_length(counts: Iterable[int]) -> str:
    """Equal neighbours together: 0, 1, 1, 1, 0 is `0 + 3 x 1 + 0`.

    Args:
        counts: Layers of each virtual stage in model order, shape (stages,). [1]

    Returns:
        The text. [-]
    """
    runs = ((value, len(list(group))) for value, group in groupby(counts))
    return " + ".join(f"{n} x {value}" if n > 1 else f"{value}" for value, n in runs)


def recompute_text(layout: Layout) -> str:
    """Recompute kinds with the layers of each: `none`, or `full on 40 of 80 layers`.

    Args:
        layout: A complete layout. [-]

    Returns:
        The text. [-]
    """
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


def layout_rows(layout: Layout) -> list[tuple[str, str]]:
    """Parts of a layout under the names that practitioners use.

    Args:
        layout: A complete layout. [-]

    Returns:
        (part, value) in reading order. [-]
    """
    return [
        ("tensor", f"TP {layout.tp}, SP {'on' if layout.sp else 'off'}"),
        ("pipeline", _pipeline(layout)),
        ("context", _context(layout)),
        ("expert", f"EP {layout.ep}, expert TP {layout.etp}"),
        ("data", f"DP {layout.dp}, sharded over {layout.dp_shard}"),
        ("ZeRO stage", str(layout.zero_stage)),
        (
            "micro-batch",
            f"{layout.micro_batch} sequence{'s' * (layout.micro_batch > 1)}",
        ),
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


def _context(layout: Layout) -> str:
    return f"CP {layout.cp}" + (f", {layout.cp_kind}" if layout.cp > 1 else "")


def difference(layout: Layout, best: Layout) -> str:
    """Differences of a layout from the best: `tp 8 -> 4, dp 16 -> 32`.

    Args:
        layout: A complete layout. [-]
        best: The layout of rank 1. [-]

    Returns:
        The fields that differ, by name; `the same` where none does. [-]
    """
    parts = [
        f"{name} {_plain(getattr(best, name))} -> {_plain(getattr(layout, name))}"
        for name in _DIFFERENCE_FIELDS
        if getattr(best, name) != getattr(layout, name)
        and _matters(name, layout)
        and _matters(name, best)
    ]
    if pools_words(layout) != pools_words(best):
        parts.append(f"ranks on {pools_words(layout)}")
    if recompute_text(layout) != recompute_text(best):
        parts.append(f"recompute {recompute_text(layout)}")
    # Other degrees change the stages anyway; other stages alone are a difference.
    if not parts and layout.layers_per_stage != best.layers_per_stage:
        parts.append(f"layers {run_length(layout.layers_per_stage)}")
    return ", ".join(parts) or "the same"


def plan_difference(plan: RankedPlan, best: RankedPlan) -> str:
    """Differences of a plan from the best: settings, offload, then the layout.

    Args:
        plan: A plan of the list. [-]
        best: The plan of rank 1. [-]

    Returns:
        For example `method lora -> full, tp 8 -> 4`; `the same` without any. [-]
    """
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


def _matters(name: str, layout: Layout) -> bool:
    """True where a field has an effect under the degree that it belongs to."""
    if name == "cp_kind":
        return layout.cp > 1
    return name != "sp" or layout.tp > 1


def _plain(value: object) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def short_layout(layout: Layout) -> str:
    """A layout in short form: degrees above one, ZeRO, micro-batch, recompute.

    Args:
        layout: A complete layout. [-]

    Returns:
        `tp=8,pp=2,zero_stage=1,...`, which `--layout` reads back. [text]
    """
    degrees = ("tp", "pp", "vpp", "cp", "ep", "etp", "dp")
    parts = [f"{n}={getattr(layout, n)}" for n in degrees if getattr(layout, n) > 1]
    parts += [f"zero_stage={layout.zero_stage}", f"micro_batch={layout.micro_batch}"]
    kinds = {r.kind for stage in layout.stages for r in stage.recompute}
    if block := recomputed_block(layout.stages):
        parts.append(f"recompute={block_name(block)}")
    elif len(kinds) == 1:
        parts.append(f"recompute={kinds.pop()}")
    return ",".join(parts)
