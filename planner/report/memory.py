"""Reports of `planner memory`: what a job holds, and the most that fits."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner import __version__
from planner.planning.reasons import gpus_words
from planner.report.heading import Heading
from planner.report.tables import (
    VERDICT_STYLES,
    layout_table,
    memory_table,
    notable_stages,
    section,
    sentences,
    stack_text,
    verdict_line,
)
from planner.specs.answer.estimate import MemoryEstimate
from planner.specs.answer.memory import (
    Checkpoint,
    InferenceMemory,
    MethodAnswer,
    ServingEstimate,
    TrainingMemory,
)
from planner.specs.counted import counted
from planner.specs.layouts.layout_text import short_layout

_NONE = "-"
_SERVING = ("weights", "kv_cache", "activations", "communication", "context")
GB_PER_GIB = 2**30 / 1e9


def training_memory_report(answer: TrainingMemory, title: Heading) -> RenderableType:
    """Memory of a training job, and the answers that go with it."""
    memory = answer.memory
    judged = "Layout, the most frugal legal one" if answer.chosen else "Layout"
    return Group(
        Text(str(title), style="bold"),
        Text(title.job, style="dim"),
        section(judged, layout_table(answer.layout)),
        section("Memory", Group(memory_table(memory), verdict_line(memory))),
        *_moments(memory),
        section("The most that fits", _pairs(most_rows(answer))),
        section("By method", methods_table(answer.methods)),
        *_cheapest(answer),
        section("Checkpoint", _pairs(checkpoint_rows(answer.checkpoint))),
        *_small_print(answer.warnings, answer.stack, answer.assumptions),
    )


def inference_memory_report(
    answer: InferenceMemory, model: str, gpu: str
) -> RenderableType:
    """Memory of an inference job, and the answers that go with it."""
    asked = answer.stack
    title = f"{model} served by {answer.gpus} x {gpu}; planner {__version__}"
    job = (
        f"{asked['batch']} sequences of {asked['context']} tokens, {asked['weights']} "
        f"weights, {asked['kv_cache']} cache"
    )
    memory = answer.memory
    return Group(
        Text(title, style="bold"),
        Text(job, style="dim"),
        section("Memory of a GPU", Group(_serving_table(memory), _serves(memory))),
        section("The most that fits", _pairs(most_served_rows(answer))),
        *_small_print(answer.warnings, answer.stack, answer.assumptions),
    )


def _moments(memory: MemoryEstimate) -> Iterator[RenderableType]:
    """Device memory of the notable stages at every moment, where any is known."""
    stages = notable_stages(memory)
    held = [
        {str(at.moment): float(at.device) for at in getattr(stage, "moments", ())}
        for stage in stages.values()
    ]
    # The stage with most moments lists them in the order of a run.
    ordered = sorted(held, key=len, reverse=True)
    names = list(dict.fromkeys(name for moments in ordered for name in moments))
    if not names:
        return
    table = _table("GiB on the device", list(stages))
    for name in names:
        cells = (moments.get(name) for moments in held)
        table.add_row(name, *(_NONE if c is None else f"{c:.2f}" for c in cells))
    yield section("Moments", table)


def most_rows(answer: TrainingMemory) -> list[tuple[str, str]]:
    """The most that fits with everything else as given, name by name."""
    largest = answer.largest
    return [
        ("micro-batch", _count(largest.micro_batch, "sequence")),
        ("sequence", _tokens(largest.seq_len, answer.positions)),
        ("fewest GPUs", _fewest(answer)),
    ]


def _fewest(answer: TrainingMemory) -> str:
    own = answer.methods[0]
    layout = own.layout
    if own.is_late:
        return "not found before the time limit"
    if layout is None or answer.gpus_needed is None:
        return own.reason or "none"
    needed = gpus_words(answer.gpus_needed, answer.gpus_per_node)
    return f"{needed}: {short_layout(layout).replace(',', ', ')}"


def most_served_rows(answer: InferenceMemory) -> list[tuple[str, str]]:
    """The most that a GPU serves with everything else as given, name by name."""
    asked, largest, needed = answer.stack, answer.largest, answer.gpus_needed
    cached = answer.cache_bytes_per_token / 2**10
    return [
        (f"batch at {asked['context']} tokens", _count(largest.batch, "sequence")),
        (
            f"context at batch {asked['batch']}",
            _tokens(largest.context, answer.positions),
        ),
        ("fewest GPUs", _group(needed, answer.gpus_per_node)),
        ("cache", f"{cached:,.1f} KiB a token and GPU"),
    ]


def _group(gpus: int | None, per_node: int) -> str:
    """Fewest GPUs that serve one copy of a model."""
    if gpus is None:
        return "no legal group holds it"
    copies = per_node // gpus
    each = f", {copies} such groups to a node" if copies > 1 else ""
    return f"{gpus_words(gpus, per_node)}, tensor degree {gpus}{each}"


def _tokens(number: int, positions: int | None) -> str:
    """A sequence length, and the model's positions where they are fewer."""
    told = _count(number, "token")
    if positions is None or number <= positions:
        return told
    return f"{told}; the model has {positions:,} positions"


