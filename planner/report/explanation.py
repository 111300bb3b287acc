"""The answer of `planner explain`: limits that clash, or why the best plan wins."""

from collections.abc import Iterator, Sequence

from planner.cost.workload import Workload
from planner.document.blocks import (
    Block,
    Chart,
    Document,
    Facts,
    Folded,
    Section,
    Table,
    Tile,
    listed,
    section,
)
from planner.report.charts.choices import (
    NEIGHBOUR_LEGEND,
    TORNADO_LEGEND,
    neighbour_chart,
    tornado,
)
from planner.report.heading import Heading
from planner.report.sections.costs import tiles
from planner.report.sections.layout import plan_sections
from planner.report.sections.sources import assumptions_section
from planner.report.sections.ties import front_parts, tie_parts
from planner.report.vocabulary import layout_line
from planner.specs.answer.explanation import Binding, Change, Explained, Judgement
from planner.specs.answer.result import RankedPlan
from planner.specs.layouts.layout_text import layout_rows

SHOWN_STAGES = 4
"""Ranks of the longest pipeline of which a terminal shows every rank. [1]"""


def explanation_document(
    answer: Explained, title: Heading, pictured: Workload | None = None
) -> Document:
    """Limits that clash and changes that help, or reasons why the best plan wins.

    Args:
        answer: The answer. [-]
        title: Heading of the job. [-]
        pictured: The job, for pictures and sources; none for a document in text. [-]
    """
    best = answer.best
    status = {"infeasible": "nothing fits", "unknown": "no plan in time"}
    verdict = status.get(answer.status, answer.status)
    lead = answer.conflict_text
    if best is not None:
        verdict = f"{best.estimate.step_time_s.value:.2f} s a step, and why"
        lead = f"The best plan is {answer.status}: {layout_line(best.layout)}."
        lead = f"{lead} {answer.runner_up}"
    return Document(
        title=f"planner explain: {title.model}",
        eyebrow=title.line,
        answer=f"{title.model} on {title.on}: {verdict}",
        lead=lead.strip(),
        tiles=tiles(best.estimate) if best else list(_need(answer)),
        sections=[*(_reasons(answer, best, pictured) if best else _conflict(answer))],
    )


def _need(answer: Explained) -> Iterator[Tile]:
    need = answer.need
    if need is None:
        return
    yield Tile("A GPU has", f"{need.capacity_gib:.1f} GiB", "")
    least = "proven over the whole space"
    yield Tile("Any layout needs", f"{need.at_least_gib:.1f} GiB", least, "bad")
    reached = "of the most frugal layout known"
    yield Tile("Reached", f"{need.reached_gib:.1f} GiB", reached)


def _conflict(answer: Explained) -> Iterator[Section]:
    """Limits that clash, and changes that help."""
    limits = [(limit.field, limit.limit) for limit in answer.conflict]
    if limits:
        lead = "Without any one of these a layout would fit."
        table = Table(("where it stands", "limit"), limits, words=2)
        yield Section("conflict", "Conflicting limits", [table], lead)
    if answer.contradiction is not None:
        nearest = listed("", answer.contradiction.nearest)
        yield from section("nearest", "What would go", nearest)
    rows = [
        (
            each.change,
            each.effect,
            "\n".join(f"--set {a}" for a in each.assignments),
        )
        for each in answer.relaxations
    ]
    columns = ("change", "then", "as an option")
    if rows:
        lead = "Each change was searched, the cheapest first."
        helps = [Table(columns, rows, words=3)]
        yield Section("relaxations", "What would help", helps, lead)
    elif answer.status == "infeasible":
        none = ["no single change and no pair of changes that was tried"]
        yield Section("relaxations", "What would help", listed("", none))
    yield from _small_print(answer)


def _small_print(answer: Explained) -> list[Section]:
    warnings = [*answer.warnings, *filter(None, [answer.safe])]
    parts = listed("Not looked at to the end", answer.left_out)
    return section("notes", "Notes", [*parts, *listed("Warnings", warnings)])


