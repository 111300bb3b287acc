"""Block-wise formats of weights and moments: bytes, and the GPUs that run them."""

from collections.abc import Mapping
from functools import cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.hardware.measured import Measured, Positive
from planner.hardware.reading.files import UnknownNameError, read
from planner.hardware.reading.numbers import PositiveInt
from planner.hardware.reading.shipped import shipped

FormatUse = Literal["weights", "moments"]
"""Uses of a format."""


class BlockFormat(Measured):
    """A number format whose scales are shared by blocks or rows.

    Attributes:
        element_bytes: One element without its scales. [B]
        block: Elements that share a scale; none without blocks. [1]
        scale_bytes: The scale of a block. [B]
        nested_scale_bytes: The scale of a block where scales are quantised too. [B]
        nested_block: Scales that then share a scale of `scale_bytes`. [1]
        row_scale_bytes: The scale of an output row. [B]
        architectures: GPU architectures that the library runs the format on. [text]
    """

    element_bytes: Positive
    block: PositiveInt | None = None
    scale_bytes: float = Field(default=0.0, ge=0)
    nested_scale_bytes: float = Field(default=0.0, ge=0)
    nested_block: PositiveInt | None = None
    row_scale_bytes: float = Field(default=0.0, ge=0)
    architectures: tuple[str, ...]

    def bytes_each(self, *, nested: bool = False) -> float:
        """Bytes of one element with its share of the scales of blocks. [B].

        ``b + s / B``, or ``b + (s_2 + s / B_2) / B`` where scales are quantised too.

        Leaves out the scales of rows, which depend on the shape.
        """
        if self.block is None:
            return self.element_bytes
        scale = self.scale_bytes
        if nested and self.nested_block is not None:
            scale = self.nested_scale_bytes + self.scale_bytes / self.nested_block
        return self.element_bytes + scale / self.block


class _FormatsFile(BaseModel):
    """Formats by use and name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weights: Mapping[str, BlockFormat]
    moments: Mapping[str, BlockFormat]


def block_format(use: FormatUse, name: str) -> BlockFormat:
    """A block-wise format by use and name."""
    known = _file().weights if use == "weights" else _file().moments
    if name not in known:
        raise UnknownNameError(f"no format {name!r}; known are {', '.join(known)}")
    return known[name]


@cache
def _file() -> _FormatsFile:
    """The file of formats, read once."""
    return read(shipped("hardware") / "calibration" / "formats.yaml", _FormatsFile)