def _count(number: int, unit: str) -> str:
    return counted(number, unit) if number else "none fits"


def _cheapest(answer: TrainingMemory) -> Iterator[RenderableType]:
    words = cheapest_words(answer)
    if words:
        yield section("The least change that fits", sentences((words,)))


def cheapest_words(answer: TrainingMemory) -> str:
    """The least change after which a job fits, and how to ask for it.

    Returns:
        One sentence; empty for a job that fits. [text]
    """
    change = answer.cheapest_change
    if answer.memory.verdict == "fits":
        return ""
    if change is None:
        return (
            "none of the changes tried fits: other methods, shorter sequences, more "
            "nodes"
        )
    fits = change.verdict == "fits"
    odds = "" if fits else f", {change.oom_probability or 0:.0%} likely not to fit"
    lead = "" if fits else "none is safe; of least risk: "
    how = " ".join(change.options)
    return f"{lead}{change.change}: {change.device_gib:.1f} GiB{odds} ({how})"


def methods_table(methods: Sequence[MethodAnswer]) -> Table:
    """Device memory, largest model and fewest GPUs of each method.

    Args:
        methods: Answers, the job's own first, shape (methods,). [-]
    """
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("method")
    table.add_column("device GiB", justify="right")
    table.add_column("verdict")
    table.add_column("largest model")
    table.add_column("fewest GPUs", justify="right")
    table.add_column("nodes", justify="right")
    for answer, (name, device, verdict, *rest) in zip(
        methods, methods_rows(methods), strict=True
    ):
        style = VERDICT_STYLES[answer.verdict] if answer.verdict else "dim"
        table.add_row(name, device, Text(verdict, style=style), *rest)
    return table


def _place(answer: MethodAnswer) -> str:
    return " on host" if answer.offloaded else ""


def methods_rows(methods: Sequence[MethodAnswer]) -> tuple[tuple[str, ...], ...]:
    """Method, device memory, verdict, largest model, fewest GPUs and nodes.

    Args:
        methods: Answers, the job's own first, shape (methods,). [-]
    """
    return tuple(
        (
            f"{answer.method}, {answer.optimizer}{_place(answer)}",
            _NONE if answer.device_gib is None else f"{answer.device_gib:.1f}",
            answer.verdict or answer.reason or "not on these GPUs",
            answer.largest_model or "none",
            _needed(answer),
            _NONE if answer.nodes_needed is None else f"{answer.nodes_needed:,}",
        )
        for answer in methods
    )


def _needed(answer: MethodAnswer) -> str:
    """Fewest GPUs of a method, or why they are not known."""
    if answer.gpus_needed is not None:
        return f"{answer.gpus_needed:,}"
    return "not in time" if answer.is_late else "none"


def checkpoint_rows(saved: Checkpoint) -> list[tuple[str, str]]:
    """Sizes of a checkpoint, name by name.

    Args:
        saved: The checkpoint. [GiB]
    """
    what = "adapters alone" if saved.adapters_only else "weights and optimizer"
    return [
        ("total", f"{_gb(saved.total_gib)}: {what}"),
        ("weights", _gb(saved.weights_gib)),
        ("optimizer", f"{_gb(saved.optimizer_gib)}, master copy and moments"),
        ("a parameter", f"{saved.bytes_per_parameter:.3g} B"),
        ("fullest rank", _gb(saved.per_rank_gib)),
    ]


def _gb(gib: float) -> str:
    return f"{gib * GB_PER_GIB:,.3g} GB" if gib < 1 else f"{gib * GB_PER_GIB:,.1f} GB"


def _serving_table(memory: ServingEstimate) -> Table:
    (stage,) = memory.stages
    table = _table("GiB", [stage.moment])
    for name in _SERVING:
        table.add_row(
            name.replace("kv_cache", "KV cache"), f"{getattr(stage, name):.2f}"
        )
    table.add_section()
    table.add_row("allocated", f"{stage.allocated:.2f}")
    table.add_row("device", f"{stage.device:.2f}")
    return table


def _serves(memory: ServingEstimate) -> Text:
    peak = memory.peak_device_gib
    line = Text(memory.verdict, style=VERDICT_STYLES[memory.verdict])
    return line.append(
        f": peak {peak.value:.1f} GiB ({peak.low:.1f} to {peak.high:.1f}) of "
        f"{memory.capacity_gib:.1f} GiB",
        style="default not bold",
    )


def _table(first: str, others: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(first)
    for title in others:
        table.add_column(title, justify="right")
    return table


def _pairs(rows: Sequence[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2))
    for name, value in rows:
        grid.add_row(Text(name, style="dim"), Text(value))
    return grid


def _small_print(
    warnings: Sequence[str], stack: dict[str, object], assumptions: Sequence[str]
) -> Iterator[RenderableType]:
    if warnings:
        yield section("Warnings", sentences(warnings))
    yield section("Stack assumed", stack_text(stack))
    yield section("Assumptions", sentences(assumptions))
