"""The main charts of a plan, small enough for a terminal."""

from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner.document.terminal import titled
from planner.report.charts.timeline import Timeline, time_by_rank
from planner.report.vocabulary import CATEGORIES
from planner.specs.answer.estimate import WAIT_WORDS, Estimate, MemoryEstimate

WIDTH = 64
"""Columns of a bar. [1]"""
SHOWN = 16
"""Pipeline ranks of a chart; of a longer pipeline the first and the last. [1]"""
_TIME = {
    "compute": ("█", "blue"),
    "recompute": ("▓", "cyan"),
    "tp_comm": ("T", "yellow"),
    "cp_comm": ("C", "yellow"),
    "ep_comm": ("E", "yellow"),
    "dp_comm": ("D", "magenta"),
    "gather parameters": ("D", "magenta"),
    "reduce gradients": ("D", "magenta"),
    "pipeline send": ("P", "green"),
    "optimizer": ("o", "magenta"),
    **dict.fromkeys(WAIT_WORDS, ("-", "bright_black")),
    "bubble": ("·", "bright_black"),
}
"""Cause of time in a rank's step to mark and colour."""
_TIME_WORDS = {
    "█": "kernels",
    "▓": "recompute",
    "T": "tensor",
    "C": "context",
    "E": "expert",
    "D": "data parallel",
    "P": "pipeline sends",
    "o": "end of step",
    "-": "waits for the host",
    "·": "bubble",
}
_MEMORY = {
    "weights": ("W", "blue"),
    "gradients": ("G", "blue"),
    "optimizer": ("O", "cyan"),
    "activations": ("█", "yellow"),
    "transient": ("t", "yellow"),
    "communication": ("c", "green"),
    "fragmentation": ("f", "bright_black"),
    "context": ("x", "bright_black"),
}
_GANTT = {
    "forward": ("▒", "cyan"),
    "backward": ("█", "blue"),
    "weight gradient": ("▓", "green"),
    "optimizer": ("o", "magenta"),
}

Marks = Mapping[str, tuple[str, str]]


def plots(estimate: Estimate, step: Timeline, phase: str = "") -> RenderableType:
    """The pipeline, the time and the memory of every rank.

    Returns:
        A renderable, laid out for 100 columns; marks tell what colours do, too. [-]
    """
    of = f" ({phase})" if phase else ""
    return Group(
        titled(f"Pipeline, one step{of}", _pipeline(step)),
        titled(f"Time of every pipeline rank{of}", _times(step)),
        titled(f"Memory of every pipeline rank{of}", _memory(estimate.memory)),
    )


def _ranks(count: int) -> list[int]:
    if count <= SHOWN:
        return list(range(count))
    half = SHOWN // 2
    return [*range(half), *range(count - half, count)]


def _pipeline(step: Timeline) -> RenderableType:
    """Main activity of each rank in each of equal parts of the step."""
    rows = [(f"rank {rank}", _row(step, rank), "") for rank in _ranks(step.ranks)]
    said = f"{step.makespan / 1e9 / WIDTH:.3f} s a mark, by what fills most of it"
    shown = {span.activity for span in step.spans}
    named = {mark: name for name, (mark, _) in _GANTT.items() if name in shown}
    return Group(_grid(rows), _key({**named, "·": "bubble"}), Text(said, style="dim"))


def _row(step: Timeline, rank: int) -> Text:
    cells = [dict.fromkeys(_GANTT, 0.0) for _ in range(WIDTH)]
    width = step.makespan / WIDTH
    for span in step.spans:
        if span.rank != rank or span.activity not in _GANTT:
            continue
        first, last = int(span.start / width), min(int(span.end / width), WIDTH - 1)
        for cell in range(first, last + 1):
            overlap = min(span.end, (cell + 1) * width) - max(span.start, cell * width)
            cells[cell][span.activity] += max(overlap, 0.0)
    line = Text()
    for shares in cells:
        most = max(shares, key=lambda name: shares[name])
        idle = sum(shares.values()) < width / 2
        mark, colour = _TIME["bubble"] if idle else _GANTT[most]
        line.append(mark, style=colour)
    return line


def _times(step: Timeline) -> RenderableType:
    found = {c: t for c, t in time_by_rank(step).items() if c in _TIME}
    rows = []
    for rank in _ranks(step.ranks):
        parts = [(cause, found[cause][rank]) for cause in _TIME if cause in found]
        idle = found.get("bubble", [0.0] * step.ranks)[rank] * 1e9 / step.makespan
        bar = _stacked(parts, step.makespan / 1e9, _TIME)
        rows.append((f"rank {rank}", bar, f"{idle:.1%} bubble"))
    marks = {_TIME[cause][0]: _TIME_WORDS[_TIME[cause][0]] for cause in found}
    return Group(_grid(rows), _key(marks))


def _memory(memory: MemoryEstimate) -> RenderableType:
    most = max(memory.capacity_gib, *(stage.device for stage in memory.stages))
    rows = []
    for index in _ranks(len(memory.stages)):
        stage = memory.stages[index]
        parts = [(name, getattr(stage, name)) for name in CATEGORIES]
        bar = _stacked(parts, most, _MEMORY)
        bar.append(" " * (WIDTH - len(bar)))
        limit = round(memory.capacity_gib / most * WIDTH)
        bar = Text.assemble(bar[: limit - 1], ("|", "red"), bar[limit:])
        rows.append((f"rank {stage.stage}", bar, f"{stage.device:.1f} GiB"))
    marks = {mark: name for name, (mark, _) in _MEMORY.items()}
    limit_word = f"{memory.capacity_gib:.1f} GiB, the limit"
    return Group(_grid(rows), _key({**marks, "|": limit_word}))


def _stacked(parts: Sequence[tuple[str, float]], total: float, marks: Marks) -> Text:
    """A bar whose parts end at the nearest column."""
    line, reached = Text(), 0.0
    for name, value in parts:
        reached += value
        columns = round(reached / total * WIDTH) - len(line)
        mark, colour = marks[name]
        line.append(mark * max(columns, 0), style=colour)
    return line


def _grid(rows: Sequence[tuple[str, Text, str]]) -> Table:
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False, show_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _key(marks: Mapping[str, str]) -> Text:
    return Text("  ".join(_entries(marks)), style="dim")


def _entries(marks: Mapping[str, str]) -> Iterator[str]:
    yield from (f"{mark} {name}" for mark, name in marks.items())
