"""The answer of `planner tune`."""

from collections.abc import Iterator

from planner.document.blocks import (
    Document,
    Notes,
    Section,
    Table,
    listed,
    section,
)
from planner.report.screen.verdict import three_digits
from planner.specs.answer.tuning import TunedRun, Tuning
from planner.specs.layouts.layout_text import short_layout

COLUMNS = (
    "run",
    "predicted",
    "measured",
    "expected",
    "faster",
    "gain",
    "GiB",
    "risk",
    "layout",
)
"""Titles of the runs."""
DIFFERING = 0.1
"""Share of a step that differs, for which the error of a comparison is told. [1]"""
ENDING = "--json - prints every figure, -q the name of the run to make."


def tuning_document(answer: Tuning) -> Document:
    """Short runs, what to do next first."""
    runs = [*map(_cells, _ordered(answer))]
    return Document(
        title="planner tune",
        eyebrow=answer.title,
        answer=_sentence(answer),
        lead="",
        sections=[
            Section("runs", "Runs", [Table(COLUMNS, runs, len(COLUMNS))]),
            Section("lessons", "Lessons", [Notes([*_lessons(answer)])]),
            *section("warnings", "Warnings", listed("", answer.warnings)),
        ],
        command=_command(answer) if answer.script else "",
    )


def _sentence(answer: Tuning) -> str:
    """The best run so far and the run to make."""
    spent = f"{answer.spent} of {answer.budget} runs made"
    if answer.status == "started":
        count, most = len(answer.runs), answer.budget
        which = f"{answer.next} first, for {answer.why}"
        return f"{count} runs in {answer.folder}, {most} to be made at most: {which}"
    if answer.best is None:
        best = "No run has a step yet"
    else:
        its = next(run for run in answer.runs if run.name == answer.best)
        assert its.measured_s is not None
        best = f"{its.name} is measured best: {three_digits(its.measured_s)} s a step"
    if answer.next is None:
        return f"{best}; {answer.why} ({spent})"
    return f"{best}; {answer.next} is next, for {answer.why} ({spent})"


def _command(answer: Tuning) -> str:
    """The command that makes the next run, or that starts the best plan."""
    if answer.next is None:
        return f"{answer.script}  # the whole run, as README.md there says"
    return f"{answer.script} && planner tune {answer.folder}"


def _lessons(answer: Tuning) -> Iterator[str]:
    """Lessons of the runs about the model."""
    tenth = f"{answer.spread * DIFFERING**0.5:.1%}"
    off = f"comparing plans that differ by a tenth of a step is off by {tenth}"
    if answer.step_factor is None:
        yield f"By published sweeps, {off}; a measured step by {answer.noise:.1%}."
        return
    yield (
        f"Measured steps are {answer.step_factor:.2f} times those first predicted; "
        f"{off}, a measured step by {answer.noise:.1%}."
    )
    yield (
        "faster: the probability that a run fits and beats the best measured one; "
        "gain: what a measurement of it is expected to save; risk: of running out of "
        "memory, given the runs made."
    )
    if answer.first is not None and answer.calibration:
        yield f"Planned again with {answer.calibration}, {answer.first} is first."
    if answer.added:
        yield f"Plans that are runs now: {', '.join(answer.added)}."


def _ordered(answer: Tuning) -> list[TunedRun]:
    """The best run, the next one, then the others by the expected step."""

    def place(run: TunedRun) -> tuple[bool, bool, float]:
        return run.name != answer.best, run.name != answer.next, run.expected_s

    return sorted(answer.runs, key=place)


def _cells(run: TunedRun) -> tuple[str, ...]:
    measured = run.reason if run.state == "failed" else _seconds(run.measured_s)
    return (
        run.name,
        _seconds(run.predicted_s),
        measured,
        _seconds(run.expected_s),
        _share(run.faster),
        "-" if run.gain is None else f"{run.gain:.2%}",
        f"{run.device_gib:.1f}",
        _share(run.oom_probability),
        short_layout(run.layout).replace(",", ", "),
    )


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{three_digits(value)} s"


def _share(value: float | None) -> str:
    if value is None:
        return "-"
    if 0.01 <= value <= 0.99:
        return f"{value:.0%}"
    return "under 1%" if value < 0.5 else "over 99%"
