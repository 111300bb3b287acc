"""A lower bound on the step of every layout of a job, without listing layouts."""

from planner.cost.kernels import gemm_rate
from planner.cost.parameters.adapters import is_frozen
from planner.cost.pricing import Pricing
from planner.cost.time.gradients import HALF_PRECISION
from planner.models.layers.blocks import LayerKind
from planner.models.layers.parts import Gemm


def step_floor(pricing: Pricing) -> float:
    """Bound the step of every layout by the products of the layers alone.

    All GPUs that host stages multiply at their sustained rate all the time::

        T >= B s sum_layers passes 2 W / sum_gpus P eps

    with ``W`` the weights that a token meets, over the fastest GPUs alone where the
    user limits their number. There are up to three passes: forward, input gradients
    and weight gradients. Frozen layers have no weight gradients, and below the first
    trained layer the forward alone. A rank lasts at least as long as it multiplies,
    and the longest is at least the mean.

    Returns:
        Time that no layout of the declared space goes below. [s]

    Leaves out attention scores, memory traffic, launches, exchanges, bubbles and the
    optimizer, all of which only add.
    """
    tokens = pricing.training.step_tokens
    rate = _most_tokens(pricing)
    return float(tokens / rate) if rate else 0.0


def _most_tokens(pricing: Pricing) -> float:
    """Tokens of all GPUs of the hosting pools, or of as many as the user allows.

    An amount of a step is bounded from the step on all of them. [token/s].
    """
    times = ((_per_token(part), part.gpus) for part in pricing.parts)
    limit = pricing.search.largest("gpus") if pricing.aim.is_step else None
    left, rate = limit or pricing.fleet_gpus, 0.0
    for time, gpus in sorted((time, gpus) for time, gpus in times if time):
        used = min(gpus, left)
        rate, left = rate + used / time, left - used
    return rate


def _per_token(pricing: Pricing) -> float:
    """Time of one GPU that multiplies one token through all layers. [s]."""
    return sum(
        count * _layer_time(pricing, pricing.kinds[kind])
        for kind, count in pricing.runs
    )


def _layer_time(pricing: Pricing, layer: LayerKind) -> float:
    """Time of one GPU that multiplies one token through one layer. [s]."""
    frozen = is_frozen(pricing, layer)
    passes = 1 if layer.role == "below" else 2 if frozen else 3
    return sum(
        passes * 2.0 * gemm.weights_per_token / _flops(pricing, gemm)
        for gemm in layer.gemms()
    )


def _flops(pricing: Pricing, gemm: Gemm) -> float:
    """Sustained rate at which one product of a layer runs. [FLOP/s]."""
    if gemm.split.startswith("expert"):
        return gemm_rate(pricing, grouped=True).flops
    return gemm_rate(pricing, narrow=gemm.name not in HALF_PRECISION).flops
