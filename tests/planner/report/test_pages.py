"""Pages stand alone, hold what was found, and draw what plotly knows."""

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from plotly.graph_objects import Figure
from rich.console import Console

from planner.cost.workload import Workload
from planner.document.blocks import Chart, Document, Facts, Notes, Pick
from planner.report.charts.plots import plots
from planner.report.charts.search import SearchState
from planner.report.charts.shares import waterfall
from planner.report.charts.timeline import Timeline, timeline
from planner.report.explanation import explanation_document
from planner.report.heading import heading
from planner.report.pages import hosts, page_html
from planner.report.plan import CHARTED, Pictures, plan_document
from planner.report.screen import PhaseAnswer
from planner.specs.answer.explanation import (
    Binding,
    Explained,
    FrontPoint,
    Limit,
    Need,
    Neighbour,
    Relaxation,
    Sensitivity,
)
from planner.specs.answer.result import (
    Explanation,
    Objective,
    RankedPlan,
    Result,
    SearchReport,
)
from planner.specs.layouts.layout_text import layout_rows

Priced = tuple[Workload, RankedPlan]
LARGEST = 2_000_000
"""Size of a page. [B]"""


def result_of(*plans: RankedPlan, status: str = "optimal") -> Result:
    return Result(
        status=status,
        objective=Objective(name="throughput", value=1.0, bound=1.0, gap=0.0),
        search=SearchReport(
            space=100,
            priced=100,
            pruned={"bound above the best": 90, "</script><b>evil</b>": 9},
            solved=1,
            seconds=2.0,
        ),
        plans=plans,
        explanation=Explanation(
            infeasible=("stage 0 needs 90 GiB",),
            runner_up="it beats tp 4",
            binding=("stage 0 is the fullest",),
        ),
    )


def front_of(plan: RankedPlan) -> tuple[FrontPoint, ...]:
    return tuple(
        FrontPoint(
            step_time_s=1.0 + i,
            device_gib=70.0 - 10 * i,
            headroom_gib=10.0 + 10 * i,
            gpus=16 // (i + 1),
            layout=plan.layout,
        )
        for i in range(3)
    )


def planned(priced: Priced) -> Document:
    workload, plan = priced
    front = front_of(plan)
    step = plan.estimate.step_time_s.value
    trail = [
        SearchState(0.5, None, step * 0.8),
        SearchState(1.0, step * 1.2, step * 0.9),
    ]
    other = plan.model_copy(update={"rank": 2, "slower": 0.1, "why": "bubble +1%"})
    pictures = Pictures(workload, trail, front, front, ("cut off",))
    return searched(result_of(plan, other), pictures)


def searched(result: Result, pictures: Pictures) -> Document:
    title = heading(pictures.workload)
    return plan_document([PhaseAnswer.of_search("", title, result)], None, [pictures])


def explained(priced: Priced) -> Document:
    workload, plan = priced
    front = front_of(plan)
    answer = Explained(
        feasible=True,
        status="optimal",
        best=plan,
        binding=(
            Binding(
                stage=0,
                resource="memory",
                text="memory: full",
                device_gib=70.0,
                capacity_gib=80.0,
                busy=0.9,
            ),
        ),
        neighbours=(
            Neighbour(
                change="tp 4 instead of 2",
                field="tp",
                value=4,
                effect="5 % slower",
                legal=True,
                fits=True,
                slower=0.05,
            ),
            Neighbour(
                change="pp 3 instead of 2",
                field="pp",
                value=3,
                effect="does not divide",
                legal=False,
            ),
        ),
        sensitivities=(
            Sensitivity(
                change="+10 % NIC bandwidth",
                effect="saves 1 %",
                step_time_s=0.99,
                gain=0.01,
                best_step_time_s=0.98,
                best_gain=0.02,
                another_wins=True,
            ),
        ),
        memory_front=front,
        gpu_front=front,
    )
    return explanation_document(answer, heading(workload), workload)


def predicted(priced: Priced) -> Document:
    return phased(priced, "")


def phased(priced: Priced, *names: str) -> Document:
    workload, plan = priced
    title, pictures = heading(workload), Pictures(workload)
    answers = [PhaseAnswer(name, title, plan, ("rarely meant",)) for name in names]
    return plan_document(answers, None, [pictures] * len(names))


MAKERS = {"plan": planned, "predict": predicted, "explain": explained}
SECTIONS = {
    "plan": {
        "layout",
        "timeline",
        "memory",
        "time",
        "fronts",
        "search",
        "others",
        "plans",
    },
    "predict": {"layout", "timeline", "memory", "time"},
    "explain": {"binding", "neighbours", "machine", "fronts", "layout", "timeline"},
}


