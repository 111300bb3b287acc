"""The page of `planner plan`: the best plan, its proof, and what came close."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.cost.workload import Workload
from planner.document.blocks import (
    Block,
    Chart,
    Document,
    Facts,
    Folded,
    Notes,
    Pick,
    Section,
    Table,
    Tile,
)
from planner.report.answers.amounts import BEST
from planner.report.charts.choices import front_chart
from planner.report.charts.search import (
    TRAIL_LEGEND,
    SearchState,
    removed_chart,
    trail_chart,
)
from planner.report.heading import Heading
from planner.report.pages.parts import (
    assumptions_section,
    eyebrow,
    memory_section,
    plain_rows,
    plan_sections,
    tiles,
    time_section,
)
from planner.report.screen import planless, verdict
from planner.report.text import certificate
from planner.report.ties import bought, free_rows, tie_sentences, yours_sentences
from planner.specs.answer.explanation import FrontPoint
from planner.specs.answer.result import RankedPlan, Result, Tie
from planner.specs.layouts.layout_text import (
    plan_difference,
    short_layout,
)

CHARTED = 8
"""Plans of the list with charts, which keeps a page of 16,384 GPUs below 2 MB. [1]"""


@dataclass(frozen=True)
class Extras:
    """Data that a page of a plan shows beside the answer.

    Attributes:
        trail: States that the search reported. [-]
        memory_front: Plans that none beats in step and memory. [-]
        gpu_front: Plans that none beats in step and GPUs. [-]
        left_out: Sentences on fronts that the time limit cut off. [text]
    """

    trail: Sequence[SearchState] = ()
    memory_front: Sequence[FrontPoint] = ()
    gpu_front: Sequence[FrontPoint] = ()
    left_out: Sequence[str] = ()


def plan_page(
    result: Result, workload: Workload, title: Heading, extras: Extras
) -> Document:
    """Everything that a search found, or reasons why it found nothing."""
    if not result.plans:
        return _empty(result, title, extras)
    best = result.plans[0]
    return Document(
        title=f"planner plan: {title.model}",
        eyebrow=eyebrow(title),
        answer=verdict(title, [("", best.estimate)]),
        lead=_lead(result, best),
        tiles=[*tiles(best.estimate), _proof(result)],
        sections=[
            *plan_sections(workload, best, _why(result)),
            *_fronts(extras),
            _search(result, extras),
            *_others(result),
            *_listed(result.plans),
            *_yours(result),
            assumptions_section(workload, best, result.warnings),
        ],
    )


def _why(result: Result) -> list[str]:
    """Reasons for the best plan: what it beats, and what bounds it."""
    told = result.explanation
    return [*filter(None, [told.runner_up, told.needed]), *told.binding]


def _lead(result: Result, best: RankedPlan) -> str:
    best_of = f"the {BEST[result.objective.name]} of {result.search.space:,} candidates"
    proven = {
        "optimal": f"Proven {best_of}",
        "feasible": "The best found in the time given",
    }[result.status]
    if best.slower > 0:
        proven = f"Chosen among tied plans, {best.slower:.1%} behind the fastest"
    return f"{proven}: {short_layout(best.layout).replace(',', ', ')}."


def _proof(result: Result) -> Tile:
    good = result.status == "optimal"
    said = (
        f"gap {result.objective.gap:.2%}, {result.search.space:,} candidates, "
        f"{result.search.seconds:.1f} s"
    )
    return Tile("Proof", result.status, said, "good" if good else "warn")


def _empty(result: Result, title: Heading, extras: Extras) -> Document:
    reasons = result.explanation.infeasible
    parts: list[Block] = [Notes(reasons)] if reasons else []
    why = Section("why", "Why nothing fits", parts)
    return Document(
        title=f"planner plan: {title.model}",
        eyebrow=eyebrow(title),
        answer=planless(title, result),
        lead="`planner explain` says which limits clash and what would help.",
        tiles=[_proof(result)],
        sections=[
            *([why] if reasons else []),
            *_yours(result),
            _search(result, extras),
        ],
    )


def _yours(result: Result) -> Iterator[Section]:
    """The spec's layout: its place, its risk and what differs."""
    if told := yours_sentences(result):
        yield Section("yours", "Your layout", [Notes(told)])


def _fronts(extras: Extras) -> Iterator[Section]:
    found = front_parts(extras.memory_front, extras.gpu_front)
    if not found and not extras.left_out:
        return
    yield Section(
        "fronts",
        "Trade-offs (Pareto fronts)",
        [*found, *([Notes(extras.left_out)] if extras.left_out else [])],
        "Plans that no other beats in both measures, each the answer of a search.",
    )


def front_parts(
    memory: Sequence[FrontPoint], gpus: Sequence[FrontPoint]
) -> list[Block]:
    """Both fronts, as far as they have more than one point."""
    parts: list[Block] = []
    pairs = (
        (memory, "headroom_gib", "Step time against free memory"),
        (gpus, "gpus", "Step time against GPUs"),
    )
    for points, measure, name in pairs:
        if len(points) > 1:
            parts.append(Chart(front_chart(points, measure), name))
            parts.append(Folded("Its plans", [_front_sheet(points)]))
    return parts


