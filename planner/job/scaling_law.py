"""Laws of the loss: parameters and tokens that a compute budget trains best."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import exp, log, log1p

from pydantic import BaseModel, ConfigDict, Field

from planner.errors import BadInputError, did_you_mean
from planner.hardware.reading.files import read

FORWARD = 2
"""Work of a forward pass for each token and parameter: a product and a sum. [FLOP]"""
BACKWARD = 4
"""Work of a backward pass: gradients of inputs and of weights. [FLOP]"""
FLOPS_PER_TOKEN = FORWARD + BACKWARD
"""Work of training for each token and parameter. [FLOP]"""
_SPAN = 80.0
"""Logarithm of the largest number of parameters or tokens that is looked at. [1]"""


@dataclass(frozen=True)
class Size:
    """A model and the length of its training.

    Attributes:
        parameters: Parameters P. [1]
        tokens: Tokens T. [token]
    """

    parameters: float
    tokens: float

    @property
    def flops(self) -> float:
        """Work of training, 6 P T. [FLOP]."""
        return FLOPS_PER_TOKEN * self.parameters * self.tokens


class Law(BaseModel):
    """A law of the loss, ``L = E + A / P^a + B / T^b``.

    Attributes:
        name: Name of the law. [text]
        irreducible: Loss E of a model without limits. [nat/token]
        parameter_scale: A. [nat/token]
        parameter_exponent: a. [1]
        data_scale: B. [nat/token]
        data_exponent: b. [1]
        source: Citation. [text]
        why: Reason to take it, or not to. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    irreducible: float = Field(gt=0)
    parameter_scale: float = Field(gt=0)
    parameter_exponent: float = Field(gt=0)
    data_scale: float = Field(gt=0)
    data_exponent: float = Field(gt=0)
    source: str
    why: str

    def loss(self, size: Size) -> float:
        """Loss of a model at the end of its training.

        Returns:
            Loss. [nat/token]
        """
        of_size = exp(-self.parameter_exponent * log(size.parameters))
        of_data = exp(-self.data_exponent * log(size.tokens))
        lost = self.parameter_scale * of_size + self.data_scale * of_data
        return self.irreducible + lost

    def tokens(self, parameters: float, served: float = 0.0) -> float:
        """Tokens that make a model of this size the cheapest of its loss.

        At equal loss ``6 P T + 2 P I`` is least where::

            (1 + I / (3 T)) b B / T^b = a A / P^a

        Args:
            parameters: Parameters P. [1]
            served: Tokens I to be served. [token]

        Returns:
            Tokens T. [token]

        References:
            Sardana et al. 2024, arXiv:2401.00448, equation 3, condition of first order.
        """
        ratio = self.data_exponent * self.data_scale
        ratio /= self.parameter_exponent * self.parameter_scale
        power = log(ratio) + self.parameter_exponent * log(parameters)
        alone = exp(power / self.data_exponent)
        return longer(alone, served, self.data_exponent)

    def best(self, flops: float, served: float = 0.0) -> Size:
        """Model that a training budget makes best, or cheapest of its loss to serve.

        ::

            6 P T = C

        Args:
            flops: Work of training C. [FLOP]
            served: Tokens to be served, 0 for the least loss of all. [token]
        """
        pairs = flops / FLOPS_PER_TOKEN

        def over(place: float) -> float:
            return place + log(self.tokens(exp(place), served)) - log(pairs)

        parameters = exp(root(over, -_SPAN, _SPAN))
        return Size(parameters, pairs / parameters)

    def as_good(self, loss: float, served: float) -> Size:
        """Model of a loss that takes least work in training and serving together.

        Args:
            loss: Loss to reach. [nat/token]
            served: Tokens to be served. [token]
        """

        def over(place: float) -> float:
            parameters = exp(place)
            return loss - self.loss(Size(parameters, self.tokens(parameters, served)))

        parameters = exp(root(over, 0.0, _SPAN))
        return Size(parameters, self.tokens(parameters, served))


class Fitted(BaseModel):
    """Range of the runs that the laws were fitted to.

    Attributes:
        parameters: Least and most parameters. [1]
        tokens: Least and most tokens. [token]
        source: Citation. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    parameters: tuple[float, float]
    tokens: tuple[float, float]
    source: str


class Rule(BaseModel):
    """The rule of thumb that jobs with `tokens: compute-optimal` follow.

    Attributes:
        tokens_per_parameter: Tokens where nothing is served. [token]
        law: Law whose exponent of tokens holds where something is. [text]
        source: Citation. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tokens_per_parameter: float
    law: str
    source: str


class _Laws(BaseModel):
    """Content of `scaling_law.yaml`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    laws: tuple[Law, ...]
    fitted: Fitted
    rule: Rule


@cache
def _laws() -> _Laws:
    return read(files("planner.job") / "scaling_law.yaml", _Laws)


def law_named(name: str | None = None) -> Law:
    """A law by its name.

    Args:
        name: Name; None for the one that is taken unless said. [text]
    """
    known = {law.name: law for law in _laws().laws}
    if name is not None and name not in known:
        raise BadInputError(
            f"no such law; {did_you_mean(name, known)}",
            field="--law",
            value=name,
            allowed=", ".join(known),
        )
    return known[name] if name is not None else _laws().laws[0]


def fitted_range() -> Fitted:
    """Range of the runs that the laws were fitted to."""
    return _laws().fitted


def rule_of_thumb() -> Rule:
    """Rule that jobs with `tokens: compute-optimal` follow."""
    return _laws().rule


def longer(alone: float, served: float, exponent: float) -> float:
    """Tokens of a run, more where tokens are to be served.

    ::

        (1 + I / (3 T)) (T0 / T)^b = 1

    Args:
        alone: Tokens T0 where nothing is served. [token]
        served: Tokens I to be served. [token]
        exponent: Exponent b of the loss in tokens. [1]

    Returns:
        Tokens T to train. [token]
    """

    def over(place: float) -> float:
        return exponent * (place - log(alone)) - log1p(served / (3 * exp(place)))

    least = log(alone)
    return exp(root(over, least, least + log1p(served / (3 * alone)) / exponent))


def root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Place where a rising function is zero, by bisection.

    Args:
        rising: The function. [any]
        low: A place where it is not above zero. [any]
        high: A place where it is not below zero. [any]

    Returns:
        The place, to the last bit. [any]
    """
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return low if abs(rising(low)) <= abs(rising(high)) else high