class Reader(HTMLParser):
    """Collects text outside scripts, scripts, and attributes that load something."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.scripts, self.loads = "", [""], list[str]()
        self.ids: list[str] = []
        self.inside = ""
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag
        held = dict(attrs)
        self.tags.append((tag, held))
        self.loads += [str(held[k]) for k in ("src", "href", "srcset") if k in held]
        self.ids += [str(held["id"])] if "id" in held else []
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""
        del tag

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts[-1] += data
        elif self.inside != "style":
            self.text += data


def read(page: Document) -> Reader:
    reader = Reader()
    reader.feed(page_html(page))
    return reader


def coloured(part: Any) -> Any:
    """A figure with a colour in the place of every name of the palette."""
    if isinstance(part, str):
        return "#123456" if part.startswith("@") else part
    if isinstance(part, list | tuple):
        return [coloured(item) for item in part]
    if isinstance(part, dict):
        return {key: coloured(value) for key, value in part.items()}
    return part


def names_of_colours(part: Any) -> set[str]:
    if isinstance(part, str):
        return {part[1:]} if part.startswith("@") else set()
    if isinstance(part, list | tuple | dict):
        held = part.values() if isinstance(part, dict) else part
        return set().union(*map(names_of_colours, held))
    return set()


@pytest.mark.parametrize("kind", MAKERS)
def test_a_page_has_its_sections_and_loads_nothing(kind: str, plan: Priced) -> None:
    """Links lead to its own sections; scripts name no address."""
    page = MAKERS[kind](plan)
    reader = read(page)
    found = {section.id for section in page.sections}
    assert found >= SECTIONS[kind] | {"assumptions"}
    assert [link for link in reader.loads if link.removeprefix("#") not in found] == []
    assert set(reader.ids) >= found
    _, plotly, ours = reader.scripts
    assert "plotly.js" in plotly[:200]
    assert "http" not in ours
    assert f"{plan[1].estimate.step_time_s.value:.3f} s" in reader.text
    missing = [a for a in plan[1].estimate.assumptions if a not in reader.text]
    assert missing == []


@pytest.mark.parametrize("kind", MAKERS)
def test_plotly_knows_every_property_and_the_palette_every_colour(
    kind: str, plan: Priced
) -> None:
    """Figures are plain data; its own classes refuse a misspelt property.

    The part of plotly.js on the page draws every kind of trace.
    """
    page = MAKERS[kind](plan)
    html = page_html(page)
    assert len(html) < LARGEST
    traces: list[Any] = [t for c in page.charts() for t in coloured(c.figure["data"])]
    assert [t for t in traces if f'name:"{t["type"]}"' not in html] == []
    style = html.split("<style>")[1].split("</style>")[0]
    palette = set(re.findall(r"--([a-z-]+):", style))
    for chart in page.charts():
        Figure(**coloured(chart.figure)).to_dict()
        assert names_of_colours(chart.figure) <= palette
        assert {colour for _, colour in chart.legend} <= palette
        assert json.loads(json.dumps(chart.figure)) == chart.figure


def test_sources_of_hardware_and_kernels_are_on_the_page(plan: Priced) -> None:
    workload, priced = plan
    text = read(predicted((workload, priced))).text
    for source in (
        workload.gpu.sources["*"],
        workload.calibration.memory.source,
        workload.framework.profile.source,
        workload.uncertainty.why,
    ):
        assert source in text


def test_reasons_and_words_of_the_field_stand_beside_the_layout(plan: Priced) -> None:
    section = next(each for each in planned(plan).sections if each.id == "layout")
    facts, reasons, *_ = section.parts
    assert isinstance(facts, Facts)
    names = [name for name, _ in facts.rows]
    assert {"tensor", "micro-batch"} <= {*names}
    assert len(facts.rows) == len(layout_rows(plan[1].layout))
    told = ["it beats tp 4", "stage 0 is the fullest"]
    assert reasons == Notes(told, "Why this layout")


def test_any_listed_plan_can_be_picked(plan: Priced) -> None:
    """A button for each; its sheet is there, and that of the best is seen at first."""
    tags = read(planned(plan)).tags
    buttons = [held for tag, held in tags if tag == "input"]
    assert [held["type"] for held in buttons] == ["radio", "radio"]
    assert ["checked" in held for held in buttons] == [True, False]
    sheets = {h["id"]: "hidden" in h for _, h in tags if h.get("class") == "picked"}
    assert sheets == {buttons[0]["value"]: False, buttons[1]["value"]: True}
    charts = [held["id"] for _, held in tags if held.get("class") == "chart"]
    assert len(set(charts)) == len(charts)


def test_a_long_list_has_charts_for_its_first_plans_alone(plan: Priced) -> None:
    workload, best = plan
    plans = [best.model_copy(update={"rank": n}) for n in range(1, 61)]
    page = searched(result_of(*plans), Pictures(workload))
    (pick,) = next(s for s in page.sections if s.id == "plans").parts
    assert isinstance(pick, Pick)
    charted = [any(isinstance(b, Chart) for b in parts) for _, parts in pick.choices]
    assert charted == [True] * CHARTED + [False] * (60 - CHARTED)
    assert len(page_html(page)) < LARGEST


def test_names_cannot_end_a_script(plan: Priced) -> None:
    html = page_html(planned(plan))
    assert "<b>evil</b>" not in html
    assert html.count("</script>") == 2


def test_the_waterfall_ends_at_the_achieved_rate(plan: Priced) -> None:
    """Peak less every loss is what is achieved, and every bar starts at the last."""
    (trace,) = waterfall(plan[1].estimate)["data"]  # type: ignore[misc]
    *falls, achieved = trace["x"]
    assert sum(falls) == pytest.approx(achieved, rel=1e-3)
    ends = [start + fall for start, fall in zip(trace["base"], falls, strict=False)]
    assert trace["base"] == pytest.approx([0.0, *ends[:-1], 0.0], abs=0.05)
    assert falls[0] == pytest.approx(plan[0].peak_flops / 1e12, rel=1e-6)


def test_pages_without_a_plan_say_why(one_rank: Workload) -> None:
    empty = searched(result_of(status="infeasible"), Pictures(one_rank))
    text = read(empty).text
    assert "does not fit" in text
    assert "stage 0 needs 90 GiB" in text


def test_a_conflict_is_shown_with_what_would_help(one_rank: Workload) -> None:
    answer = Explained(
        feasible=False,
        status="infeasible",
        conflict=(Limit(field="training.optimizer", limit="optimizer adamw"),),
        conflict_text="adamw and 24 GiB",
        need=Need(stage=0, at_least_gib=27.9, reached_gib=28.0, capacity_gib=24.0),
        relaxations=(
            Relaxation(
                change="method lora",
                effect="a step of 20 s",
                assignments=("training.method=lora",),
                step_time_s=20.0,
                gpus=4,
                status="optimal",
            ),
        ),
    )
    text = read(explanation_document(answer, heading(one_rank), one_rank)).text
    for part in (
        "nothing fits",
        "optimizer adamw",
        "27.9 GiB",
        "method lora",
        "--set training.method=lora",
    ):
        assert part in text


def printed(plan: RankedPlan, step: Timeline, *, colour: bool) -> str:
    system = "truecolor" if colour else None
    console = Console(width=100, force_terminal=colour, color_system=system)
    with console.capture() as capture:
        console.print(plots(plan.estimate, step))
    return capture.get()


def test_plots_fit_a_terminal_and_need_no_colour(plan: Priced) -> None:
    """Every rank has a bar for its pipeline, its time and its memory."""
    workload, priced = plan
    step = timeline(workload, priced.layout)
    text = printed(priced, step, colour=False)
    assert "\x1b" not in text
    assert "\x1b" in printed(priced, step, colour=True)
    assert max(map(len, text.splitlines())) <= 100
    for rank in range(step.ranks):
        assert text.count(f"rank {rank} ") == 3
    assert "% bubble" in text
    assert "GiB, the limit" in text


def test_a_card_names_the_host_of_an_address() -> None:
    told = hosts("2.97 USD (https://www.a.example/b/c.html) from http://d.example;")
    assert told == "2.97 USD (a.example) from d.example;"


def test_pages_of_phases_are_one_page(plan: Priced) -> None:
    """Each section once for each phase, under its name and an identifier of its own."""
    one = predicted(plan)
    page = phased(plan, "short", "128k")
    ids = [section.id for section in page.sections]
    assert len(set(ids)) == 2 * (1 + len(one.sections))
    titles = {section.title for section in page.sections}
    assert {"short: Memory", "128k: Memory"} <= titles
    assert len({chart.id for chart in page.charts()}) == 2 * len(one.charts())
