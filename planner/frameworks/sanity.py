"""Best measured rates, the error of comparisons, and the rate that is too slow.

Two of the files are written by ``python -m benchmarks.accuracy.sanity``; the floor is
published advice.
"""

from functools import lru_cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field

from planner.hardware.measured import Fraction, Measured
from planner.hardware.reading.quantities import FlopPerSecond
from planner.hardware.reading.yaml_text import parse_yaml
from planner.specs.answer.comparison import Comparison

RECORDS = "records.yaml"
"""File of the best measured rates, beside this module."""
COMPARISON = "comparison.yaml"
"""File of the error of comparisons, beside this module."""
FLOOR = "floor.yaml"
"""File of the rate below which a run is taken for misconfigured, beside this module."""
HALF = ("bf16", "fp16")
"""Formats that share a record: one peak, the same kernels. [text]"""


class Record(BaseModel):
    """The highest MFU among the measured runs of one kind."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mfu: float = Field(gt=0)
    """Model FLOPs over the half-precision peak, full attention. [1]"""
    run: str
    """Id of the run's row in benchmarks/accuracy/rows. [text]"""
    source: str
    """Stem of the file that holds the run's row. [text]"""
    model: str
    gpu: str
    gpus: int
    """Ranks of the run. [1]"""
    stack: str


class Records(BaseModel):
    """Records by key, as :func:`record_key` makes keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    date: str
    source: str
    records: dict[str, Record]


class Floor(Measured):
    """Advice on the least rate of a run that is set up well.

    Attributes:
        rate: Rate of one GPU, recomputed forwards counted. [FLOP/s]
        peak: Half-precision peak of that GPU. [FLOP/s]
        gpu: Name of that GPU. [text]
        source: Publication of the advice. [-]
    """

    rate: FlopPerSecond
    peak: FlopPerSecond
    gpu: str

    @property
    def share(self) -> Fraction:
        """Rate over peak, by which the advice is carried to other GPUs. [1]."""
        return self.rate / self.peak


def record_key(*, arch: str, precision: str, method: str) -> str:
    """Key of the kind of run that a record holds for.

    Returns:
        For example ``hopper, half, full`` or ``blackwell, fp8, adapters``. [text]
    """
    kind = "full" if method == "full" else "adapters"
    return f"{arch}, {'half' if precision in HALF else precision}, {kind}"


def _read(name: str) -> object:
    return parse_yaml((files("planner.frameworks") / name).read_text())


@lru_cache
def records() -> dict[str, Record]:
    """Read the best measured run of every kind of run."""
    return Records.model_validate(_read(RECORDS)).records


@lru_cache
def floor() -> Floor:
    """Read the rate below which a run is taken for misconfigured."""
    return Floor.model_validate(_read(FLOOR))


@lru_cache
def compared() -> Comparison:
    """Read the error of comparing two layouts of one job."""
    return Comparison.model_validate(_read(COMPARISON))