def _reasons(
    answer: Explained, best: RankedPlan, pictured: Workload | None
) -> Iterator[Section]:
    if answer.given is not None:
        yield _judged(answer.given)
    binds = [*_binding(answer.binding), *tie_parts(answer.tie, robust=answer.robust)]
    yield from section("binding", "What binds it", binds)
    yield from _neighbours(answer)
    prices = _pairs(("limit", "price"), [(x.limit, x.effect) for x in answer.limits])
    yield from section("limits", "What each limit costs", prices)
    yield from _machine(answer)
    fronts = front_parts(best, answer.memory_front, answer.gpu_front)
    lead = "Plans that no other beats in both measures."
    yield from section("fronts", "Trade-offs (Pareto fronts)", fronts, lead)
    yield from plan_sections(best, (), pictured)
    yield from _small_print(answer)
    yield assumptions_section(best, (), pictured)


def _pairs(columns: tuple[str, str], rows: Sequence[tuple[str, str]]) -> list[Block]:
    return [Table(columns, rows, words=2)] if rows else []


def _judged(given: Judgement) -> Section:
    """The layout that the user gave, beside the best."""
    saved = (
        f"the best plan would save {given.gain:.1%}"
        if given.gain
        else "no plan found is faster and fits"
    )
    lead = (
        f"{given.step_time_s:.3f} s a step, {given.device_gib:.1f} GiB "
        f"({given.verdict}); {saved}."
    )
    changes = [("fewest changes", given.fewest)]
    if given.fewest is not None and len(given.fewest.changes) > 1:
        changes.append(("best single change", given.single))
    rows = [(name, _changed(each, given.gain)) for name, each in changes if each]
    parts = [
        Facts(layout_rows(given.layout)),
        *listed("What is wrong with it", given.wrong),
        *_pairs(("what", "brings"), rows),
    ]
    return Section("given", "The given layout", parts, lead)


def _changed(change: Change, gain: float) -> str:
    share = f"{change.share:.0%} of the gain" if gain else "and then it fits"
    return f"{', '.join(change.changes)}: {change.step_time_s:.3f} s, {share}"


def _binding(bindings: Sequence[Binding]) -> Iterator[Block]:
    """Ends, the fullest and the busiest rank of a long pipeline, then every rank."""
    if not bindings:
        return
    notable = {0, len(bindings) - 1}
    notable.add(max(bindings, key=lambda each: each.device_gib).stage)
    notable.add(max(bindings, key=lambda each: each.busy).stage)
    is_long = len(bindings) > SHOWN_STAGES
    shown = [each for each in bindings if not is_long or each.stage in notable]
    yield _bound(shown)
    if is_long:
        yield Folded("Every stage", [_bound(bindings)], is_appendix=True)


def _bound(bindings: Sequence[Binding]) -> Table:
    rows = [
        (f"{each.stage}", each.text, f"{each.busy:.1%}", f"{each.device_gib:.1f}")
        for each in bindings
    ]
    return Table(("stage", "bound by", "busy", "GiB"), rows, words=2)


def _neighbours(answer: Explained) -> list[Section]:
    neighbours = answer.neighbours
    words = _pairs(("change", "then"), [(x.change, x.effect) for x in neighbours])
    parts = [Folded("In words", words)] if words else []
    charts = []
    if any(each.slower is not None for each in neighbours):
        figure = neighbour_chart(neighbours)
        charts = [Chart(figure, "The best plan with one change", NEIGHBOUR_LEGEND)]
    return section("neighbours", "Why not a neighbour", [*charts, *parts])


def _machine(answer: Explained) -> list[Section]:
    better = answer.sensitivities
    if not better:
        return []
    chart = Chart(tornado(better), "What one better number would save", TORNADO_LEGEND)
    words = _pairs(("with", "effect"), [(x.change, x.effect) for x in better])
    return section("machine", "On a better machine", [chart, Folded("In words", words)])
