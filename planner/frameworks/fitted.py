"""Reads fitted constants and bands of uncertainty of every stack, by measured runs.

Both files are written by ``python -m benchmarks.accuracy``.
"""

from functools import lru_cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field

from hardware.reading.yaml_text import parse_yaml
from planner.specs.answer.uncertainty import UNMEASURED, Band, Uncertainty
from planner.specs.frameworks.deviation import Deviation

FITTED = "fitted.yaml"
"""File of the fitted constants, beside this module."""
INTERVALS = "intervals.yaml"
"""File of the intervals, beside this module."""
BORROWED = 1.2
"""Factor on the logarithm of a band where another GPU's kernels are borrowed. [1]"""


class Fit(BaseModel):
    """Deviations by level; the deviations of all levels apply together.

    A stack or architecture without measured runs takes the levels above alone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    date: str
    source: str
    everything: Deviation = Deviation()
    architectures: dict[str, Deviation] = {}
    stacks: dict[str, Deviation] = {}

    def deviation(self, arch: str, stack: str) -> Deviation:
        """Deviation of a stack on one architecture.

        Args:
            arch: Architecture of the GPU. [text]
            stack: Name of the stack. [text]

        Returns:
            The three levels together. [-]
        """
        none = Deviation()
        by_arch = self.everything.then(self.architectures.get(arch, none))
        return by_arch.then(self.stacks.get(stack, none))


DOCUMENTED = Fit(date="", source="profiles as documented")
"""No deviation at all. [1]"""


class Group(Band):
    """A band with the number of measurements behind the band."""

    rows: int = Field(ge=0)
    """Measured runs. [1]"""
    sources: int = Field(ge=0)
    """Publications of the measured runs. [1]"""

    @property
    def band(self) -> Band:
        """The bounds alone. [1]."""
        return Band(low=self.low, high=self.high)


class Intervals(BaseModel):
    """Bands of one quantity by group of runs, keys as :func:`group_keys` names them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    groups: dict[str, Group] = {}
    everything: Group

    def nearest(self, keys: tuple[str, ...]) -> tuple[str, Group]:
        """The first group that has measurements.

        Args:
            keys: Groups, nearest first. [text]

        Returns:
            Name and band of the group; the band of all runs where no group has any. [-]
        """
        for key in keys:
            if key in self.groups:
                return key, self.groups[key]
        return "every stack and GPU", self.everything


class AllIntervals(BaseModel):
    """Bands of all quantities that can be compared with measurements."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    date: str
    source: str
    time: Intervals
    memory: Intervals


HOST_BOUND = "steps that wait for the host"
"""Group of the runs whose host decides the step, whatever stack or GPU. [text]"""


def group_keys(
    *, arch: str, stack: str, moe: bool, waits: bool = False
) -> tuple[str, ...]:
    """Groups that a job belongs to, nearest first.

    Args:
        arch: Architecture of the GPU. [text]
        stack: Name of the stack. [text]
        moe: True where the model routes tokens to experts.
        waits: True where the host decides the step.

    Returns:
        Stack with kind, architecture with kind; for *waits* `HOST_BOUND` alone. [text]
    """
    if waits:
        return (HOST_BOUND,)
    kind = "mixture of experts" if moe else "dense"
    return (f"{stack}, {kind}", f"{arch}, {kind}")


def _read(name: str) -> object:
    return parse_yaml((files("planner.frameworks") / name).read_text())


@lru_cache
def fitted() -> Fit:
    """Read the deviations of constants that measured runs show.

    Returns:
        Deviations by level. [-]
    """
    return Fit.model_validate(_read(FITTED))


@lru_cache
def intervals() -> AllIntervals:
    """Read the bands that hold the measured runs left out of the fit.

    Returns:
        Bands by group. [-]
    """
    return AllIntervals.model_validate(_read(INTERVALS))


def uncertainty(
    *, arch: str, stack: str, moe: bool, borrowed: bool = False
) -> Uncertainty:
    """Bands of measured values around a prediction, for one kind of job.

    Args:
        arch: Architecture of the GPU. [text]
        stack: Name of the stack. [text]
        moe: True where the model routes tokens to experts.
        borrowed: True where the GPU's kernels were measured on another GPU only.

    Returns:
        Bands of the nearest group; time bands are wider for borrowed kernels. [1]
    """
    known = intervals()
    if not known.time.everything.rows:
        return UNMEASURED
    keys = group_keys(arch=arch, stack=stack, moe=moe)
    where, time = known.time.nearest(keys)
    widened = BORROWED if borrowed else 1.0
    return Uncertainty(
        time=time.band.wider(widened),
        waiting=known.time.nearest((HOST_BOUND,))[1].band.wider(widened),
        memory=known.memory.nearest(keys)[1].band,
        why=_why(where, time, near=where == keys[0], borrowed=borrowed),
    )


def _why(where: str, group: Group, *, near: bool, borrowed: bool) -> str:
    unseen = "" if near else "; this stack itself has none, so the nearest is taken"
    wider = f"; {BORROWED:g} times wider: borrowed kernels" if borrowed else ""
    return (
        f"intervals hold 90% of {group.rows} measured runs ({where}) that the fit of "
        f"{group.sources} publications had left out{unseen}{wider}"
    )
