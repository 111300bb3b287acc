"""Switches of a software stack, and what a framework asks before it takes one."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from planner.specs.frameworks.profile import Profile
from planner.specs.layouts.layout import Layout

Mask = npt.NDArray[np.bool_]
Column = npt.NDArray[Any]
FULL = "full"
"""Recompute of whole layers; the same word in every framework. [text]"""


@dataclass(frozen=True)
class Layouts:
    """Layouts as columns: all that a switch may depend on. shape (layouts,)."""

    sp: Column
    pp: Column
    ep: Column
    zero: Column
    micro_batches: Column
    chunks: Column
    """Virtual chunks of a pipeline rank. [1]"""
    schedule: Column
    """Names of schedules. [text]"""
    full: Column
    """True where any layer is recomputed whole."""
    predicted: int = 0
    """Layers of multi-token prediction of the model. [1]"""

    @classmethod
    def of(cls, layout: Layout, predicted: int = 0) -> "Layouts":
        """Columns of one layout."""
        full = any(r.kind == FULL for stage in layout.stages for r in stage.recompute)
        return cls(
            sp=np.array([layout.sp]),
            pp=np.array([layout.pp]),
            ep=np.array([layout.ep]),
            zero=np.array([layout.zero_stage]),
            micro_batches=np.array([layout.grad_accum]),
            chunks=np.array([layout.vpp]),
            schedule=np.array([layout.schedule]),
            full=np.array([full]),
            predicted=predicted,
        )


class Needs(BaseModel):
    """Needs of a framework for a switch, which a layout must meet; absent: nothing.

    Attributes:
        sequence_parallel: Tensor ranks split the sequence. [-]
        experts_spread: Several ranks hold one copy of the experts. [-]
        zero_stages: ZeRO stages; none listed: any. [1]
        pipeline: Any, none at all, or one whose ranks hold several chunks. [-]
        schedules: Pipeline schedules; none listed: any. [text]
        full_recompute: True where layers may be recomputed whole. [-]
        micro_batches: Fewest micro-batches of a step. [1]
        predicted_layers: Most layers of multi-token prediction, and these under a
            pipeline alone; null: any. [1]
        others: Switches that have to be on, too. [text]
        source: Source of the needs. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sequence_parallel: bool = False
    experts_spread: bool = False
    zero_stages: tuple[int, ...] = ()
    pipeline: Literal["any", "none", "chunked"] = "any"
    schedules: tuple[str, ...] = ()
    full_recompute: bool = True
    micro_batches: int = 1
    predicted_layers: int | None = None
    others: tuple[str, ...] = ()
    source: str = ""

    @property
    def by_plan(self) -> bool:
        """True where schedule or recompute decide the switch beside the degrees."""
        return (
            self.pipeline == "chunked"
            or bool(self.schedules)
            or not self.full_recompute
        )

    def met(self, where: Layouts) -> Mask:
        """Tell which layouts meet the needs, but for other switches.

        Args:
            where: Layouts. shape (layouts,)

        Returns:
            True for each layout that meets them. shape (layouts,)
        """
        return self.met_by_degrees(where) & self._met_by_plan(where)

    def met_by_degrees(self, where: Layouts) -> Mask:
        """Tell which layouts meet the needs, schedule, chunks and recompute apart.

        Args:
            where: Layouts, perhaps without those three columns. shape (layouts,)

        Returns:
            True for each layout that meets them. shape (layouts,)
        """
        met: Mask = where.micro_batches >= self.micro_batches
        if self.sequence_parallel:
            met = met & (where.sp > 0)
        if self.experts_spread:
            met = met & (where.ep > 1)
        if self.zero_stages:
            met = met & np.isin(where.zero, self.zero_stages)
        if self.pipeline == "none":
            met = met & (where.pp == 1)
        if self.predicted_layers is not None and where.predicted:
            met = met & (where.pp > 1) & (where.predicted <= self.predicted_layers)
        return met

    def _met_by_plan(self, where: Layouts) -> Mask:
        met = np.ones(len(where.pp), dtype=bool)
        if self.pipeline == "chunked":
            met &= (where.pp == 1) | (where.chunks > 1)
        if self.schedules:
            met &= np.isin(where.schedule, self.schedules)
        if not self.full_recompute:
            met &= ~where.full.astype(bool)
        return met


class Switched:
    """A framework on a stack, as far as its switches go."""

    profile: Profile
    switches: dict[str, Needs]

    def takes(self, name: str, where: Layouts, *, by_degrees: bool = False) -> Mask:
        """Layouts under which a switch of the stack is on.

        Args:
            name: A field of the profile. [text]
            where: Layouts. shape (layouts,)
            by_degrees: Leave out what schedule, chunks and recompute decide.

        Returns:
            True for each such layout; all False where the stack has the switch off.
            shape (layouts,)
        """
        needs = self.switches.get(name, Needs())
        met = needs.met_by_degrees(where) if by_degrees else needs.met(where)
        for other in needs.others:
            met = met & self.takes(other, where, by_degrees=by_degrees)
        return met & bool(getattr(self.profile, name))

    def refused(self, where: Layouts) -> frozenset[str]:
        """Switches of the stack that are off under a layout.

        Args:
            where: One layout. shape (1,)
        """
        on = (name for name in self.switches if getattr(self.profile, name))
        return frozenset(name for name in on if not self.takes(name, where).item())

    @property
    def by_plan(self) -> tuple[str, ...]:
        """Switches of the stack that are on and that degrees alone do not decide."""
        on = [name for name in self.switches if getattr(self.profile, name)]
        return tuple(name for name in on if self.switches[name].by_plan)
