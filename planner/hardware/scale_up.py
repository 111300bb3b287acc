"""Collectives inside a scale-up domain, as measured."""

from typing import Self

from pydantic import Field, model_validator

from planner.hardware.measured import Measured
from planner.hardware.reading.numbers import PositiveInt
from planner.hardware.reading.quantities import Bytes, BytesPerSecond

Curve = tuple[tuple[Bytes, BytesPerSecond], ...]
"""Messages, ascending, and their bus bandwidths. [B], [B/s]"""


class ScaleUpCalibration(Measured):
    """Saturated bus bandwidths inside a scale-up domain.

    Attributes:
        ring_bandwidth: Ring all-gather, reduce-scatter, all-reduce. [B/s]
        pair_bandwidth: Collectives of two ranks of a bus, the ring's own and
            all-to-all; None where two ranks reach no other rate. [B/s]
        nvls_all_reduce_bandwidth: All-reduce in the switch, None without it. [B/s]
        nvls_min_ranks: Fewest ranks for which NCCL reduces in the switch. [1]
        all_to_all_bandwidth: Even all-to-all. [B/s]
        all_reduce_curve: (message, bus bandwidth) of 8 ranks, messages ascending; one
            point for a rate that no message changes. [B], [B/s]
        ring_curve: The same of a ring all-gather, where the all-reduce is in the
            switch; None where it is a ring. [B], [B/s]
        source: Source of the numbers. [-]
    """

    ring_bandwidth: BytesPerSecond
    pair_bandwidth: BytesPerSecond | None = None
    nvls_all_reduce_bandwidth: BytesPerSecond | None = None
    nvls_min_ranks: PositiveInt | None = None
    all_to_all_bandwidth: BytesPerSecond
    all_reduce_curve: Curve = Field(min_length=1)
    ring_curve: Curve | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _check_curve(self) -> Self:
        """Each message is longer than the one before."""
        for name in ("all_reduce_curve", "ring_curve"):
            sizes = [size for size, _ in getattr(self, name) or ()]
            if sizes != sorted({*sizes}):
                raise ValueError(f"{name}: messages ascend")
        return self

    @model_validator(mode="after")
    def _check_nvls(self) -> Self:
        """The bandwidth in the switch and its fewest ranks come together."""
        if (self.nvls_all_reduce_bandwidth is None) != (self.nvls_min_ranks is None):
            raise ValueError(
                "nvls_all_reduce_bandwidth and nvls_min_ranks are both given or "
                f"neither; given {self.nvls_all_reduce_bandwidth} and "
                f"{self.nvls_min_ranks}",
            )
        return self


def scaled_links(base: ScaleUpCalibration, factor: float) -> ScaleUpCalibration:
    """Bandwidths scaled at equal latencies: B'(S) = f B(S / f), so t'(S) = t(S / f)."""

    def scaled(curve: Curve) -> Curve:
        return tuple((size * factor, rate * factor) for size, rate in curve)

    nvls, ring = base.nvls_all_reduce_bandwidth, base.ring_curve
    pair = base.pair_bandwidth
    return base.model_copy(
        update={
            "ring_bandwidth": base.ring_bandwidth * factor,
            "pair_bandwidth": None if pair is None else pair * factor,
            "nvls_all_reduce_bandwidth": None if nvls is None else nvls * factor,
            "all_to_all_bandwidth": base.all_to_all_bandwidth * factor,
            "all_reduce_curve": scaled(base.all_reduce_curve),
            "ring_curve": None if ring is None else scaled(ring),
        },
    )
