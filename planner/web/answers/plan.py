"""Answers of a search: the plan with its page, and the main numbers alone."""

import time
from collections.abc import Callable
from typing import Any

from planner.document.blocks import Document
from planner.errors import BadInputError, UnsupportedPlanError
from planner.launch.brief import LaunchFile
from planner.planning.optimize import Progress
from planner.questions.plan import Plan, Planned
from planner.report.charts.search import SearchState
from planner.report.heading import heading
from planner.report.screen.verdict import planless, verdict
from planner.report.sections.costs import tiles
from planner.specs.answer.result import Result
from planner.specs.layouts.layout_text import short_layout
from planner.web.answers.line import Line, is_robust, line_of
from planner.web.question import Answered, Question, Searching, Summary

Tell = Callable[[Any], object]
PERIOD = 0.2
"""Time between two messages about a search. [s]"""
SHOWN = 200
"""States of a search that a message holds. [1]"""


def plan_answer(question: Question, tell: Tell) -> Answered:
    """Search the plans of a job.

    Raises:
        BadInputError: A field is wrong, or no layout is legal.
    """
    line = line_of(question)
    found = _searched(line, question, tell)
    files, why = _launch(found)
    return _answered(line, found, found.page(0.0), files=files, unwritten=why)


def what_if_answer(question: Question, tell: Tell) -> Answered:
    """Search the plans of a job, for their main numbers alone.

    Returns:
        The numbers, on a page without sections. [-]

    Raises:
        BadInputError: A field is wrong, or no layout is legal.
    """
    line = line_of(question)
    found = _searched(line, question, tell)
    said = summary(found)
    page = Document("", "", said.verdict, said.layout, said.tiles)
    its = found.phases[0].job.workloads[0].training
    usual = {"seq_len": its.seq_len, "global_batch": its.sequences}
    return _answered(line, found, page, more={k: (str(v),) for k, v in usual.items()})


def _answered(line: Line, found: Planned, page: Document, **more: Any) -> Answered:
    return Answered(
        page=page,
        json=found.result.model_dump_json(by_alias=True, indent=2),
        job=line.text(),
        assumed=line.assumed,
        summary=summary(found),
        **more,
    )


def _searched(line: Line, question: Question, tell: Tell) -> Planned:
    asked = Plan(line.job(), robust=is_robust(question))
    return asked.within(question.seconds, question.memory, _telling(tell))


def _telling(tell: Tell) -> Callable[[Progress], None]:
    """Function for a search to call, which sends its states now and then."""
    began, trail = time.monotonic(), list[SearchState]()
    said = began

    def told(state: Progress) -> None:
        nonlocal said
        now = time.monotonic()
        trail.append(SearchState(now - began, state.incumbent_s, state.bound_s))
        if now - said >= PERIOD or len(trail) == 1:
            said = now
            thin = tuple(trail[:: -(-len(trail) // SHOWN)])
            tell(Searching((*thin, trail[-1]), state.candidates_left, state.candidates))

    return told


def _launch(found: Planned) -> tuple[tuple[LaunchFile, ...], str]:
    """The launch folder, or the reason why there is none."""
    if not all(one.plans for one in found.results):
        return (), "there is no plan"
    try:
        return found.launch_files(), ""
    except (BadInputError, UnsupportedPlanError) as error:
        return (), str(error)


def summary(found: Planned) -> Summary:
    """The main numbers of an answer."""
    result = found.results[0]
    job = found.phases[0].job
    if not result.plans:
        return _planless(planless(heading(job.workload_of(None)), result), result)
    best = result.plans[0]
    return Summary(
        layout=short_layout(best.layout).replace(",", ", "),
        verdict=verdict(heading(job.workload_of(best)), [("", best.estimate)]),
        tiles=tuple(tiles(best.estimate)),
        tokens_per_s_per_gpu=best.estimate.tokens_per_s_per_gpu,
        tokens_per_s=best.estimate.tokens_per_s,
        gap=result.objective.gap,
        proven=result.status == "optimal",
    )


def _planless(said: str, result: Result) -> Summary:
    proven = result.status == "infeasible"
    return Summary("", said, (), 0.0, 0.0, 1.0, proven)
