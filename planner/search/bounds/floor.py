"""A lower bound on the step of every layout of a job, without listing layouts."""

from planner.cost.kernels import gemm_rate
from planner.cost.parameters.adapters import is_frozen
from planner.cost.pricing import Pricing
from planner.cost.time.gradients import HALF_PRECISION
from planner.models.layers.blocks import LayerKind
from planner.models.layers.parts import Gemm


def step_floor(workload: Pricing) -> float:
    """Bound the step of every layout by the products of the layers alone.

    All GPUs that host stages multiply at their sustained rate all the time::

        T >= B s sum_layers passes 2 W / sum_gpus P eps

    with ``W`` the weights that a token meets. There are up to three passes: forward,
    input gradients and weight gradients. Frozen layers have no weight gradients, and
    below the first trained layer the forward alone. A rank lasts at least as long as
    it multiplies, and the longest is at least the mean.

    Args:
        workload: A variant of the job.

    Returns:
        Time that no layout of the declared space goes below. [s]

    Leaves out attention scores, memory traffic, launches, exchanges, bubbles and the
    optimizer, all of which only add.
    """
    tokens = workload.training.step_tokens
    rate = sum(_gpu_rates(workload))
    return float(tokens / rate) if rate else 0.0


def _gpu_rates(workload: Pricing) -> list[float]:
    """Tokens a second of all GPUs of every hosting pool. [token/s]."""
    return [part.gpus / time for part in workload.parts if (time := _per_token(part))]


def _per_token(workload: Pricing) -> float:
    """Time of one GPU that multiplies one token through all layers. [s]."""
    return sum(
        count * _layer_time(workload, workload.kinds[kind])
        for kind, count in workload.runs
    )


def _layer_time(workload: Pricing, layer: LayerKind) -> float:
    """Time of one GPU that multiplies one token through one layer. [s]."""
    frozen = is_frozen(workload, layer)
    passes = 1 if layer.role == "below" else 2 if frozen else 3
    return sum(
        passes * 2.0 * gemm.weights_per_token / _flops(workload, gemm)
        for gemm in layer.gemms()
    )


def _flops(workload: Pricing, gemm: Gemm) -> float:
    """Sustained rate at which one product of a layer runs. [FLOP/s]."""
    if gemm.split.startswith("expert"):
        return gemm_rate(workload, grouped=True).flops
    return gemm_rate(workload, narrow=gemm.name not in HALF_PRECISION).flops
