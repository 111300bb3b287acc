"""The page of `planner memory`: what a job holds, and the most that fits."""

from planner.document.blocks import Document, Facts, Section, Table
from planner.report.heading import Heading
from planner.report.memory import (
    cheapest_words,
    checkpoint_rows,
    methods_rows,
    most_rows,
    most_served_rows,
)
from planner.report.pages.parts import eyebrow, memory_section, memory_tile
from planner.specs.answer.memory import (
    InferenceMemory,
    TrainingMemory,
)
from planner.specs.layouts.layout_text import short_layout


def training_page(answer: TrainingMemory, title: Heading) -> Document:
    """Memory of a training job, and the answers that go with it."""
    judged = "The most frugal legal layout" if answer.chosen else "As given"
    return Document(
        title=f"planner memory: {title.model}",
        eyebrow=eyebrow(title),
        answer=f"{title.model} on {title.on}: {answer.memory.verdict}",
        lead=f"{judged}: {short_layout(answer.layout).replace(',', ', ')}.",
        tiles=[memory_tile(answer.memory)],
        sections=[
            Section("most", "The most that fits", [Facts(most_rows(answer))]),
            memory_section(answer.memory),
            Section("methods", "By method", [_methods(answer), *_cheapest(answer)]),
            Section("saved", "Checkpoint", [Facts(checkpoint_rows(answer.checkpoint))]),
        ],
    )


def _cheapest(answer: TrainingMemory) -> list[Facts]:
    """The least change that fits, where the job does not."""
    words = cheapest_words(answer)
    return [Facts([("least change that fits", words)])] if words else []


def _methods(answer: TrainingMemory) -> Table:
    """Memory of the job under each method of training."""
    columns = ("method", "verdict", "largest model", "GiB", "fewest GPUs", "nodes")
    rows = tuple(
        (method, said, model, device, gpus, nodes)
        for method, device, said, model, gpus, nodes in methods_rows(answer.methods)
    )
    return Table(columns, rows, words=3)


def serving_page(answer: InferenceMemory, model: str, gpu: str) -> Document:
    """Memory of an inference job, and the answers that go with it."""
    on = f"{answer.gpus} x {gpu}"
    (stage,) = answer.memory.stages
    held = stage.model_dump(mode="json", exclude={"stage", "moment"})
    rows = tuple((name.replace("_", " "), f"{gib:.2f}") for name, gib in held.items())
    return Document(
        title=f"planner memory: {model}",
        eyebrow=f"{model} served by {on}",
        answer=f"{model} on {on}: {answer.memory.verdict}",
        lead=f"Fullest at {stage.moment}.",
        tiles=[memory_tile(answer.memory)],
        sections=[
            Section("most", "The most that fits", [Facts(most_served_rows(answer))]),
            Section("memory", "Memory", [Table(("category", "GiB"), rows)]),
        ],
    )
