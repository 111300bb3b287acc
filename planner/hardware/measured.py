"""Types that measured constants share."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Fraction = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
"""A part of something, in (0, 1]. [1]"""
OfPeak = Annotated[float, Field(gt=0, le=1.25, allow_inf_nan=False)]
"""Rate over the datasheet's peak; boards exceed its clock (RTX 5090: 1.21). [1]"""
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""A number above 0. [1]"""


class Measured(BaseModel):
    """A set of measured constants and their source.

    Attributes:
        source: Source of the constants. [-]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str = Field(min_length=1)
