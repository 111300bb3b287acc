"""The page of `planner explain`: limits that clash, or why the best plan wins."""

from collections.abc import Iterator, Sequence

from planner.cost.workload import Workload
from planner.document.blocks import (
    Block,
    Chart,
    Document,
    Facts,
    Folded,
    Notes,
    Section,
    Table,
    Tile,
)
from planner.report.charts.choices import (
    NEIGHBOUR_LEGEND,
    TORNADO_LEGEND,
    neighbour_chart,
    tornado,
)
from planner.report.heading import Heading
from planner.report.pages.parts import (
    assumptions_section,
    eyebrow,
    plain_rows,
    plan_sections,
    tiles,
)
from planner.report.pages.plan import front_parts, tie_parts
from planner.specs.answer.explanation import Change, Explained, Judgement
from planner.specs.layouts.layout_text import short_layout


def explanation_page(answer: Explained, workload: Workload, title: Heading) -> Document:
    """Limits that clash and changes that help, or reasons why the best plan wins."""
    return (_feasible if answer.best else _infeasible)(answer, workload, title)


def _infeasible(answer: Explained, workload: Workload, title: Heading) -> Document:
    del workload
    said = {"infeasible": "nothing fits", "unknown": "no plan in time"}
    verdict = said.get(answer.status, answer.status)
    return Document(
        title=f"planner explain: {title.model}",
        eyebrow=eyebrow(title),
        answer=f"{title.model} on {title.on}: {verdict}",
        lead=answer.conflict_text,
        tiles=list(_need(answer)),
        sections=[*_conflict(answer), *_helps(answer), *_small_print(answer)],
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
    if answer.conflict:
        rows = tuple((limit.field, limit.limit) for limit in answer.conflict)
        sheet = Table(("where it stands", "limit"), rows, words=2)
        lead = "Without any one of these a layout would fit."
        yield Section("conflict", "What cannot hold together", [sheet], lead)


def _helps(answer: Explained) -> Iterator[Section]:
    contradiction = answer.contradiction
    if contradiction is not None and contradiction.nearest:
        yield Section("nearest", "What would go", [Notes(contradiction.nearest)])
    if answer.relaxations:
        rows = tuple(
            (
                each.change,
                each.effect,
                " ".join(f"--set {a}" for a in each.assignments),
                f"{each.step_time_s:.3f}",
                f"{each.gpus:,}",
            )
            for each in answer.relaxations
        )
        columns = ("change", "then", "as an option", "step s", "GPUs")
        sheet = Table(columns, rows, words=3)
        lead = "Each change was searched, the cheapest first."
        yield Section("relaxations", "What would help", [sheet], lead)


def _small_print(answer: Explained) -> Iterator[Section]:
    parts: list[Block] = []
    if answer.left_out:
        parts.append(Notes(answer.left_out, "Not looked at to the end"))
    if lines := [*answer.warnings, *filter(None, [answer.safe])]:
        parts.append(Notes(lines, "Warnings"))
    if parts:
        yield Section("notes", "Notes", parts)


def _feasible(answer: Explained, workload: Workload, title: Heading) -> Document:
    best = answer.best
    assert best is not None
    step = best.estimate.step_time_s.value
    shape = short_layout(best.layout).replace(",", ", ")
    return Document(
        title=f"planner explain: {title.model}",
        eyebrow=eyebrow(title),
        answer=f"{title.model} on {title.on}: {step:.2f} s a step, and why",
        lead=f"The best plan is {answer.status}: {shape}. {answer.runner_up}",
        tiles=tiles(best.estimate),
        sections=[
            *_judged(answer.given),
            *_binding(answer),
            *_neighbours(answer),
            *_prices(answer),
            *_machine(answer),
            *_fronts(answer),
            *plan_sections(workload, best),
            *_small_print(answer),
            assumptions_section(workload, best),
        ],
    )


def _judged(given: Judgement | None) -> Iterator[Section]:
    """The layout that the user gave, beside the best."""
    if given is None:
        return
    saved = (
        f"the best plan would save {given.gain:.1%}"
        if given.gain
        else "no plan found is faster and fits"
    )
    lead = (
        f"{given.step_time_s:.3f} s a step, {given.device_gib:.1f} GiB "
        f"({given.verdict}); {saved}."
    )
    changes = [("fewest changes", given.fewest), ("best single change", given.single)]
    rows = [(name, _changed(each)) for name, each in changes if each is not None]
    parts: list[Block] = [Facts(plain_rows(given.layout))]
    parts += [Notes(given.wrong, "What is wrong with it")] if given.wrong else []
    if rows:
        parts.append(Table(("what", "brings"), tuple(rows), words=2))
    yield Section("given", "The given layout", parts, lead)


def _changed(change: Change) -> str:
    what = ", ".join(change.changes)
    return f"{what}: {change.step_time_s:.3f} s, {change.share:.0%} of the gain"


def _binding(answer: Explained) -> Iterator[Section]:
    rows = tuple(
        (
            f"stage {each.stage}",
            each.resource,
            each.text,
            f"{each.busy:.1%}",
            f"{each.device_gib:.1f}",
        )
        for each in answer.binding
    )
    columns = ("stage", "bound by", "why", "busy", "GiB")
    parts: list[Block] = []
    if rows:
        parts.append(Table(columns, rows, words=3))
    parts += tie_parts(answer.tie, robust=answer.robust)
    if parts:
        yield Section("binding", "What binds it", parts)


def _neighbours(answer: Explained) -> Iterator[Section]:
    if not answer.neighbours:
        return
    parts: list[Block] = []
    if any(each.slower is not None for each in answer.neighbours):
        figure = neighbour_chart(answer.neighbours)
        parts.append(Chart(figure, "The best plan with one change", NEIGHBOUR_LEGEND))
    rows = tuple((each.change, each.effect) for each in answer.neighbours)
    sheet = Table(("change", "then"), rows, words=2)
    parts.append(Folded("In words", [sheet]))
    yield Section("neighbours", "Why not a neighbour", parts)


def _prices(answer: Explained) -> Iterator[Section]:
    if answer.limits:
        rows = tuple((each.limit, each.effect) for each in answer.limits)
        sheet = Table(("limit", "price"), rows, words=2)
        yield Section("limits", "What each limit costs", [sheet])


def _machine(answer: Explained) -> Iterator[Section]:
    found = answer.sensitivities
    if not found:
        return
    rows = tuple((each.change, each.effect) for each in found)
    sheet = Table(("with", "effect"), rows, words=2)
    yield Section(
        "machine",
        "On a better machine",
        [
            Chart(tornado(found), "What one better number would save", TORNADO_LEGEND),
            Folded("In words", [sheet]),
        ],
    )


def _fronts(answer: Explained) -> Iterator[Section]:
    parts: Sequence[Block] = front_parts(answer.memory_front, answer.gpu_front)
    if parts:
        lead = "Plans that no other beats in both measures."
        yield Section("fronts", "Trade-offs (Pareto fronts)", parts, lead)
