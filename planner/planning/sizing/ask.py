"""A question of size: GPUs, limits, and a law of the loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from planner.errors import BadInputError
from planner.hardware.reading.files import Catalog
from planner.hardware.reading.units import parse_quantity
from planner.job.calibration_file import CalibrationFile
from planner.job.loading import Job
from planner.job.one_line import ORIGIN, OneLine, job_of, task_named, token_count
from planner.job.scaling_law import Law, law_named
from planner.models import dense_names
from planner.specs.reading.read import assigned

MOST_DAYS = 36500.0
"""Longest run that is looked at, a hundred years. [d]"""
FIRST = 1e12
"""Tokens of a run that only its rate is read from. [token]"""
PURPOSE = "pretraining"
"""Task whose sequence, batch and framework are assumed. [text]"""
_ANSWERED = ("model", "phases", "inference", "training.tokens", "training.compute")
"""Fields of a job that the answer decides. [text]"""


@dataclass(frozen=True)
class Ask:
    """A question of size.

    Attributes:
        on: GPUs in any spelling, or a cluster. [text]
        catalog: Files of facts. [-]
        days: Longest run. [d]
        budget: Most money. [USD]
        served: Tokens to be served. [token]
        law: Law of the loss. [-]
        framework: Framework by name; None for the task's. [text]
        network: Network between nodes. [text]
        assignments: `a.b.c=value` each, on the job of the nearest model. [text]
        calibration: What the user measured. [-]
        measured_in: File of the calibration, for messages. [text]
    """

    on: str
    catalog: Catalog
    days: float | None
    budget: float | None
    served: float
    law: Law
    framework: str | None = None
    network: str | None = None
    assignments: tuple[str, ...] = ()
    calibration: CalibrationFile | None = None
    measured_in: str = ""

    def models(self) -> tuple[str, ...]:
        """Dense models of the catalogue that one framework trains, smallest first.

        The framework is the user's, or the task's most preferred that trains any of
        them: two sizes that differ in their framework would differ in its speed, too.

        Raises:
            BadInputError: GPUs, network or framework are wrong.
        """
        task = task_named(PURPOSE)
        names = dense_names(task.seq_len)
        by = {name: str(self._line(name, FIRST).fields["framework"]) for name in names}
        preferred = (self.framework, *task.frameworks)
        held = next((room for room in preferred if room in by.values()), None)
        return tuple(name for name in names if by[name] == held)

    def _line(self, model: str, tokens: float) -> OneLine:
        return job_of(
            model,
            self.on,
            self.catalog,
            framework=self.framework,
            tokens=f"{tokens:.17g}",
            network=self.network,
            purpose=PURPOSE,
        )

    def job(self, model: str, tokens: float) -> tuple[Job, tuple[str, ...]]:
        """The job that trains a model of the catalogue, and its assumptions.

        Args:
            model: Name of a preset. [text]
            tokens: Tokens of the run. [token]

        Raises:
            BadInputError: GPUs, network or a field are wrong.
        """
        line = self._line(model, tokens)
        spec = assigned(
            dict(line.fields), self.assignments, Path(), ORIGIN, self.catalog
        )
        job = Job(
            spec,
            ORIGIN,
            Path(),
            self.catalog,
            self.calibration,
            measured_in=self.measured_in,
        )
        return job, line.told(self.assignments)


def asked(
    on: str,
    catalog: Catalog,
    *,
    days: float | None,
    budget: str | float | None,
    serve_tokens: str | float | None,
    law: str | None,
    framework: str | None = None,
    network: str | None = None,
    assignments: Sequence[str] = (),
    calibration: CalibrationFile | None = None,
    measured_in: str = "",
) -> Ask:
    """Read a question of size.

    Args:
        on: GPUs in any spelling, or a cluster. [text]
        catalog: Files of facts. [-]
        days: Longest run. [d]
        budget: Most money, in USD or as `2 MUSD`. [text]
        serve_tokens: Tokens to be served, as `2T`. [token]
        law: Name of a law of the loss; None for the usual one. [text]
        framework: Framework by name. [text]
        network: Network between nodes. [text]
        assignments: `a.b.c=value` each. [text]
        calibration: What the user measured. [-]
        measured_in: File of the calibration, for messages. [text]

    Raises:
        BadInputError: There is no limit, or a limit is no limit of a run.
    """
    if days is None and budget is None:
        raise BadInputError(
            "neither days nor a budget is given",
            field="--days, --budget",
            allowed="--days 30, --budget 1e6 (in USD), or both",
        )
    _refuse_answered(assignments)
    served = 0.0
    if serve_tokens is not None:
        served = token_count(str(serve_tokens), "--serve-tokens")
    return Ask(
        on,
        catalog,
        None if days is None else _within("--days", days, MOST_DAYS),
        None if budget is None else _within("--budget", _usd(budget), inf),
        served,
        law_named(law),
        framework,
        network,
        tuple(assignments),
        calibration,
        measured_in,
    )


def _within(option: str, value: float, most: float) -> float:
    """A limit above zero."""
    if 0 < value <= most and value < inf:
        return value
    allowed = "above 0" + (f", at most {most:,.0f}" if most < inf else "")
    raise BadInputError("is out of range", field=option, value=value, allowed=allowed)


def _usd(budget: str | float) -> float:
    """Money as a bare number of USD, or with a unit. [USD]."""
    try:
        return float(budget)
    except ValueError:
        pass
    try:
        return parse_quantity(budget, "USD")
    except ValueError as error:
        raise BadInputError(str(error), field="--budget") from error


def _refuse_answered(assignments: Sequence[str]) -> None:
    """Refuse to be told what the answer decides."""
    for one in assignments:
        path = one.partition("=")[0].strip()
        if any(path == name or path.startswith(f"{name}.") for name in _ANSWERED):
            raise BadInputError("is what the answer decides", file="--set", field=path)
