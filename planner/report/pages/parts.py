"""Sections that pages of a plan share: layout, timeline, time, memory, assumptions."""

from collections.abc import Iterator, Sequence

from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.document.blocks import (
    Block,
    Chart,
    Facts,
    Folded,
    Mood,
    Notes,
    Racks,
    Section,
    Table,
    Tile,
)
from planner.report.charts.gantt import gantt, left_out, legend, windows
from planner.report.charts.racks import (
    Ranks,
    hosted,
    level_names,
    picture,
    reaches,
    shares,
)
from planner.report.charts.shares import (
    memory_moments,
    memory_stages,
    rank_times,
    step_causes,
    waterfall,
)
from planner.report.charts.timeline import Timeline, timeline, too_long
from planner.report.heading import Heading
from planner.report.pages.sources import constants_sheet, source_sheets
from planner.report.tables import CATEGORIES, verdict_line
from planner.specs.answer.estimate import Estimate, MemoryEstimate, Verdict
from planner.specs.answer.memory import ServingEstimate
from planner.specs.answer.result import RankedPlan
from planner.specs.counted import counted
from planner.specs.layouts.layout import Layout
from planner.specs.layouts.layout_text import layout_rows

MOODS: dict[Verdict, Mood] = {"fits": "good", "at-risk": "warn", "oom": "bad"}
"""Verdict to the colour of its tile. [text]"""
PLAIN = {
    "tensor": "parts of a layer (tensor)",
    "pipeline": "stages in a row (pipeline)",
    "context": "parts of a sequence (context)",
    "expert": "groups of experts (expert)",
    "data": "copies of the model (data)",
    "ZeRO stage": "states shared out (ZeRO stage)",
    "micro-batch": "at once (micro-batch)",
    "grad accumulation": "in turn (gradient accumulation)",
    "rank order": "innermost first (rank order)",
    "recompute": "computed twice (recompute)",
}
"""Name of a part of a layout to plain words for it. [text]"""


def eyebrow(title: Heading) -> str:
    """Heading of a job on one line."""
    return f"{title}; {title.job}"


def tiles(estimate: Estimate) -> list[Tile]:
    """The main numbers of an estimate."""
    step, memory = estimate.step_time_s, estimate.memory
    mfu = estimate.mfu
    return [
        Tile(
            "Step time",
            f"{step.value:.3f} s",
            f"between {step.low:.3f} and {step.high:.3f} s",
        ),
        Tile(
            "Throughput",
            f"{estimate.tokens_per_s:,.0f}",
            f"tokens/s, {estimate.tokens_per_s_per_gpu:,.0f} per GPU"
            + (f"; {estimate.padding.words}" if estimate.padding else ""),
        ),
        Tile(
            "Share of peak (MFU)",
            f"{mfu.full_attention:.1%}",
            f"with full attention; {mfu.causal_attention:.1%} causal, "
            f"{estimate.model_tflops_per_gpu.full_attention:.0f} TFLOP/s per GPU",
        ),
        memory_tile(memory),
    ]


def memory_tile(memory: MemoryEstimate | ServingEstimate) -> Tile:
    """Peak memory of the fullest GPU against the limit.

    Args:
        memory: Peak memory. [GiB]
    """
    peak = memory.peak_device_gib
    return Tile(
        "Memory",
        f"{peak.value:.1f} GiB",
        f"{memory.verdict}: {peak.low:.1f} to {peak.high:.1f} of "
        f"{memory.capacity_gib:.1f} GiB",
        MOODS[memory.verdict],
    )


def plan_sections(
    workload: Workload, plan: RankedPlan, why: Sequence[str] = ()
) -> Iterator[Section]:
    """Everything about one plan: topology, timeline, memory and time."""
    yield layout_section(workload, plan, why)
    if words := too_long(plan.layout):
        yield Section("timeline", "One step of the pipeline", [Notes([words])])
    else:
        yield timeline_section(timeline(workload, plan.layout))
    yield memory_section(plan.estimate.memory)
    yield time_section(plan.estimate)


def layout_section(
    workload: Workload, plan: RankedPlan, why: Sequence[str] = ()
) -> Section:
    """The layout, and on which parts of the cluster its ranks lie.

    Returns:
        The section. [-]
    """
    rows = plain_rows(plan.layout)
    if plan.chosen:
        rows.append(("chosen", plan.chosen))
    parts: list[Block] = [Facts(rows)]
    parts += [Notes(why, "Why this layout")] if why else []
    for ranks in hosted(workload, plan.layout):
        parts += _lying(ranks, plan.layout)
    return Section("layout", "The layout on the topology", parts)


def plain_rows(layout: Layout) -> list[tuple[str, str]]:
    """Parts of a layout in plain words, with those of practitioners in brackets."""
    return [
        (PLAIN.get(name, name), value.removesuffix(" (innermost first)"))
        for name, value in layout_rows(layout)
    ]


