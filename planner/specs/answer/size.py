"""The answer of `planner size`: the model that a budget trains best."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.specs.answer.estimate import ByConvention
from planner.specs.answer.result import RankedPlan, Status
from planner.specs.answer.run import Run


class SizeFlops(BaseModel):
    """Work of a model's training and serving. [FLOP]."""

    model_config = ConfigDict(frozen=True)

    forward: float
    """Forward passes of training, 2 P T."""
    backward: float
    """Backward passes of training, 4 P T."""
    training: float
    """Forward and backward, 6 P T."""
    serving: float
    """Forward passes of the tokens to be served, 2 P I."""


class Trained(BaseModel):
    """A model, the length of its training, and the loss that a law gives."""

    model_config = ConfigDict(frozen=True)

    parameters: float
    """[1]"""
    tokens: float
    """[token]"""
    tokens_per_parameter: float
    """[token]"""
    loss: float
    """Loss at the end of training, by the law. [nat/token]"""
    flops: SizeFlops
    days: float
    """Wall time at the rate of the nearest model's plan. [d]"""
    cost_usd: float | None
    """Cost at the price of the nearest model's run; None where no price is known."""


class SizeLaw(BaseModel):
    """Law of the loss behind a size."""

    model_config = ConfigDict(frozen=True)

    name: str
    source: str
    why: str


class NearestModel(BaseModel):
    """The catalogue's dense model nearest to a size, trained for the same time."""

    model_config = ConfigDict(frozen=True)

    name: str
    trained: Trained
    """The model on the tokens that the time or the money allows."""
    forward_flops_per_token: ByConvention
    """Counted work of a forward pass, attention scores included. [FLOP]"""
    backward_flops_per_token: ByConvention
    """Counted work of a backward pass: twice the forward pass. [FLOP]"""
    status: Status
    """Status of the search behind the plan."""
    gap: float
    """Largest share by which another plan may be faster. [1]"""
    plan: RankedPlan
    run: Run
    """The whole run on those tokens."""


class Round(BaseModel):
    """A model that was planned on the way, and the size that its rate gives."""

    model_config = ConfigDict(frozen=True)

    model: str
    mfu: float | None
    """MFU with full attention; None where the model does not fit. [1]"""
    parameters: float | None
    """Best size at that rate; None where the model does not fit. [1]"""


class SizeAnswer(Trained):
    """The whole answer, schema ``planner/size@1``: the best size, and its basis."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_name: Literal["planner/size@1"] = Field(
        default="planner/size@1", alias="schema"
    )
    on: str
    """GPUs as they were given. [text]"""
    gpu: str
    gpus: int
    cluster: str
    """Name of the cluster. [text]"""
    limit: Literal["days", "budget"]
    """Limit that decides: time or money."""
    given_days: float | None
    """[d]"""
    given_budget_usd: float | None
    """[USD]"""
    serve_tokens: float
    """Tokens to be served over the model's life. [token]"""
    held_by_memory: bool
    """True where the limits would train more parameters than the GPUs hold; then the
    size is that of the nearest model."""
    flops_per_s: float
    """Work of training for each second of wall time, 6 P for a token. [FLOP/s]"""
    low: Trained
    """The answer at the slow end of the step's interval."""
    high: Trained
    """The answer at the fast end of the step's interval."""
    alone: Trained | None
    """Best size of the same budget where nothing is served; None where nothing is."""
    as_good: Trained | None
    """Model of the loss of `alone` that takes least work in training and serving;
    its training takes longer than the budget. None where nothing is served."""
    law: SizeLaw
    nearest: NearestModel
    rounds: tuple[Round, ...]
    warnings: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    """What the line leaves open, in words. [text]"""
