"""What planner says of a whole run: time, interruptions, money, energy."""

from pydantic import BaseModel, ConfigDict

from planner.specs.estimate import Interval


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
    """Size of one. [GiB]"""
    write_s: float
    """Time to storage. [s]"""
    stall_s: float
    """The run waits so long for one. [s]"""
    interval_s: float
    """Between two. [s]"""
    asynchronous: bool


class RunNodes(_Frozen):
    """Nodes of the cluster. [1]."""

    training: int
    idle: int
    """In service, and used by nobody."""
    spare: int
    paid: int
    """For which the price is paid."""


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
    """Where the number of tokens is from. [text]"""
    time_to_train_s: Interval
    """Wall time. [s]"""
    effective_share: Interval
    """Part of it that trains; bounds are those of observed failure rates. [1]"""
    interruptions: Interval
    """Unplanned ones. [1]"""
    gpu_hours: Interval
    """Of the GPUs that are paid for. [GPU-h]"""
    cost_usd: RunCost | None
    """None where no price is known."""
    energy_mwh: Interval
    carbon_t: Interval
    """CO2 of the electricity. [t]"""
    checkpoint: RunCheckpoint
    nodes: RunNodes
    reshard_s: float = 0.0
    """Between phases: a checkpoint written and read, and a restart. [s]"""
    stretches: tuple[RunStretch, ...]
    assumptions: tuple[str, ...] = ()
