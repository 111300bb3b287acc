"""The parts of a report, each a rich renderable."""

from collections.abc import Mapping, Sequence

from rich import box
from rich.bar import Bar
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from planner.specs.answer.estimate import (
    WAIT_WORDS,
    Estimate,
    MemoryEstimate,
    StageMemory,
    Verdict,
)
from planner.specs.answer.result import RankedPlan
from planner.specs.layouts.layout import Layout
from planner.specs.layouts.layout_text import layout_rows, plan_difference

CAUSES = {
    "compute": "compute",
    "tp_comm": "tensor-parallel communication",
    "cp_comm": "context-parallel communication",
    "ep_comm": "expert all-to-all",
    "pp_comm": "pipeline transfers",
    "dp_comm": "data-parallel communication",
    "bubble": "pipeline bubble",
    "recompute": "recompute",
    "optimizer": "optimizer",
    "straggler": "straggler",
    "other": "other",
    **WAIT_WORDS,
}
"""Field of the time breakdown to its name in a report."""
CATEGORIES = (
    "weights",
    "gradients",
    "optimizer",
    "activations",
    "transient",
    "communication",
    "fragmentation",
    "context",
)
"""Memory categories in the order of a report."""
VERDICT_STYLES: dict[Verdict, str] = {
    "fits": "bold green",
    "at-risk": "bold yellow",
    "oom": "bold red",
}

CERTAIN = 0.99
"""Probability above which no more is told. [1]"""

_INDENT = (0, 0, 0, 2)
_BAR_WIDTH = 40


def section(title: str, body: object) -> Table:
    """A bold title over an indented body."""
    grid = Table.grid()
    grid.add_row("")
    grid.add_row(Text(title, style="bold cyan"))
    grid.add_row(Padding(body, _INDENT))  # type: ignore[arg-type]
    return grid


def sentences(lines: Sequence[str]) -> Table:
    """Lines that wrap under their own dash.

    Args:
        lines: Sentences, shape (lines,). [text]
    """
    grid = Table.grid(padding=(0, 1))
    for line in lines:
        grid.add_row("-", Text(line))
    return grid


PAIRED = 10
"""Parts of a layout that stand two in a line; the others may be long. [1]"""


def layout_table(layout: Layout) -> Table:
    """A layout in two columns of parts."""
    grid = Table.grid(padding=(0, 2))
    rows = layout_rows(layout)
    pairs, wide = rows[:PAIRED], rows[PAIRED:]
    for left, right in zip(pairs[::2], pairs[1::2], strict=True):
        grid.add_row(*_dimmed(left), *_dimmed(right))
    for row in wide:
        grid.add_row(*_dimmed(row))
    return grid


def _dimmed(row: tuple[str, str]) -> tuple[Text, Text]:
    return Text(row[0], style="dim"), Text(row[1])


def throughput_table(estimate: Estimate) -> Table:
    """Step time, tokens, FLOP rate and utilisation, both conventions."""
    step, flops = estimate.step_time_s, estimate.model_tflops_per_gpu
    mfu, per_gpu = estimate.mfu, estimate.tokens_per_s_per_gpu
    full, causal = "with full attention", "causal"
    step_text = f"{step.value:.3f} s ({step.low:.3f} to {step.high:.3f})"
    tokens_text = f"{estimate.tokens_per_s:,.0f} tokens/s, {per_gpu:,.0f} per GPU"
    flops_text = f"{flops.full_attention:.0f} {full}, {flops.causal_attention:.0f}"
    mfu_text = f"{mfu.full_attention:.1%} {full}, {mfu.causal_attention:.1%} {causal}"
    rows = [
        ("step time", step_text),
        ("tokens", tokens_text),
        ("TFLOP/s per GPU", f"{flops_text} {causal}"),
        ("MFU", mfu_text),
        ("HFU", f"{estimate.hfu:.1%}"),
    ]
    if estimate.padding:
        rows.append(("padding", estimate.padding.words))
    grid = Table.grid(padding=(0, 2))
    for row in rows:
        grid.add_row(*_dimmed(row))
    return grid


def time_table(estimate: Estimate) -> Table:
    """The step as a waterfall of its causes."""
    spent = {CAUSES[name]: value for name, value in estimate.causes_s.items() if value}
    total = sum(spent.values())
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("cause")
    table.add_column("s", justify="right")
    table.add_column("% of step", justify="right")
    table.add_column("")
    begin = 0.0
    for name, value in spent.items():
        end = begin + value
        bar = Bar(total, begin, end, width=_BAR_WIDTH, color="cyan")
        table.add_row(name, f"{value:.3f}", f"{value / total:.1%}", bar)
        begin = end
    table.add_section()
    table.add_row("step", f"{total:.3f}", "100.0%", "")
    return table