def _lying(ranks: Ranks, layout: Layout) -> Iterator[Block]:
    yield Notes(
        shares(ranks), f"Pool {ranks.name}" if ranks.name else "Who shares what"
    )
    names = level_names(ranks)
    rows = tuple(
        (axis, f"{size:,}", *(f"{units:,}" for units in touched))
        for axis, size, touched in reaches(ranks)
    )
    columns = ("group", "ranks", *(f"{name}s touched" for name in names))
    if rows:
        yield Table(columns, rows)
    racks, hidden = picture(ranks)
    more = f" {hidden:,} more of its {names[0]}s are not drawn." if hidden else ""
    drawn = (gpu for rack in racks for node in rack.nodes for gpu in node.gpus)
    mixed = any(not gpu.ours for gpu in drawn)
    others = " Outlined GPUs belong to other replicas." if mixed else ""
    yield Racks(racks)
    yield Notes(
        [
            f"Drawn: {names[0]}s in which the first of {layout.dp:,} replicas lies. "
            f"Each square is a GPU, its number the pipeline rank.{others}{more}"
        ]
    )


def timeline_section(step: Timeline) -> Section:
    """One step as the schedule simulator runs it."""
    figure, meaning = rank_times(step)
    parts: list[Block] = [
        Chart(
            figure,
            "Where the step of every pipeline rank goes",
            meaning,
            "End of step: the optimizer, the host's work, and what collectives took "
            "from the kernels that they ran beside.",
        )
    ]
    kinds = legend(step)
    parts += [Chart(gantt(step, w), w.title, kinds) for w in windows(step)]
    said = [
        "Amber between operations is communication that a rank waits for; the thin "
        "amber line below them is communication that hides behind kernels. Exchanges "
        "of the tensor, context and expert axes are part of the operations."
    ]
    if hidden := left_out(step):
        said.append(hidden)
    if step.slowdown != 1:
        said.append(
            f"The simulated step takes {step.makespan / 1e9:.3f} s; {step.reason} make "
            f"it {step.step_s:.3f} s."
        )
    parts.append(Notes(said))
    return Section(
        "timeline",
        "One step of the pipeline",
        parts,
        f"{len(step.operations):,} operations on "
        f"{counted(step.ranks, 'pipeline rank')}, from the simulator that prices the "
        "plan.",
    )


def memory_section(memory: MemoryEstimate) -> Section:
    """Memory of every stage against the limit, and of the fullest stage over a run.

    Args:
        memory: Peak memory of every stage. [GiB]

    Returns:
        The section. [-]
    """
    figure, meaning = memory_stages(memory)
    fullest = max(memory.stages, key=lambda stage: stage.device)
    parts: list[Block] = [Chart(figure, "Memory of every pipeline rank", meaning)]
    if fullest.moments:
        title = f"Memory of rank {fullest.stage}, the fullest, over a run"
        kinds = meaning[:-1]
        parts.append(Chart(memory_moments(fullest), title, kinds))
    rows = tuple(
        (
            f"rank {stage.stage}",
            stage.moment,
            *(f"{getattr(stage, name):.2f}" for name in CATEGORIES),
            f"{stage.device:.2f}",
        )
        for stage in memory.stages
    )
    columns = ("GiB", "fullest at", *CATEGORIES, "device")
    parts.append(Folded("Every number", [Table(columns, rows, words=2)]))
    return Section("memory", "Memory", parts, _sentence(verdict_line(memory).plain))


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def time_section(estimate: Estimate) -> Section:
    """Loss of peak FLOP/s by cause, and the step by cause.

    Returns:
        The section. [-]
    """
    figure, meaning = step_causes(estimate)
    return Section(
        "time",
        "From peak to achieved",
        [
            Chart(
                waterfall(estimate),
                "What takes the peak FLOP/s of a GPU",
                (),
                "A cause that takes a share of the step takes that share of the peak; "
                "slower kernels is what they need beyond the model's FLOPs at peak. "
                "Attention is counted in full.",
            ),
            Chart(figure, "The step by cause, on its busiest rank", meaning),
        ],
    )


def assumptions_section(
    workload: Workload, plan: RankedPlan, warnings: Sequence[str] = ()
) -> Section:
    """Assumptions, warnings and sources of a prediction.

    Returns:
        The section. [-]
    """
    estimate, pricing = plan.estimate, Pricing.of(workload, plan.layout)
    parts: list[Block] = [Notes(warnings, "Warnings")] if warnings else []
    parts.append(Notes(estimate.assumptions, "Assumed, and left out"))
    parts += [
        Folded(f"{sheet.title} ({len(sheet.rows)})", [_untitled(sheet)])
        for sheet in (*source_sheets(pricing), constants_sheet(estimate.stack))
    ]
    return Section(
        "assumptions",
        "Assumptions and sources",
        parts,
        "Every number of the hardware with its source; a question mark stands after "
        "one that was not looked up.",
    )


def _untitled(sheet: Table) -> Table:
    return Table(sheet.columns, sheet.rows, sheet.words)
