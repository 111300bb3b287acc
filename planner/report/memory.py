"""The answer of `planner memory`: what a job holds, and the most that fits."""

from planner.document.blocks import (
    Block,
    Document,
    Facts,
    Folded,
    Section,
    Table,
    listed,
)
from planner.planning.reasons import gpus_words
from planner.report.heading import Heading
from planner.report.sections.costs import (
    memory_section,
    memory_tile,
    notable_stages,
    stack_part,
)
from planner.report.vocabulary import layout_line, row_mood
from planner.specs.answer.estimate import MemoryEstimate
from planner.specs.answer.memory import (
    Checkpoint,
    InferenceMemory,
    MethodAnswer,
    TrainingMemory,
)
from planner.specs.counted import counted
from planner.specs.layouts.layout_text import layout_rows

_NONE = "-"
GB_PER_GIB = 2**30 / 1e9


def training_document(answer: TrainingMemory, title: Heading) -> Document:
    """Memory of a training job, and the answers that go with it."""
    judged = "The most frugal legal layout" if answer.chosen else "As given"
    memory = memory_section(answer.memory)
    parts = [*memory.parts, *_moments(answer.memory)]
    return Document(
        title=f"planner memory: {title.model}",
        eyebrow=title.line,
        answer=f"{title.model} on {title.on}: {answer.memory.verdict}",
        lead=f"{judged}: {layout_line(answer.layout)}.",
        tiles=[memory_tile(answer.memory)],
        sections=[
            Section("most", "The most that fits", [Facts(_most_rows(answer))]),
            Section("layout", "Layout", [Facts(layout_rows(answer.layout))]),
            Section("memory", "Memory", parts, memory.lead),
            Section("methods", "By method", [*_methods(answer)]),
            Section(
                "saved", "Checkpoint", [Facts(_checkpoint_rows(answer.checkpoint))]
            ),
            _small_print(answer),
        ],
    )


def serving_document(answer: InferenceMemory, model: str, gpu: str) -> Document:
    """Memory of an inference job, and the answers that go with it."""
    on, asked = f"{answer.gpus} x {gpu}", answer.stack
    (stage,) = answer.memory.stages
    held = stage.model_dump(mode="json", exclude={"stage", "moment"})
    rows = [
        (name.replace("kv_cache", "KV cache").replace("_", " "), f"{gib:.2f}")
        for name, gib in held.items()
    ]
    return Document(
        title=f"planner memory: {model}",
        eyebrow=f"{model} served by {on}; {asked['batch']} sequences of "
        f"{asked['context']} tokens, {asked['weights']} weights, "
        f"{asked['kv_cache']} cache",
        answer=f"{model} on {on}: {answer.memory.verdict}",
        lead=f"Fullest at {stage.moment}.",
        tiles=[memory_tile(answer.memory)],
        sections=[
            Section("most", "The most that fits", [Facts(_most_served_rows(answer))]),
            Section("memory", "Memory of a GPU", [Table(("category", "GiB"), rows)]),
            _small_print(answer),
        ],
    )


def _moments(memory: MemoryEstimate) -> list[Block]:
    """Device memory of the notable stages at every moment, where any is known."""
    stages = notable_stages(memory)
    moments = [
        {str(at.moment): at.device for at in stage.moments} for stage in stages.values()
    ]
    # The stage with most moments lists them in the order of a run.
    ordered = sorted(moments, key=len, reverse=True)
    names = dict.fromkeys(name for each in ordered for name in each)
    cells = ((name, (each.get(name) for each in moments)) for name in names)
    rows = [
        (name, *(_NONE if gib is None else f"{gib:.2f}" for gib in row))
        for name, row in cells
    ]
    columns = ("GiB on the device", *stages)
    return [Folded("Moments", [Table(columns, rows)])] if rows else []


def _methods(answer: TrainingMemory) -> list[Block]:
    """Memory under each method of training, and the least change that fits."""
    columns = ("method", "verdict", "largest model", "GiB", "fewest GPUs", "nodes")
    methods = answer.methods
    moods = [row_mood(method.verdict) for method in methods]
    table = Table(columns, [*map(_method_row, methods)], words=3, moods=moods)
    change = [*filter(None, [_cheapest_words(answer)])]
    return [table, *listed("The least change that fits", change)]


def _method_row(answer: MethodAnswer) -> tuple[str, ...]:
    place = " on host" if answer.offloaded else ""
    return (
        f"{answer.method}, {answer.optimizer}{place}",
        answer.verdict or answer.reason or "not on these GPUs",
        answer.largest_model or "none",
        _NONE if answer.device_gib is None else f"{answer.device_gib:.1f}",
        _needed(answer),
        _NONE if answer.nodes_needed is None else f"{answer.nodes_needed:,}",
    )


def _most_rows(answer: TrainingMemory) -> list[tuple[str, str]]:
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
    return f"{needed}: {layout_line(layout)}"


def _most_served_rows(answer: InferenceMemory) -> list[tuple[str, str]]:
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


def _cheapest_words(answer: TrainingMemory) -> str:
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


def _needed(answer: MethodAnswer) -> str:
    """Fewest GPUs of a method, or why they are not known."""
    if answer.gpus_needed is not None:
        return f"{answer.gpus_needed:,}"
    return "not in time" if answer.is_late else "none"


def _checkpoint_rows(saved: Checkpoint) -> list[tuple[str, str]]:
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


def _small_print(answer: TrainingMemory | InferenceMemory) -> Section:
    parts = [
        *listed("Warnings", answer.warnings),
        *listed("Assumed, and left out", answer.assumptions),
        stack_part(answer.stack),
    ]
    return Section("assumptions", "Assumptions", parts)
