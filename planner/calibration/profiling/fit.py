"""From times of kernels to the constants of a calibration: pure least squares."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from planner.calibration.profiling.timings import (
    AttentionTiming,
    CollectiveTiming,
    GemmTiming,
    StreamTiming,
)

Floats = npt.NDArray[np.float64]

CURVE_RANKS = 8
"""Ranks that an all-reduce curve of a calibration is for. [1]"""
BACKWARD = 2.5
"""FLOPs of an attention backward over its forward. [1]"""
QUERY_BLOCK = 128
"""Query rows that one block of an attention kernel works on. [1]"""
IN_SWITCH = 1.1
"""All-reduce over ring bandwidth from which the switch must have reduced. [1]"""


@dataclass(frozen=True)
class Line:
    """A sum of terms fitted to times.

    Attributes:
        constants: One per term. [s per unit of the term]
        error: Median relative error. [1]
        points: Number of times in the fit. [1]
    """

    constants: tuple[float, ...]
    error: float
    points: int


def fit_line(terms: Floats, seconds: Floats, least: Sequence[float]) -> Line:
    """Constants x >= least with the least relative error of terms @ x.

    minimise sum over i of ((terms_i x - t_i) / t_i)^2

    Solved for every choice of constants held at their bound; the best legal
    choice is the constrained optimum.

    Args:
        terms: Terms that constants multiply, shape (points, constants). [unit]
        seconds: Measured times, shape (points,). [s]
        least: Lower bounds, shape (constants,). [s per unit]
    """
    if len(seconds) < terms.shape[1]:
        raise ValueError(f"{len(seconds)} times for {terms.shape[1]} constants")
    scaled, bound = terms / seconds[:, None], np.array(least, dtype=np.float64)
    legal = [x for x in _candidates(scaled, bound) if np.all(x >= bound - 1e-15)]
    best = min(legal, key=lambda x: float(np.sum((scaled @ x - 1) ** 2)))
    error = float(np.median(np.abs(scaled @ best - 1)))
    return Line(tuple(map(float, best)), error, len(seconds))


def _candidates(scaled: Floats, bound: Floats) -> list[Floats]:
    """The optimum for every choice of constants that are free."""
    found = []
    for count in range(len(bound) + 1):
        for chosen in combinations(range(len(bound)), count):
            free, x = list(chosen), bound.copy()
            x[free] = 0.0
            rest = 1.0 - scaled @ x
            x[free] = np.linalg.lstsq(scaled[:, free], rest, rcond=None)[0]
            found.append(x)
    return found


def fit_gemm(timings: Sequence[GemmTiming], peak: float, bandwidth: float) -> Line:
    """The additive model t = 2 M N K / (peak eps) + mu bytes / W + t0.

    Args:
        timings: Products of one number format. [-]
        peak: Datasheet rate of the format. [FLOP/s]
        bandwidth: Datasheet rate of the memory, W. [B/s]

    Returns:
        Constants 1 / eps [1], mu [1] and t0 [s]. [-]
    """
    terms = [(t.flops / peak, t.moved / bandwidth, 1.0) for t in timings]
    seconds = np.array([t.seconds for t in timings])
    return fit_line(np.array(terms), seconds, (1.0, 0.0, 0.0))


def fit_stream(timings: Sequence[StreamTiming], bandwidth: float) -> Line:
    """Memory-bound operators: t = bytes / (eta W) + t_op.

    Args:
        timings: Operators of several sizes. [-]
        bandwidth: Datasheet rate of the memory, W. [B/s]

    Returns:
        Constants 1 / eta [1] and t_op [s]. [-]
    """
    terms = np.array([(t.moved / bandwidth, 1.0) for t in timings])
    seconds = np.array([t.seconds for t in timings])
    return fit_line(terms, seconds, (1.0, 0.0))


def waves(timing: AttentionTiming, sms: int) -> float:
    """Blocks of query rows over the SMs."""
    return timing.heads * timing.seq_len / QUERY_BLOCK / sms


def fit_waves(
    timings: Sequence[AttentionTiming], sms: int
) -> tuple[float, float] | None:
    """Loss of attention's speed with little work: rate = R w / (w + w0).

    t / FLOPs = 1 / R + (w0 / R) / w, a line over 1 / w

    Args:
        timings: One kernel, head size and length at several numbers of heads. [-]
        sms: SMs of the GPU. [1]

    Returns:
        w0 forward and backward [1]; None where no loss can be seen.
    """
    if len({t.heads for t in timings}) < 3:
        return None
    found = []
    for factor, way in ((1.0, "forward"), (BACKWARD, "backward")):
        terms = [(factor * t.flops, factor * t.flops / waves(t, sms)) for t in timings]
        seconds = np.array([getattr(t, way) for t in timings])
        endless, loss = fit_line(np.array(terms), seconds, (0.0, 0.0)).constants
        if endless <= 0 or loss <= 0:
            return None
        found.append(loss / endless)
    return found[0], found[1]


@dataclass(frozen=True)
class Links:
    """Saturated collectives inside a machine.

    Attributes:
        ring: Bus bandwidth of all-gather and reduce-scatter. [B/s]
        switch: Bus bandwidth of an all-reduce in the switch, else None. [B/s]
        all_to_all: Bus bandwidth of an even all-to-all. [B/s]
        ranks: GPUs that took part. [1]
        curve: All-reduce message and bus bandwidth as 8 ranks would have them,
            ascending, shape (n, 2). [B], [B/s]
    """

    ring: float
    switch: float | None
    all_to_all: float
    ranks: int
    curve: tuple[tuple[float, float], ...]


def fit_links(timings: Sequence[CollectiveTiming]) -> Links:
    """Plateaus and the all-reduce curve of one machine.

    A ring of n ranks moves chunks of S / n. The ring's time at S is the time of 8
    ranks at 8 S / n. A switch gets S from each rank, whatever n.
    """
    best: dict[str, float] = {}
    for t in timings:
        best[t.collective] = max(best.get(t.collective, 0.0), t.bus_bandwidth)
    missing = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"} - best.keys()
    if missing:
        raise ValueError(f"no times of {', '.join(sorted(missing))}")
    ring = min(best["all_gather"], best["reduce_scatter"])
    switched = best["all_reduce"] > IN_SWITCH * ring
    ranks = timings[0].ranks
    stretch = 1.0 if switched else CURVE_RANKS / ranks
    reduced = [t for t in timings if t.collective == "all_reduce"]
    return Links(
        ring=ring,
        switch=best["all_reduce"] if switched else None,
        all_to_all=best["all_to_all"],
        ranks=ranks,
        curve=tuple(sorted((t.message * stretch, t.bus_bandwidth) for t in reduced)),
    )
