"""An answer stands on one screen: a verdict, what decides, a proof, a command."""

from functools import cache
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from planner.cli import app
from planner.job.resolve import resolve
from planner.planning.optimize import optimize
from planner.report.heading import heading
from planner.report.screen import PhaseAnswer, screen, verdict
from planner.specs.answer.estimate import Interval
from planner.specs.reading.read import read_spec

ROOT = Path(__file__).parents[3]
JOBS = {
    "fits": "tiny-llama-2-a6000",
    "at risk": "llama-3-8b-8-a100",
    "infeasible": "llama-2-7b-4-rtx-4090",
}
SAID = {
    "fits": ("fits 2 x rtx-a6000 with room to spare", "Next best", "under 1%"),
    "at risk": ("may not fit 8 x a100-sxm4-80gb (43% likely", "(tie, ", "at-risk"),
    "infeasible": ("does not fit 4 x rtx-4090: none of 1,272", "Why", "Proven in"),
}
SHIPPED = (
    "deepseek-v3-2048-h800",
    "gpt-oss-120b-64-h200",
    "llama-3.1-405b-two-phases",
    "llama-3.1-70b-512-h100-256-a100",
    "llama-3.1-70b-qlora-2-a6000",
    "llama-3.1-8b-lora-rtx-4090",
    "mixtral-8x22b-64-mi300x",
    "mt-nlg-530b-2240-a100",
)
"""Experts, phases, two kinds of GPU, adapters, and a search that needs longer."""
LINES = 40
"""Lines of a screen. [1]"""


@cache
def answered(kind: str) -> PhaseAnswer:
    """The search of a small job."""
    path = ROOT / "configs" / "jobs" / f"{JOBS[kind]}.yaml"
    workloads = resolve(read_spec(path, ()), file=str(path), base=path.parent)
    return PhaseAnswer.of_search("", heading(workloads[0]), optimize(workloads, top=4))


def text_of(answer: PhaseAnswer, width: int, command: str) -> str:
    console = Console(width=width, markup=False, highlight=False)
    with console.capture() as capture:
        console.print(screen([answer], command=command))
    return capture.get()


@pytest.mark.parametrize("width", [100, 80])
@pytest.mark.parametrize("kind", JOBS)
def test_a_small_job_is_answered_on_one_screen(kind: str, width: int) -> None:
    text = text_of(answered(kind), width, "planner explain job.yaml")
    lines = text.splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= width
    flat = " ".join(text.split())
    assert [part for part in SAID[kind] if part not in flat] == []
    assert "planner explain job.yaml" in flat


def test_a_screen_gives_up_rows_but_neither_verdict_nor_command() -> None:
    """Hundreds of warnings and phases stay within the lines of a screen."""
    answer = answered("at risk")
    crowd = tuple(f"warning {i}" for i in range(300))
    crowded = PhaseAnswer("a", answer.title, answer.plan, crowd, answer.result)
    console = Console(width=100)
    with console.capture() as capture:
        console.print(screen([crowded] * 30, command="planner plan"))
    lines = capture.get().splitlines()
    assert len(lines) <= LINES
    assert lines[0].startswith("llama-3-8b may not fit")
    assert any(line.startswith("Next ") for line in lines)


def test_the_quiet_layout_is_priced_as_the_plan() -> None:
    job = JOBS["at risk"]
    told = CliRunner().invoke(app, ["plan", job, "-q", "--robust", "off"]).stdout
    given = ["predict", job, "--layout", told.strip()]
    assert told.count("\n") == 1
    assert CliRunner().invoke(app, [*given, "-q"]).stdout == told
    step = answered("at risk").plan
    assert step is not None
    figure = f"{step.estimate.step_time_s.value:.3f} s  between"
    assert figure in CliRunner().invoke(app, [*given, "-v"]).stdout


def test_the_next_command_is_the_one_that_was_typed() -> None:
    """With the options of the job, and without those of the output."""
    words = ["--set", "search={tp: 2, pp: 1}", "--top", "2", "--json", "/dev/null"]
    done = CliRunner().invoke(app, ["plan", JOBS["at risk"], *words])
    flat = " ".join(done.stdout.split())
    again = "--set 'search={tp: 2, pp: 1}' --top 2 --out run # writes launch files"
    assert f"Next planner plan {JOBS['at risk']} {again}" in flat
    assert "the default space (tp = 2, pp = 1)" in done.stdout


def test_a_result_that_is_not_proven_says_how_far_it_may_be() -> None:
    answer = answered("fits")
    assert answer.result is not None
    far = answer.result.objective.model_copy(update={"gap": 0.0312})
    found = answer.result.model_copy(update={"status": "feasible", "objective": far})
    told = PhaseAnswer.of_search("", answer.title, found)
    assert "Not proven: at most 3.12% from the best of" in text_of(told, 100, "")


@pytest.mark.slow
@pytest.mark.parametrize("job", SHIPPED)
def test_a_shipped_job_is_answered_on_one_screen(job: str) -> None:
    """Even where the time ends the search, and with its message on stderr."""
    done = CliRunner().invoke(app, ["plan", job, "--time-limit", "5"])
    assert done.exit_code in {0, 3, 4}
    assert 5 < len(done.output.splitlines()) <= LINES
    assert done.stdout.splitlines()[0].startswith(
        ("llama", "megatron", "No plan", job[:3])
    )


@pytest.mark.parametrize(("top", "said"), [(70.0, " with room to spare"), (79.6, "")])
def test_room_to_spare_ends_below_the_card(top: float, said: str) -> None:
    """A layout that ran fits, and its interval may end at the card's memory."""
    answer = answered("fits")
    assert answer.plan is not None
    peak = Interval(value=60.0, low=50.0, high=top)
    held = {"capacity_gib": 79.6, "oom_probability": 0.0, "peak_device_gib": peak}
    whole = answer.plan.estimate
    memory = whole.memory.model_copy(update=held)
    told = verdict(answer.title, [("", whole.model_copy(update={"memory": memory}))])
    assert f"fits 2 x rtx-a6000{said}:" in told
