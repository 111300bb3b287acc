"""The number formats that gradients and parameters travel in, and what each changes."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.specs.training import Precision

GradientFormat = Literal["fp32", "bf16"]
ParameterFormat = Literal["fp32", "bf16", "fp8"]
WIRE_BYTES = {"fp32": 4, "bf16": 2, "fp8": 1}
"""Bytes of one number in a format, scales left out. [B]"""
FORMAT_AXES = {"gradient_dtype": "gradients", "parameter_dtype": "parameters"}
"""Limits of a search, and the field of a layout's formats that each is about."""


class GivenFormats(BaseModel):
    """The formats that a user fixed; what is absent is the framework's own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gradients: GradientFormat | None = None
    parameters: ParameterFormat | None = None

    def over(self, others: "CommDtype") -> "CommDtype":
        """Formats with those of others where these leave one open."""
        return others.model_copy(update=self.model_dump(exclude_none=True))


class CommDtype(GivenFormats):
    """The number formats that gradients and parameters travel in."""

    gradients: GradientFormat = "fp32"
    parameters: ParameterFormat = "bf16"


class WireFormat(BaseModel):
    """One format that a framework can send in, and what it keeps then."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    precisions: tuple[Precision, ...]
    """Compute formats that the format goes with. [text]"""
    held: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Bytes of gradients kept per parameter; none: as the stack keeps them. [B]"""
    step: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Copy of a rank's gradients that the optimizer makes; none: the stack's. [B]"""
    primary: bool = False
    """Weights are kept in this format alone."""
    source: str


class Formats(BaseModel):
    """The formats that a framework lets its user choose; empty: only its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gradients: dict[GradientFormat, WireFormat] = {}
    parameters: dict[ParameterFormat, WireFormat] = {}

    def known(self, field: str, precision: str) -> tuple[str, ...]:
        """Formats that can be chosen under a compute format.

        Args:
            field: ``gradients`` or ``parameters``. [text]
            precision: Compute format. [text]
        """
        every: dict[str, WireFormat] = getattr(self, field)
        return tuple(n for n, form in every.items() if precision in form.precisions)
