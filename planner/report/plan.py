"""The answers of `planner plan` and `planner predict`, of one phase or of several."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from planner.cost.workload import Workload
from planner.document.blocks import (
    Block,
    Chart,
    Document,
    Facts,
    Folded,
    Mood,
    Pick,
    Section,
    Table,
    Tile,
    listed,
    section,
)
from planner.report.charts.search import (
    TRAIL_LEGEND,
    SearchState,
    removed_chart,
    trail_chart,
)
from planner.report.screen import PhaseAnswer, opening
from planner.report.screen.sentences import proof_words
from planner.report.sections.costs import memory_section, tiles, time_section
from planner.report.sections.layout import plan_sections
from planner.report.sections.run import run_sections, run_tile
from planner.report.sections.sources import assumptions_section
from planner.report.sections.ties import (
    bought,
    free_rows,
    front_parts,
    tie_parts,
    yours_sentences,
)
from planner.report.vocabulary import BEST, amount_words, layout_line
from planner.specs.answer.explanation import FrontPoint
from planner.specs.answer.result import RankedPlan, Result
from planner.specs.answer.run import Run
from planner.specs.layouts.layout_text import layout_rows, plan_difference

CHARTED = 8
"""Plans of the list with charts, which keeps a page of 16,384 GPUs below 2 MB. [1]"""


@dataclass(frozen=True)
class Pictures:
    """Data of the pictures of one phase, which only pages show.

    Attributes:
        workload: The job, for topology, timeline and sources. [-]
        trail: States that the search reported. [-]
        memory_front: Plans that none beats in step and memory. [-]
        gpu_front: Plans that none beats in step and GPUs. [-]
        left_out: Sentences on fronts that the time limit cut off. [text]
    """

    workload: Workload
    trail: Sequence[SearchState] = ()
    memory_front: Sequence[FrontPoint] = ()
    gpu_front: Sequence[FrontPoint] = ()
    left_out: Sequence[str] = ()


def plan_document(
    answers: Sequence[PhaseAnswer],
    run: Run | None = None,
    pictures: Sequence[Pictures] = (),
) -> Document:
    """Plans of a search or priced layouts, and the run that they make.

    Args:
        answers: Answer of each phase; one without a name where there are none. [-]
        run: The run, None where no tokens are known. [-]
        pictures: Data of pictures of each phase; none for a document in text. [-]
    """
    first, is_one = answers[0], len(answers) == 1
    shown: Sequence[Pictures | None] = pictures or [None] * len(answers)
    parts = [_sections(*pair) for pair in zip(answers, shown, strict=True)]
    whole, title = run_sections(run), first.title
    of_run = [run_tile(run)] if run else []
    command = "predict" if first.result is None else "plan"
    leads = [f"{each.name}: {_lead(each)}" for each in answers]
    return Document(
        title=f"planner {command}: {title.model}",
        eyebrow=title.line,
        answer=opening(answers, run),
        lead=_lead(first) if is_one else " ".join(leads),
        tiles=[*(_tiles(first) if is_one else ()), *of_run],
        sections=[*parts[0][:-1], *whole, *parts[0][-1:]]
        if is_one
        else [*whole, *_phased(answers, parts)],
    )


def _phased(
    answers: Sequence[PhaseAnswer], parts: Sequence[Sequence[Section]]
) -> Iterator[Section]:
    """Main numbers and sections of each phase, its name before their titles."""
    for place, (answer, inside) in enumerate(zip(answers, parts, strict=True), start=1):
        numbers = Section("numbers", "Main numbers", [_facts_of(_tiles(answer))])
        for each in (numbers, *inside):
            title = f"{answer.name}: {each.title}"
            yield replace(each, id=f"phase-{place}-{each.id}", title=title)


def _facts_of(numbers: Sequence[Tile]) -> Facts:
    return Facts([(tile.name, f"{tile.value} ({tile.note})") for tile in numbers])


def _tiles(answer: PhaseAnswer) -> list[Tile]:
    proof = [_proof(answer.result)] if answer.result else []
    return [*(tiles(answer.plan.estimate) if answer.plan else ()), *proof]


def _proof(result: Result) -> Tile:
    search, objective = result.search, result.objective
    gap = f"gap {objective.gap:.2%}, " if result.plans else ""
    effort = f"{search.space:,} candidates, {gap}{search.seconds:.1f} s"
    mood: Mood = "good" if result.status == "optimal" else "warn"
    return Tile("Proof", result.status, effort, mood)


def _lead(answer: PhaseAnswer) -> str:
    plan, result = answer.plan, answer.result
    if plan is None:
        return "`planner explain` says which limits clash and what would help."
    if result is None:
        return f"As given: {layout_line(plan.layout)}."
    best_of = f"the {BEST[result.objective.name]} of {result.search.space:,} candidates"
    proven = {
        "optimal": f"Proven {best_of}",
        "feasible": "The best found in the time given",
    }[result.status]
    if plan.slower > 0:
        proven = f"Chosen among tied plans, {plan.slower:.1%} behind the fastest"
    return f"{proven}: {layout_line(plan.layout)}."


def _sections(answer: PhaseAnswer, pictures: Pictures | None) -> list[Section]:
    """Everything about one phase; assumptions stand last."""
    plan, result = answer.plan, answer.result
    job = pictures.workload if pictures else None
    if plan is None:
        assert result is not None
        reasons = listed("", result.explanation.infeasible)
        return [
            *section("why", "Why nothing fits", reasons),
            *_yours(result),
            _search(result, pictures),
            *section("assumptions", "Warnings", listed("", answer.warnings)),
        ]
    return [
        *plan_sections(plan, _why(result), job),
        *_fronts(plan, pictures),
        *(_of_search(result, pictures) if result else ()),
        assumptions_section(plan, answer.warnings, job),
    ]


def _of_search(result: Result, pictures: Pictures | None) -> Iterator[Section]:
    """The search, what came close, and the spec's own layout."""
    yield _search(result, pictures)
    yield from section("others", "What came close", _others(result))
    if pictures and len(result.plans) > 1:
        yield _picked(result.plans)
    yield from _yours(result)


