"""Sections of a layout: its parts, ranks on the cluster, a step of the pipeline."""

from collections.abc import Iterator, Sequence

from planner.cost.workload import Workload
from planner.document.blocks import (
    Block,
    Chart,
    Facts,
    Notes,
    Racks,
    Section,
    Table,
    listed,
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
from planner.report.charts.shares import rank_times
from planner.report.charts.timeline import Timeline, timeline, too_long
from planner.report.sections.costs import memory_section, time_section
from planner.specs.answer.result import RankedPlan
from planner.specs.counted import counted
from planner.specs.layouts.layout import Layout
from planner.specs.layouts.layout_text import layout_rows


def plan_sections(
    plan: RankedPlan, why: Sequence[str], pictured: Workload | None
) -> Iterator[Section]:
    """Everything about one plan: layout, memory and time, and pictures of a job.

    Args:
        plan: The plan. [-]
        why: Reasons for its layout. [text]
        pictured: Job of the pictures of topology and timeline; none without. [-]
    """
    facts = [*layout_rows(plan.layout), *_chosen(plan)]
    parts = [Facts(facts), *listed("Why this layout", why)]
    if pictured is None:
        yield Section("layout", "The layout", parts)
    else:
        for ranks in hosted(pictured, plan.layout):
            parts += _topology(ranks, plan.layout)
        yield Section("layout", "The layout on the topology", parts)
        yield _step_section(pictured, plan.layout)
    yield memory_section(plan.estimate.memory)
    yield time_section(plan.estimate)


def _chosen(plan: RankedPlan) -> list[tuple[str, str]]:
    return [("chosen", plan.chosen)] if plan.chosen else []


def _topology(ranks: Ranks, layout: Layout) -> Iterator[Block]:
    """The parts of the cluster on which ranks lie, and which axes share them."""
    yield Notes(
        shares(ranks), f"Pool {ranks.name}" if ranks.name else "Who shares what"
    )
    names = level_names(ranks)
    rows = tuple(
        (axis, f"{size:,}", *(f"{units:,}" for units in touched))
        for axis, size, touched in reaches(ranks)
    )
    if rows:
        yield Table(("group", "ranks", *(f"{name}s touched" for name in names)), rows)
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


def _step_section(workload: Workload, layout: Layout) -> Section:
    """One step as the schedule simulator runs it."""
    title = "One step of the pipeline"
    if words := too_long(layout):
        return Section("timeline", title, [Notes([words])])
    step = timeline(workload, layout)
    lead = (
        f"{len(step.operations):,} operations on "
        f"{counted(step.ranks, 'pipeline rank')}, from the simulator that prices the "
        "plan."
    )
    return Section("timeline", title, [*_step_charts(step), _step_notes(step)], lead)


def _step_charts(step: Timeline) -> Iterator[Chart]:
    figure, meaning = rank_times(step)
    yield Chart(
        figure,
        "Where the step of every pipeline rank goes",
        meaning,
        "End of step: the optimizer, the host's work, and what collectives took from "
        "the kernels that they ran beside.",
    )
    kinds = legend(step)
    yield from (Chart(gantt(step, w), w.title, kinds) for w in windows(step))


def _step_notes(step: Timeline) -> Notes:
    lines = [
        "Amber between operations is communication that a rank waits for; the thin "
        "amber line below them is communication that hides behind kernels. Exchanges "
        "of the tensor, context and expert axes are part of the operations."
    ]
    if hidden := left_out(step):
        lines.append(hidden)
    if step.slowdown != 1:
        lines.append(
            f"The simulated step takes {step.makespan / 1e9:.3f} s; {step.reason} make "
            f"it {step.step_s:.3f} s."
        )
    return Notes(lines)
