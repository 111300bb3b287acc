"""Reads fitted constants and bands of uncertainty of every stack, by measured runs.

The constants are written by ``python -m benchmarks.accuracy``, the bands by
``python -m benchmarks.accuracy.intervals``.
"""

from functools import lru_cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field

from planner.hardware.reading.yaml_text import parse_yaml
from planner.specs.answer.uncertainty import (
    ALLOCATED,
    COUNTERS,
    DEVICE,
    RESERVED,
    UNMEASURED,
    Band,
    Uncertainty,
)
from planner.specs.frameworks.deviation import Deviation

FITTED = "fitted.yaml"
"""File of the fitted constants, beside this module."""
INTERVALS = "intervals.yaml"
"""File of the intervals, beside this module."""
BORROWED = 1.2
"""Factor on the logarithm of a band where another GPU's kernels are borrowed. [1]"""
UNSEEN = 1.2
"""Factor on the logarithm of a band where a stack or GPU has no measured run. [1]"""


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
        """Deviation of a stack on one architecture."""
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
    """Bands of one quantity by group; `time_keys` and `memory_keys` name groups."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    groups: dict[str, Group] = {}
    everything: Group
    within: float = Field(default=1.0, ge=0, le=1)
    """Share of a half width that is left among the runs of one source. [1]"""
    architectures: tuple[str, ...] = ()
    """Architectures that have measurements. [text]"""

    def nearest(self, keys: tuple[str, ...]) -> tuple[str, Group]:
        """The first group that has measurements."""
        for key in keys:
            if key in self.groups:
                return key, self.groups[key]
        return "every stack and GPU", self.everything

    def band(self, keys: tuple[str, ...], arch: str) -> Band:
        """Band of a job, wider where its stack or architecture has no measurement."""
        where, group = self.nearest(keys)
        seen = where == keys[0] and arch in self.architectures
        return group.band if seen else group.band.wider(UNSEEN)


class AllIntervals(BaseModel):
    """Bands of all quantities that can be compared with measurements."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    date: str
    source: str
    time: Intervals
    memory: Intervals


def time_keys(framework: str, stack: str) -> tuple[str, ...]:
    """Groups of step times that a job belongs to, nearest first."""
    return (f"{framework}, {stack}", framework)


def memory_keys(framework: str, counter: str) -> tuple[str, ...]:
    """Groups of peak memories that a job belongs to, nearest first."""
    kind = COUNTERS[counter]
    return (f"{kind}, {framework}", kind)


def _read(name: str) -> object:
    return parse_yaml((files("planner.frameworks") / name).read_text())


@lru_cache
def fitted() -> Fit:
    """Read the deviations of constants that measured runs show."""
    return Fit.model_validate(_read(FITTED))


@lru_cache
def intervals() -> AllIntervals:
    """Read the bands that the errors at first contact give."""
    return AllIntervals.model_validate(_read(INTERVALS))


def uncertainty(
    *, framework: str, stack: str, arch: str, borrowed: bool = False
) -> Uncertainty:
    """Bands of measured values around a prediction, for one kind of job.

    Args:
        framework: Name of the framework. [text]
        stack: Name of the stack. [text]
        arch: Architecture of the GPU. [text]
        borrowed: True where the GPU's kernels were measured on another GPU only.

    Returns:
        Bands of the nearest groups; time bands are wider for borrowed kernels. [1]
    """
    known = intervals()
    if not known.time.everything.rows:
        return UNMEASURED
    keys = time_keys(framework, stack)
    allocated, reserved, device = (
        known.memory.band(memory_keys(framework, counter), arch)
        for counter in (ALLOCATED, RESERVED, DEVICE)
    )
    return Uncertainty(
        time=known.time.band(keys, arch).wider(BORROWED if borrowed else 1.0),
        memory=device,
        allocated=allocated,
        reserved=reserved,
        within=known.time.within,
        alike=1 - known.memory.within**2,
        why=_why(known.time, keys, arch, borrowed=borrowed),
    )


def _why(known: Intervals, keys: tuple[str, ...], arch: str, *, borrowed: bool) -> str:
    where, group = known.nearest(keys)
    seen = {"stack": where == keys[0], "GPU": arch in known.architectures}
    lacks = [name for name, known_there in seen.items() if not known_there]
    unseen = f"; no run of this {' and '.join(lacks)}: {UNSEEN:g} times wider"
    wider = f"; {BORROWED:g} times wider: borrowed kernels" if borrowed else ""
    return (
        f"intervals hold 90% of the next publication's runs, by the errors of "
        f"{group.rows} runs ({where}) of {group.sources} publications that nobody had "
        f"looked at{unseen if lacks else ''}{wider}"
    )
