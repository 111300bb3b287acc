"""Reports of a search, of one priced layout, and of a proof that nothing fits."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from planner.report.answers.amounts import amount_words
from planner.report.heading import Heading
from planner.report.run import run_sections
from planner.report.tables import (
    layout_table,
    memory_table,
    removed_table,
    runners_up_table,
    section,
    sentences,
    stack_text,
    throughput_table,
    time_table,
    verdict_line,
)
from planner.report.ties import (
    bought,
    free_rows,
    tie_sentences,
    yours_sentences,
)
from planner.specs.answer.result import Objective, RankedPlan, Result
from planner.specs.answer.run import Run
from planner.specs.reading.layout_line import given_layout


def result_report(result: Result, title: Heading) -> RenderableType:
    """Everything a search found: the plan, why, its cost, its proof, the next best."""
    best = result.plans[0]
    return Group(
        *_title(title),
        section("Best layout", _layout(best)),
        *_why(result),
        *_tie(result),
        *_risk(result),
        *_costs(best),
        *run_sections(result.run),
        section("Proof", certificate(result)),
        *_removed(result),
        *_runners_up(result),
        *_yours(result),
        *_small_print(best, result.warnings),
    )


def prediction_report(
    plan: RankedPlan,
    title: Heading,
    warnings: Sequence[str] = (),
    run: Run | None = None,
) -> RenderableType:
    """Everything predicted of one given layout."""
    return Group(
        *_title(title),
        section("Layout", _layout(plan)),
        *_costs(plan),
        *run_sections(run),
        *_small_print(plan, warnings),
    )


def infeasible_report(result: Result, title: Heading) -> RenderableType:
    """Reasons why a search ended without a plan, with the proof."""
    reasons = result.explanation.infeasible
    parts = [section("Why nothing fits", sentences(reasons))] if reasons else []
    warnings = result.warnings
    return Group(
        *_title(title),
        *parts,
        section("Proof", certificate(result)),
        *_removed(result),
        *([section("Warnings", sentences(warnings))] if warnings else []),
    )


def phases_report(
    parts: Sequence[tuple[str, RenderableType]], run: Run | None
) -> RenderableType:
    """One report for each phase, then the run that they make."""
    count, told = len(parts), []
    for index, (name, report) in enumerate(parts, start=1):
        above = "" if index == 1 else "\n"
        title = f"{above}Phase {index} of {count}: {name}"
        told += [Text(title, style="bold magenta"), report]
    return Group(*told, *run_sections(run))


def quiet_report(plans: Sequence[RankedPlan]) -> str:
    """Layouts alone, each as `--layout` takes it back."""
    return "\n".join(given_layout(plan.layout) for plan in plans)


def certificate(result: Result) -> Text:
    """Guarantee of the search, and the work that it took."""
    search, style = result.search, "green" if result.status == "optimal" else "yellow"
    line = Text(result.status, style=f"bold {style}")
    found = _gap(result.objective) if result.plans else ""
    return line.append(
        f": {found}{search.space:,} candidates in the space{_over(search.variants)}, "
        f"{search.priced:,} priced, "
        f"{search.solved:,} solved, {search.seconds:.1f} s",
        style="default not bold",
    )


def _over(variants: int) -> str:
    return f" of {variants} settings" if variants > 1 else ""


def _gap(objective: Objective) -> str:
    return f"gap {objective.gap:.2%}, bound {amount_words(objective, 'bound')}; "


def _title(title: Heading) -> Iterator[RenderableType]:
    yield Text(str(title), style="bold")
    yield Text(title.job, style="dim")


def _layout(plan: RankedPlan) -> RenderableType:
    """The layout, and below it the chosen settings and offload, if any."""
    table = layout_table(plan.layout)
    return Group(table, Text(plan.chosen)) if plan.chosen else table


def _why(result: Result) -> Iterator[RenderableType]:
    told = result.explanation
    if lines := [*filter(None, [told.runner_up, told.needed]), *told.binding]:
        yield section("Why it won", sentences(lines))


def _tie(result: Result) -> Iterator[RenderableType]:
    if lines := tie_sentences(result.tie, robust=result.robust):
        yield section("Tie", sentences(lines))


def _risk(result: Result) -> Iterator[RenderableType]:
    if options := bought(result):
        yield section("More risk", sentences(options))
    if rows := free_rows(result):
        said = (f"{free}: {cost}, {gib} GiB: {its}" for free, cost, gib, its in rows)
        yield section("More memory free", sentences([*said]))


def _costs(plan: RankedPlan) -> Iterator[RenderableType]:
    estimate = plan.estimate
    yield section("Throughput", throughput_table(estimate))
    yield section("Time of one step", time_table(estimate))
    memory = Group(memory_table(estimate.memory), verdict_line(estimate.memory))
    yield section("Memory", memory)


def _removed(result: Result) -> Iterator[RenderableType]:
    if result.search.pruned:
        yield section(
            "Candidates removed, by rule", removed_table(result.search.pruned)
        )


def _yours(result: Result) -> Iterator[RenderableType]:
    """The spec's layout and the plain one, where the spec has a layout."""
    if told := yours_sentences(result):
        yield section("Your layout", sentences(told))


def _runners_up(result: Result) -> Iterator[RenderableType]:
    if len(result.plans) > 1:
        yield section("Runners-up", runners_up_table(result.plans))


def _small_print(plan: RankedPlan, warnings: Sequence[str]) -> Iterator[RenderableType]:
    if warnings:
        yield section("Warnings", sentences(warnings))
    yield section("Stack assumed", stack_text(plan.estimate.stack))
    if plan.estimate.assumptions:
        yield section("Assumptions", sentences(plan.estimate.assumptions))
