"""The answer of a folder of short runs, from plans, readings and the decision."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal

from planner.frameworks.sanity import compared
from planner.launch import PlanFile
from planner.questions.tuning.belief import NOISE, Predicted
from planner.questions.tuning.choice import Decision, Standing, decide
from planner.questions.tuning.manifest import ManifestRun
from planner.questions.tuning.readings import SHORT, Reading
from planner.questions.tuning.runs import SCRIPT
from planner.specs.answer.estimate import Estimate
from planner.specs.answer.tuning import State, TunedRun, Tuning
from planner.specs.layouts.layout_text import difference


@dataclass(frozen=True)
class Priced:
    """A run with its price.

    Attributes:
        run: Entry of the manifest. [-]
        found: The run's plan, as first predicted. [-]
        estimate: Prediction of its layout, calibrated where runs were measured. [-]
    """

    run: ManifestRun
    found: PlanFile
    estimate: Estimate

    @property
    def predicted(self) -> Predicted:
        """The run as the choice takes it. [-]."""
        causes = self.estimate.time_breakdown_s.model_dump()
        risk = self.estimate.memory.oom_probability or 0.0
        return Predicted(self.run.name, tuple(causes.values()), risk)


def decided(
    runs: Sequence[Priced], readings: Mapping[str, Reading], budget: int
) -> Decision:
    """Choose the next run."""
    measured = {
        name: its.step_s for name, its in readings.items() if its.step_s is not None
    }
    failed = readings.keys() - measured.keys()
    return decide(
        [one.predicted for one in runs],
        measured,
        failed,
        short=[name for name in failed if readings[name].failure == SHORT],
        budget=budget,
        spread=compared().spread,
    )


def tuning(
    folder: Path,
    title: str,
    runs: Sequence[Priced],
    readings: Mapping[str, Reading],
    decision: Decision,
    *,
    budget: int,
    first: str | None,
    added: Sequence[str] = (),
    calibration: str = "",
    warnings: Sequence[str] = (),
) -> Tuning:
    """Put the answer together.

    Args:
        folder: Folder of the runs. [path]
        title: Model, GPUs and framework. [text]
        runs: The runs, the first choice first. [-]
        readings: Outcome of each run that was made, by name. [-]
        decision: The next run, or the end. [-]
        budget: Most runs. [1]
        first: Run of the first plan of the last search, or None. [text]
        added: Runs that the last search added. [text]
        calibration: File of the factors that were fitted, or empty. [path]
        warnings: Sentences. [text]
    """
    pairs = zip(runs, decision.standings, strict=True)
    return Tuning(
        folder=str(folder),
        title=title,
        status=_status(readings, decision),
        runs=tuple(
            _run(one, its, readings.get(one.run.name), runs[0]) for one, its in pairs
        ),
        next=decision.next,
        best=decision.best,
        first=first,
        why=decision.why,
        spent=len(readings),
        budget=budget,
        added=tuple(added),
        calibration=calibration,
        step_factor=_factor(runs, readings),
        spread=decision.spread,
        noise=NOISE,
        script=_script(folder, decision),
        warnings=tuple(warnings),
    )


def _status(
    readings: Mapping[str, Reading], decision: Decision
) -> Literal["started", "measuring", "settled"]:
    if decision.next is None:
        return "settled"
    return "measuring" if readings else "started"


def _run(
    one: Priced, standing: Standing, read: Reading | None, first: Priced
) -> TunedRun:
    layout, base = one.found.plan.layout, first.found.plan.layout
    return TunedRun(
        name=one.run.name,
        state=_state(read),
        layout=layout,
        framework=one.run.framework,
        settings=one.run.settings,
        differs="" if one is first else difference(layout, base),
        predicted_s=one.estimate.step_time_s.value,
        expected_s=standing.expected_s,
        measured_s=read.step_s if read else None,
        device_gib=one.estimate.memory.peak_device_gib.value,
        oom_probability=standing.risk,
        measured_gib=read.memory_gib if read else None,
        counter=read.counter if read and read.memory_gib is not None else "",
        faster=standing.faster,
        gain=standing.gain,
        reason=read.failure if read else "",
    )


def _state(read: Reading | None) -> State:
    if read is None:
        return "waiting"
    return "failed" if read.step_s is None else "measured"


def _factor(runs: Sequence[Priced], readings: Mapping[str, Reading]) -> float | None:
    """Median of measured over first predicted step; None before the first. [1]."""
    times = [
        read.step_s / one.found.plan.estimate.step_time_s.value
        for one in runs
        if (read := readings.get(one.run.name)) and read.step_s is not None
    ]
    return median(times) if times else None


def _script(folder: Path, decision: Decision) -> str:
    """Command that makes the next run, or that starts the best one whole."""
    if decision.next is not None:
        return shlex.join([str(folder / SCRIPT), decision.next])
    if decision.best is None:
        return ""
    return shlex.join([str(folder / decision.best / "launch.sh")])
