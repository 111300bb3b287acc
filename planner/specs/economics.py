"""The economics block of a spec: what the user knows better than the catalog."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from planner.hardware.reading.money import PriceField
from planner.hardware.reading.numbers import Float
from planner.hardware.reading.quantities import (
    BytesPerSecond,
    GpuHours,
    KgPerKwh,
    Seconds,
    UsdPerKwh,
    UsdPerKwMonth,
    Watts,
)


class CheckpointSpec(BaseModel):
    """Mode, bandwidth, stall and interval of a run's checkpoints."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    writes: Literal["asynchronous", "synchronous"] = "asynchronous"
    """Mode of writing: beside the run, or while the run waits."""
    bandwidth: BytesPerSecond | None = None
    """Bandwidth of the storage, all writers together. [B/s]"""
    stall: Seconds | None = None
    """Time that the run waits for one checkpoint; absent: computed. [s]"""
    interval: Seconds | None = None
    """Time between two checkpoints; absent: of least loss (Young, Daly). [s]"""


class EconomicsSpec(BaseModel):
    """Prices and habits that replace the catalog's; every one with its unit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    price: PriceField | Literal["rent", "buy"] = "rent"
    """Price of an hour of a GPU or node, or of a GPU or node to own; `rent` and `buy`
    are the catalog's prices."""
    depreciation: Seconds | None = None
    """Time that a purchase is written off over. [s]"""
    electricity: UsdPerKwh | None = None
    """Price of electricity beside a purchase; a rental includes it. [USD/kWh]"""
    colocation: UsdPerKwMonth | None = None
    """Price of room and cooling beside a purchase, electricity apart. [USD/kW-month]"""
    power: Watts | None = None
    """Mean power of a node while it trains. [W]"""
    pue: Float | None = Field(default=None, ge=1, le=5, allow_inf_nan=False)
    """Power of the building over the power of its computers. [1]"""
    carbon: KgPerKwh | None = None
    """CO2 of the electricity. [kg/kWh]"""
    failures: GpuHours | None = None
    """Time of one GPU between two interruptions of the run. [GPU-h]"""
    restart: Seconds | None = None
    """Time from an interruption to the load of the last checkpoint. [s]"""
    repair: Seconds | None = None
    """Time that a broken node is away; absent: replaced within the restart. [s]"""
    spare_nodes: int = Field(default=0, ge=0, strict=True)
    """Nodes paid for that wait to replace broken ones. [1]"""
    checkpoint: CheckpointSpec = CheckpointSpec()

    @model_validator(mode="after")
    def _beside_a_purchase(self) -> Self:
        """Refuse costs that a rental includes."""
        rented = self.price == "rent" or getattr(self.price, "is_rate", False)
        beside = ("depreciation", "electricity", "colocation")
        given = [name for name in beside if getattr(self, name) is not None]
        if rented and given:
            raise ValueError(
                f"{given[0]} goes with a purchase; a rental has it in. Give a price "
                "in USD/GPU or USD/node, or price: buy"
            )
        return self

    @model_validator(mode="after")
    def _above_nothing(self) -> Self:
        """Refuse 0 for quantities that divide."""
        for name in ("depreciation", "failures", "power"):
            if getattr(self, name) == 0:
                raise ValueError(f"{name} is 0; it must be more than 0")
        checkpoint = self.checkpoint
        for name in ("interval", "stall"):
            if getattr(checkpoint, name) == 0:
                raise ValueError(f"checkpoint.{name} is 0; it must be more than 0")
        return self
