"""Load of the busiest expert rank: uneven routing of tokens to experts."""

from functools import lru_cache
from statistics import NormalDist

import numpy as np

from planner.cost.meshes import Floats, Meshes
from planner.cost.pricing import Pricing
from planner.models.layers.blocks import Moe


def imbalance(
    workload: Pricing, meshes: Meshes, layers: "Floats | float" = 1
) -> Floats:
    """Load of the busiest expert rank over the mean, ``1 + sigma sqrt(ep / E) e(ep)``.

    Loads of experts spread by sigma of their mean. A rank adds up E / ep experts, and
    e(n) is the largest of n normal deviates. Another rank is the busiest in every
    layer: a layer waits for the busiest, while memory adds up over a rank's layers,
    ``sigma / sqrt(layers)``. A token asks each of its k experts once, so that no rank
    gets more than ``ep min(E / ep, k) / k``.

    Args:
        workload: The job: its experts, and the spread or imbalance of the stack.
        meshes: Any meshes.
        layers: Layers whose loads of one rank add up. [1], shape (meshes,)

    Returns:
        Factor, 1 for dense models and for one rank. [1], shape (meshes,)
    """
    profile = workload.profile
    ffn = next((k.ffn for k in workload.model.kinds if isinstance(k.ffn, Moe)), None)
    if ffn is None:
        return np.ones(len(meshes))
    if profile.expert_imbalance is not None:
        return np.where(meshes.ep > 1, profile.expert_imbalance, 1.0)
    spread = profile.expert_spread * np.sqrt(meshes.ep / ffn.experts / layers)
    most = largest(int(meshes.ep.max(initial=1)))[meshes.ep]
    all_tokens = meshes.ep * np.minimum(ffn.experts / meshes.ep, ffn.top_k) / ffn.top_k
    factor: Floats = np.minimum(1.0 + spread * most, all_tokens)
    return factor


def assumed_routing(workload: Pricing) -> tuple[str, ...]:
    """Sentence on the loads of the experts that prices assume.

    Args:
        workload: The job: the spread or imbalance of the stack.

    Returns:
        The sentence, none for a dense model. [text]
    """
    profile = workload.profile
    if not workload.model.expert_parameters:
        return ()
    if profile.expert_imbalance is not None:
        busiest = profile.expert_imbalance
        return (f"busiest expert rank carries {busiest:g} times the mean",)
    spread = 100 * profile.expert_spread
    return (f"loads of experts spread by {spread:g} % of their mean",)


@lru_cache(maxsize=16)
def largest(most: int) -> Floats:
    """Mean of the largest of n normal deviates.

    Args:
        most: Largest n. [1]

    Returns:
        For n from 0 to most. [1], shape (most + 1,)

    References:
        G. Blom, Statistical estimates and transformed beta-variables, 1958.
    """
    deviate = NormalDist().inv_cdf
    each = [deviate((n - 0.375) / (n + 0.25)) for n in range(1, most + 1)]
    return np.array([0.0, *each])