def _front_sheet(points: Sequence[FrontPoint]) -> Table:
    rows = tuple(
        (
            short_layout(point.layout).replace(",", ", "),
            f"{point.step_time_s:.3f}",
            f"{point.gpus:,}",
            f"{point.device_gib:.1f}",
            f"{point.headroom_gib:.1f}",
        )
        for point in points
    )
    return Table(("plan", "step s", "GPUs", "GiB", "free GiB"), rows)


def _search(result: Result, extras: Extras) -> Section:
    parts: list[Block] = []
    throughput = result.objective.name == "throughput"
    if extras.trail and result.plans and throughput:
        parts.append(
            Chart(
                trail_chart(extras.trail, result),
                "Best step and bound over time",
                TRAIL_LEGEND,
                "The plan is proven when the lines meet: what is left of the space "
                "cannot be faster.",
            )
        )
    if result.search.pruned:
        parts.append(
            Chart(removed_chart(result.search.pruned), "What removed candidates")
        )
        parts.append(Folded("Every rule", [_rules(result)]))
    told = certificate(result).plain
    return Section("search", "The search", parts, f"{told[0].upper()}{told[1:]}.")


def _rules(result: Result) -> Table:
    ranked = sorted(result.search.pruned.items(), key=lambda item: (-item[1], item[0]))
    rows = tuple((rule, f"{count:,}") for rule, count in ranked)
    return Table(("rule", "candidates"), rows)


def _others(result: Result) -> Iterator[Section]:
    """Runners-up, and plans that tie."""
    parts: list[Block] = []
    if len(result.plans) > 1:
        parts.append(_runners_up(result.plans))
    parts += tie_parts(result.tie, robust=result.robust)
    if options := bought(result):
        parts.append(Notes([f"{each}." for each in options], "More risk"))
    if rows := free_rows(result):
        columns = ("more free", "slower", "GiB", "plan")
        parts.append(Table(columns, rows, title="More memory free"))
    if parts:
        yield Section("others", "What came close", parts)


def _runners_up(plans: Sequence[RankedPlan]) -> Table:
    best, *others = plans
    rows = tuple(
        (
            str(plan.rank),
            plan_difference(plan, best),
            plan.why,
            f"{plan.estimate.step_time_s.value:.3f}",
            f"{plan.slower:.2%}",
            f"{plan.estimate.memory.peak_device_gib.value:.1f}",
        )
        for plan in others
    )
    columns = ("rank", "against the best", "why", "step s", "slower", "GiB")
    return Table(columns, rows, 3, "Runners-up")


def _listed(plans: Sequence[RankedPlan]) -> Iterator[Section]:
    """Every plan of the list, of which the reader picks one to look at."""
    if len(plans) < 2:  # a choice is of two at least
        return
    names = [_named(plan, plans[0]) for plan in plans]
    sheets = [
        [*_numbers(plan), *(_charts(plan) if place < CHARTED else ())]
        for place, plan in enumerate(plans)
    ]
    yield Section(
        "plans",
        "Any of these plans",
        [Pick("Plan", list(zip(names, sheets, strict=True)))],
        "Layout, memory and time of the plan that you pick.",
    )


def _named(plan: RankedPlan, best: RankedPlan) -> str:
    if plan is best:
        return f"{plan.rank}: the best"
    return f"{plan.rank}: {plan_difference(plan, best)} ({plan.slower:+.1%})"


def _numbers(plan: RankedPlan) -> list[Block]:
    """Main numbers and layout of a plan."""
    numbers = [
        (tile.name, f"{tile.value} ({tile.note})") for tile in tiles(plan.estimate)
    ]
    words = [("as --layout takes it", short_layout(plan.layout).replace(",", ", "))]
    return [Facts(numbers), Facts([*plain_rows(plan.layout), *words])]


def _charts(plan: RankedPlan) -> list[Block]:
    """Memory and time of a plan."""
    sections = (memory_section(plan.estimate.memory), time_section(plan.estimate))
    return [part for section in sections for part in section.parts]


def tie_parts(tie: Tie | None, *, robust: bool) -> list[Block]:
    """A tie in words, and the tied plans.

    Args:
        tie: The tie, or none. [-]
        robust: True if the first plan was chosen among the tied plans. [-]
    """
    if tie is None:
        return []
    rows = tuple(
        (
            short_layout(plan.layout).replace(",", ", "),
            f"{plan.slower:+.2%}",
            f"{plan.error:.1%}",
            f"{plan.free_gib:.1f}",
            str(plan.axes),
        )
        for plan in tie.plans
    )
    columns = ("plan", "slower", "off by", "free GiB", "axes")
    return [
        Notes(tie_sentences(tie, robust=robust), "A tie"),
        Table(columns, rows),
    ]
