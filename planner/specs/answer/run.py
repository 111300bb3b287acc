"""Prediction for a whole run: time, interruptions, money, energy."""

from pydantic import BaseModel, ConfigDict

from planner.specs.answer.estimate import Interval


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class RunCost(_Frozen):
    """Money by kind; a rental, or else a purchase with what runs it. [USD]."""

    total: Interval
    rental: Interval | None = None
    capital: Interval | None = None
    """Part of the purchase that the run uses up."""
    electricity: Interval | None = None
    colocation: Interval | None = None
    price: str
    """Price of an hour, or of owning, with date and source. [text]"""


class RunCheckpoint(_Frozen):
    """The checkpoints of a run, of the stretch that writes the largest."""

    total_gib: float
    """Size of one checkpoint. [GiB]"""
    write_s: float
    """Time to write one checkpoint to storage. [s]"""
    stall_s: float
    """Time that the run waits for one checkpoint. [s]"""
    interval_s: float
    """Time between two checkpoints. [s]"""
    asynchronous: bool


class RunNodes(_Frozen):
    """Nodes of the cluster. [1]."""

    training: int
    idle: int
    """Nodes in service that nobody uses."""
    spare: int
    paid: int
    """Nodes for which the price is paid."""


class RunStretch(_Frozen):
    """A part of a run at one batch and one layout."""

    name: str
    tokens: float
    """[token]"""
    steps: float
    """Optimizer steps. [1]"""
    step_time_s: Interval
    sequences: int
    """Global batch. [sequence]"""
    seq_len: int
    """[token]"""
    time_s: Interval
    """Wall time, interruptions and checkpoints included. [s]"""


class Run(_Frozen):
    """A whole run; intervals are the step time's, carried through."""

    tokens: float
    """[token]"""
    tokens_rule: str
    """Source of the number of tokens. [text]"""
    time_to_train_s: Interval
    """Wall time. [s]"""
    effective_share: Interval
    """Share of wall time that trains; bounds are from observed failure rates. [1]"""
    interruptions: Interval
    """Unplanned interruptions. [1]"""
    gpu_hours: Interval
    """Hours of the GPUs that are paid for. [GPU-h]"""
    cost_usd: RunCost | None
    """Cost; None where no price is known. [USD]"""
    energy_mwh: Interval
    carbon_t: Interval
    """CO2 of the electricity. [t]"""
    checkpoint: RunCheckpoint
    nodes: RunNodes
    reshard_s: float = 0.0
    """Time between phases: a checkpoint written and read, and a restart. [s]"""
    stretches: tuple[RunStretch, ...]
    assumptions: tuple[str, ...] = ()