def memory_table(memory: MemoryEstimate) -> Table:
    """Memory by category of the first, the heaviest and the last stage.

    Args:
        memory: Peak memory of every stage. [GiB]
    """
    stages = notable_stages(memory)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("GiB")
    for title in stages:
        table.add_column(title, justify="right")
    for name in CATEGORIES:
        table.add_row(name, *(f"{getattr(s, name):.2f}" for s in stages.values()))
    table.add_section()
    table.add_row("allocated", *(f"{s.allocated:.2f}" for s in stages.values()))
    table.add_row("device", *(f"{s.device:.2f}" for s in stages.values()))
    table.add_row("at", *(s.moment for s in stages.values()), style="dim")
    table.add_row("next", *map(_runner_up, stages.values()), style="dim")
    return table


def _runner_up(stage: StageMemory) -> str:
    """The second fullest moment of a stage and its device memory."""
    others = [m for m in stage.moments if m.moment != stage.moment]
    if not others:
        return ""
    second = max(others, key=lambda moment: moment.allocated)
    return f"{second.moment} {second.device:.2f}"


def notable_stages(memory: MemoryEstimate) -> dict[str, StageMemory]:
    """The first, the heaviest and the last pipeline rank, each once.

    Args:
        memory: Peak memory of every stage. [GiB]
    """
    first, last = memory.stages[0], memory.stages[-1]
    roles = {
        "first": first,
        "heaviest": max(memory.stages, key=lambda s: s.device),
        "last": last,
    }
    names: dict[int, list[str]] = {}
    for role, stage in roles.items():
        names.setdefault(stage.stage, []).append(role)
    by_index = {stage.stage: stage for stage in roles.values()}
    return {
        f"rank {index} ({', '.join(roles_of)})": by_index[index]
        for index, roles_of in names.items()
    }


def verdict_line(memory: MemoryEstimate) -> Text:
    """Verdict on peak memory, with interval, capacity and host memory.

    Args:
        memory: Peak memory. [GiB]
    """
    peak = memory.peak_device_gib
    odds = f", {odds_words(memory)}" if odds_words(memory) else ""
    line = Text(memory.verdict, style=VERDICT_STYLES[memory.verdict])
    return line.append(
        f": peak {peak.value:.1f} GiB ({peak.low:.1f} to {peak.high:.1f}) of "
        f"{memory.capacity_gib:.1f} GiB{odds}; "
        f"reserved {memory.peak_reserved_gib:.1f} GiB{host_words(memory)}",
        style="default not bold",
    )


def odds_words(memory: MemoryEstimate) -> str:
    """Probability that a plan at risk does not fit, in words.

    Returns:
        For example `14% likely not to fit`; empty where no risk is told. [text]
    """
    if memory.verdict != "at-risk" or memory.oom_probability is None:
        return ""
    return f"{memory.oom_probability:.0%} likely not to fit"


def host_words(memory: MemoryEstimate) -> str:
    """Needed and available host memory and NVMe of the fullest node, in words.

    Returns:
        The end of a sentence, empty where all stays on the GPUs. [text]
    """
    host = memory.host
    if host is None:
        return ""

    def part(needed: float, there: float | None) -> str:
        known = "an unknown size" if there is None else f"{there:,.1f} GiB"
        return f"{needed:,.1f} GiB of {known}"

    told = f"; host {part(host.needed_gib, host.available_gib)} a node"
    if not host.nvme_needed_gib:
        return told
    return f"{told}, NVMe {part(host.nvme_needed_gib, host.nvme_available_gib)}"


def runners_up_table(plans: Sequence[RankedPlan]) -> Table:
    """The next best plans, by difference from the best plan.

    Args:
        plans: All plans, rank 1 first, shape (plans,). [-]
    """
    best, *others = plans
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("rank", justify="right")
    table.add_column("against the best", ratio=3)
    table.add_column("step", justify="right", no_wrap=True)
    table.add_column("slower", justify="right", no_wrap=True)
    table.add_column("why", ratio=2)
    for plan in others:
        step = f"{plan.estimate.step_time_s.value:.3f} s"
        changed = plan_difference(plan, best)
        table.add_row(str(plan.rank), changed, step, f"{plan.slower:.2%}", plan.why)
    return table


def likely_words(chance: float) -> str:
    """Probability that a layout is slower."""
    if chance > CERTAIN:
        return f"over {CERTAIN:.0%} likely"
    return f"{max(chance, 1 - CERTAIN):.0%} likely"


def removed_table(pruned: Mapping[str, int]) -> Table:
    """Number of candidates that each rule removed, most first."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(justify="right")
    for rule, count in sorted(pruned.items(), key=lambda item: (-item[1], item[0])):
        grid.add_row(f"{count:,}", Text(rule))
    return grid


def stack_text(stack: Mapping[str, object]) -> Text:
    """Every constant of the stack in force, wrapped."""
    parts = (f"{name} {_short(value)}" for name, value in stack.items())
    return Text(", ".join(parts), style="dim")


def _short(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return "/".join(map(str, value))
    return "-" if value is None else str(value)