def _why(result: Result | None) -> list[str]:
    """Reasons for the best plan: what it beats, and what bounds it."""
    if result is None:
        return []
    reasons = result.explanation
    return [*filter(None, [reasons.runner_up, reasons.needed]), *reasons.binding]


def _yours(result: Result) -> list[Section]:
    """The spec's layout: its place, its risk and what differs."""
    return section("yours", "Your layout", listed("", yours_sentences(result)))


def _fronts(best: RankedPlan, pictures: Pictures | None) -> list[Section]:
    if pictures is None:
        return []
    fronts = front_parts(best, pictures.memory_front, pictures.gpu_front)
    parts = [*fronts, *listed("", pictures.left_out)]
    lead = "Plans that no other beats in both measures, each the answer of a search."
    return section("fronts", "Trade-offs (Pareto fronts)", parts, lead)


def _search(result: Result, pictures: Pictures | None) -> Section:
    work = [
        ("priced", f"{result.search.priced:,}"),
        ("solved", f"{result.search.solved:,}"),
    ]
    if result.plans:
        work.append(("bound", amount_words(result.objective, "bound")))
    parts: list[Block] = [Facts(work)]
    trail = pictures.trail if pictures else ()
    if trail and result.plans and result.objective.name == "throughput":
        parts.append(
            Chart(
                trail_chart(trail, result),
                "Best step and bound over time",
                TRAIL_LEGEND,
                "The plan is proven when the lines meet: what is left of the space "
                "cannot be faster.",
            )
        )
    if pruned := result.search.pruned:
        ranked = sorted(pruned.items(), key=lambda item: (-item[1], item[0]))
        rules = Table(("rule", "candidates"), [(r, f"{n:,}") for r, n in ranked])
        parts.append(Chart(removed_chart(pruned), "What removed candidates"))
        parts.append(Folded("Candidates removed, by rule", [rules]))
    return Section("search", "The search", parts, proof_words(result))


def _others(result: Result) -> list[Block]:
    """Runners-up, plans that tie, and plans of more risk or of more memory free."""
    plans = result.plans
    parts: list[Block] = [_runners_up(plans)] if len(plans) > 1 else []
    parts += tie_parts(result.tie, robust=result.robust)
    parts += listed("More risk", [f"{each}." for each in bought(result)])
    if rows := free_rows(result):
        columns = ("more free", "plan", "slower", "GiB")
        parts.append(Table(columns, rows, 2, "More memory free"))
    return parts


def _runners_up(plans: Sequence[RankedPlan]) -> Table:
    best, *others = plans
    rows = [
        (
            str(plan.rank),
            plan_difference(plan, best),
            plan.why,
            f"{plan.estimate.step_time_s.value:.3f}",
            f"{plan.slower:.2%}",
            f"{plan.estimate.memory.peak_device_gib.value:.1f}",
        )
        for plan in others
    ]
    columns = ("rank", "against the best", "why", "step s", "slower", "GiB")
    return Table(columns, rows, 3, "Runners-up")


def _picked(plans: Sequence[RankedPlan]) -> Section:
    """Every plan of the list, of which the reader picks one to look at."""
    best = plans[0]
    names = [f"{best.rank}: the best"] + [
        f"{plan.rank}: {plan_difference(plan, best)} ({plan.slower:+.1%})"
        for plan in plans[1:]
    ]
    sheets = [
        [*_numbers(plan), *(_charts(plan) if place < CHARTED else ())]
        for place, plan in enumerate(plans)
    ]
    choices = list(zip(names, sheets, strict=True))
    lead = "Layout, memory and time of the plan that you pick."
    return Section("plans", "Any of these plans", [Pick("Plan", choices)], lead)


def _numbers(plan: RankedPlan) -> list[Block]:
    """Main numbers and layout of a plan."""
    line = ("as --layout takes it", layout_line(plan.layout))
    layout = Facts([*layout_rows(plan.layout), line])
    return [_facts_of(tiles(plan.estimate)), layout]


def _charts(plan: RankedPlan) -> Iterator[Block]:
    """Charts of memory and time of a plan."""
    for each in (memory_section(plan.estimate.memory), time_section(plan.estimate)):
        yield from (part for part in each.parts if isinstance(part, Chart))
