"""Reports of `planner explain`: limits that clash, neighbours, prices, fronts."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner.report.heading import Heading
from planner.report.tables import layout_table, section, sentences
from planner.specs.answer.explanation import (
    Binding,
    Change,
    Explained,
    FrontPoint,
    Judgement,
    Relaxation,
)
from planner.specs.answer.result import RankedPlan, Tie
from planner.specs.layouts.layout import Layout
from planner.specs.layouts.layout_text import short_layout

SHOWN_STAGES = 4
"""Ranks of the longest pipeline of which every rank is told. [1]"""


def explanation_report(answer: Explained, title: Heading) -> RenderableType:
    """Limits that clash and changes that help, or reasons why the best plan wins."""
    body = _feasible(answer) if answer.feasible else _infeasible(answer)
    return Group(
        Text(str(title), style="bold"),
        Text(title.job, style="dim"),
        *body,
        *_listed("Not looked at to the end", answer.left_out),
        *_listed("Warnings", [*answer.warnings, *filter(None, [answer.safe])]),
    )


def _listed(title: str, lines: Sequence[str]) -> Iterator[RenderableType]:
    if lines:
        yield section(title, sentences(lines))


def _infeasible(answer: Explained) -> Iterator[RenderableType]:
    if answer.status == "unknown":
        return
    yield section("Cannot hold together", Text(answer.conflict_text))
    need = answer.need
    if need is not None:
        told = (
            f"No layout of the space holds less than {need.at_least_gib:.1f} GiB; the "
            f"most frugal one known reaches {need.reached_gib:.1f} GiB, a GPU has "
            f"{need.capacity_gib:.1f} GiB."
        )
        yield section("Least memory", sentences([told]))
    yield section("What would help, the cheapest first", _helps(answer.relaxations))


def _helps(found: Sequence[Relaxation]) -> RenderableType:
    if not found:
        return Text("no single change and no pair of changes that was tried")
    rows = [
        (each.change, f"{each.effect}\n--set {' --set '.join(each.assignments)}")
        for each in found
    ]
    return _table(("change", "then"), rows)


def _feasible(answer: Explained) -> Iterator[RenderableType]:
    best = answer.best
    assert best is not None
    if answer.given is not None:
        yield section("The given layout", _judgement(answer.given))
    step = best.estimate.step_time_s.value
    yield section(
        f"Best plan ({answer.status}), {step:.3f} s a step", layout_table(best.layout)
    )
    yield from _listed("Why it won", [answer.runner_up] if answer.runner_up else [])
    if answer.tie is not None:
        yield section("Tie", _tied(answer.tie, robust=answer.robust))
    yield section("What binds it", sentences(list(_bound(answer.binding))))
    beside = [(each.change, each.effect) for each in answer.neighbours]
    yield section("Why not a neighbour", _table(("change", "then"), beside))
    prices = [(each.limit, each.effect) for each in answer.limits]
    if prices:
        yield section("What each limit costs", _table(("limit", "price"), prices))
    better = [(each.change, each.effect) for each in answer.sensitivities]
    yield section("On a better machine", _table(("with", "effect"), better))
    yield section("Step time against memory", _front(answer.memory_front, best))
    yield section("Step time against GPUs", _front(answer.gpu_front, best))


def _tied(tie: Tie, *, robust: bool) -> RenderableType:
    """Every plan of a tie, and how one of them is chosen."""
    rows = [
        (
            f"{plan.slower:+.2%}",
            f"{plan.error:.1%}",
            f"{plan.free_gib:.1f}",
            str(plan.axes),
            _layout(plan.layout),
        )
        for plan in tie.plans
    ]
    names = ("slower", "off by", "free GiB", "axes", "layout")
    chosen = "The plan above was chosen" if robust else "--robust on would choose"
    told = f"The cost model cannot tell these apart. {chosen} by {tie.rule}."
    return Group(sentences([told]), _table(names, rows))


def _layout(layout: Layout) -> str:
    """The short form with room to break a line in; `--layout` reads it in quotes."""
    return short_layout(layout).replace(",", ", ")


def _judgement(given: Judgement) -> RenderableType:
    saved = (
        f"the best plan would save {given.gain:.1%}"
        if given.gain
        else "no plan found is faster and fits"
    )
    lines = [
        f"{given.step_time_s:.3f} s a step, {given.device_gib:.1f} GiB "
        f"({given.verdict}); {saved}.",
        *given.wrong,
    ]
    if given.fewest is not None:
        few = _brought(given.fewest, given.gain)
        lines.append(f"Fewest changes that take most of it: {few}.")
        if given.single is not None and len(given.fewest.changes) > 1:
            lines.append(f"Best single change: {_brought(given.single, given.gain)}.")
    return Group(layout_table(given.layout), sentences(lines))


def _brought(change: Change, gain: float) -> str:
    share = f"{change.share:.0%} of that" if gain else "and then it fits"
    return f"{', '.join(change.changes)}: {change.step_time_s:.3f} s, {share}"


def _bound(bindings: Sequence[Binding]) -> Iterator[str]:
    """Every rank, or of a long pipeline the ends, the fullest and the busiest."""
    shown = set(range(len(bindings)))
    if len(bindings) > SHOWN_STAGES:
        fullest = max(bindings, key=lambda each: each.device_gib)
        busiest = max(bindings, key=lambda each: each.busy)
        shown = {0, fullest.stage, busiest.stage, len(bindings) - 1}
    for each in bindings:
        if each.stage in shown:
            yield f"Stage {each.stage} {_verb(each)}{each.text}."


def _verb(bound: Binding) -> str:
    return "" if bound.resource == "waiting" else "is bound by "


def _front(points: Sequence[FrontPoint], best: RankedPlan) -> RenderableType:
    """Points of a front, with step and GPU time relative to the best plan."""
    step, gpus = best.estimate.step_time_s.value, best.layout.gpus
    rows = [
        (
            f"{point.step_time_s:.3f}",
            f"{point.step_time_s / step - 1:+.1%}",
            f"{point.gpus:,}",
            f"{point.step_time_s * point.gpus / (step * gpus) - 1:+.1%}",
            f"{point.device_gib:.1f}",
            f"{point.headroom_gib:.1f}",
            _layout(point.layout),
        )
        for point in points
    ]
    names = ("step s", "slower", "GPUs", "GPU time", "GiB", "free", "layout")
    return _table(names, rows)


def _table(names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    for name in names:
        table.add_column(name, header_style="dim", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
