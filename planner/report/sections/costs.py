"""Time and memory of a plan: main numbers, words, and sections with every number."""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

from planner.document.blocks import (
    Block,
    Chart,
    Facts,
    Folded,
    Section,
    Table,
    Tile,
)
from planner.report.charts.shares import (
    memory_moments,
    memory_stages,
    step_causes,
    waterfall,
)
from planner.report.screen.sentences import memory_words
from planner.report.vocabulary import CATEGORIES, CAUSES, MOODS
from planner.specs.answer.estimate import Estimate, MemoryEstimate, StageMemory
from planner.specs.answer.memory import ServingEstimate


def tiles(estimate: Estimate) -> list[Tile]:
    """The main numbers of an estimate."""
    step, mfu, flops = (
        estimate.step_time_s,
        estimate.mfu,
        estimate.model_tflops_per_gpu,
    )
    padding = f"; {estimate.padding.words}" if estimate.padding else ""
    return [
        Tile(
            "Step time",
            f"{step.value:.3f} s",
            f"between {step.low:.3f} and {step.high:.3f} s",
        ),
        Tile(
            "Throughput",
            f"{estimate.tokens_per_s:,.0f}",
            f"tokens/s, {estimate.tokens_per_s_per_gpu:,.0f} per GPU{padding}",
        ),
        Tile(
            "Share of peak (MFU)",
            f"{mfu.full_attention:.1%}",
            f"with full attention; {mfu.causal_attention:.1%} causal, "
            f"{flops.full_attention:.0f} TFLOP/s per GPU "
            f"({flops.causal_attention:.0f} causal), HFU {estimate.hfu:.1%}",
        ),
        memory_tile(estimate.memory),
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


def memory_section(memory: MemoryEstimate) -> Section:
    """Memory of every stage against the limit, and of the fullest stage over a run.

    Args:
        memory: Peak memory of every stage. [GiB]
    """
    figure, meaning = memory_stages(memory)
    fullest = max(memory.stages, key=lambda stage: stage.device)
    parts: list[Block] = [Chart(figure, "Memory of every pipeline rank", meaning)]
    if fullest.moments:
        title = f"Memory of rank {fullest.stage}, the fullest, over a run"
        parts.append(Chart(memory_moments(fullest), title, meaning[:-1]))
    notable = notable_stages(memory)
    parts.append(_memory_table(notable))
    if len(memory.stages) > len(notable):
        every = {f"rank {stage.stage}": stage for stage in memory.stages}
        parts.append(Folded("Every rank", [_memory_table(every)], is_appendix=True))
    return Section("memory", "Memory", parts, f"{memory_words(memory)}.")


def _memory_table(stages: dict[str, StageMemory]) -> Table:
    """Memory by category, and the fullest moments, of some stages."""
    names = (*CATEGORIES, "allocated", "reserved", "device")
    return Table(
        ("GiB", *stages),
        [
            *(
                (name, *(f"{getattr(s, name):.2f}" for s in stages.values()))
                for name in names
            ),
            ("fullest at", *(stage.moment for stage in stages.values())),
            ("then", *map(_runner_up, stages.values())),
        ],
    )


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


def time_section(estimate: Estimate) -> Section:
    """Loss of peak FLOP/s by cause, and the step by cause."""
    figure, meaning = step_causes(estimate)
    peak = Chart(
        waterfall(estimate),
        "What takes the peak FLOP/s of a GPU",
        (),
        "A cause that takes a share of the step takes that share of the peak; slower "
        "kernels is what they need beyond the model's FLOPs at peak. Attention is "
        "counted in full.",
    )
    step = Chart(figure, "The step by cause, on its busiest rank", meaning)
    return Section("time", "From peak to achieved", [peak, step, _causes(estimate)])


def _causes(estimate: Estimate) -> Table:
    """The step as a waterfall of its causes."""
    spent = {CAUSES[name]: value for name, value in estimate.causes_s.items() if value}
    total = sum(spent.values())
    shares = [value / total for value in spent.values()]
    ends = accumulate(shares, initial=0.0)
    rows: Sequence[tuple[str, str, str]] = [
        *(
            (name, f"{value:.3f}", f"{value / total:.1%}")
            for name, value in spent.items()
        ),
        ("step", f"{total:.3f}", "100.0%"),
    ]
    columns = ("cause", "s", "% of step")
    return Table(columns, rows, spans=[*pairwise(ends), (0.0, 0.0)])


def stack_part(stack: Mapping[str, object]) -> Folded:
    """Every constant of the stack in force."""
    rows = [(name, _plain(v)) for name, v in stack.items()]
    return Folded(f"Constants of the stack in force ({len(rows)})", [Facts(rows)])


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "-" if value is None else number_words(value)


def number_words(value: object) -> str:
    """A number in four digits; other values as they are."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:.4g}"
