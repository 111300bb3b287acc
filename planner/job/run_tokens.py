"""Tokens of a run: by compute, compute-optimal, or with serving in mind."""

from planner.errors import BadInputError
from planner.job.scaling_law import FLOPS_PER_TOKEN, law_named, longer, rule_of_thumb
from planner.models.architecture import Architecture
from planner.specs.training import TrainingSpec


def tokens_of_compute(compute: float, parameters: float) -> float:
    """Tokens that a compute budget pays for.

    ::

        T = C / (6 P)

    Args:
        compute: Budget C. [FLOP]
        parameters: Parameters P that a token meets. [1]

    Returns:
        Tokens. [token]

    Leaves out attention scores, 4 % of the work at 8,192 tokens and 405B.
    """
    return compute / (FLOPS_PER_TOKEN * parameters)


def compute_optimal_tokens(parameters: float, inference: float = 0.0) -> float:
    """Tokens that make a model of this size the cheapest of its quality.

    Without serving ``T0 = 20 P``. Let ``I`` tokens be served at 2 FLOP for each
    parameter: training and serving take ``6 P T + 2 P I``. The cheapest way to a loss
    ``E + A / P^a + B / T^b`` is where::

        (1 + I / (3 T)) (T0 / T)^b = 1

    Args:
        parameters: Parameters that a token meets. [1]
        inference: Tokens I to be served over the model's life. [token]

    Returns:
        Tokens to train; more, the more are served. [token]

    Leaves out that a GPU serves at another utilisation than it trains.

    References:
        Hoffmann et al. 2022, arXiv:2203.15556; Sardana et al. 2024, "Beyond
        Chinchilla-Optimal", arXiv:2401.00448, equation 3, its condition of first
        order at fixed P, scaled to 20 tokens a parameter for I = 0.
    """
    rule = rule_of_thumb()
    alone = rule.tokens_per_parameter * parameters
    return longer(alone, inference, law_named(rule.law).data_exponent)


def with_tokens(training: TrainingSpec, model: Architecture) -> TrainingSpec:
    """Training block with its length as a number of tokens, where it has a length.

    Raises:
        BadInputError: The batch ramp is longer than the run.
    """
    parameters = float(model.active_parameters)
    tokens = training.run_tokens
    if training.compute is not None:
        tokens = tokens_of_compute(training.compute, parameters)
    if training.tokens == "compute-optimal":
        served = training.inference_tokens or 0.0
        tokens = compute_optimal_tokens(parameters, served)
    ramp = sum(step.tokens for step in training.batch_ramp or ())
    if ramp and (tokens is None or ramp >= tokens):
        raise BadInputError(
            f"the ramp takes {ramp:g} tokens, which is not less than the whole run",
            field="training.batch_ramp",
            value=tokens,
            allowed="a run of more tokens, by training.tokens or training.compute",
        )
    clear = {"tokens": tokens, "compute": None, "inference_tokens": None}
    return training if tokens is None else training.model_copy(update=clear)


def tokens_rule(training: TrainingSpec, model: Architecture) -> str:
    """Source of a run's number of tokens, in words."""
    parameters = f"{model.active_parameters / 1e9:,.1f}B parameters"
    if training.compute is not None:
        return f"{training.compute:.3g} FLOP over 6 x {parameters}"
    if training.tokens != "compute-optimal":
        return "given"
    each = rule_of_thumb().tokens_per_parameter
    optimal = f"compute-optimal, {each:g} for each of {parameters}"
    if training.inference_tokens is None:
        return f"{optimal} (arXiv:2203.15556)"
    return (
        f"{optimal}, more for {training.inference_tokens:.3g} tokens to be served "
        "(arXiv:2401.00448)"
    )
