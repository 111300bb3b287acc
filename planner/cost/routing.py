"""Routing of tokens to experts: ranks that a token reaches, load of the busiest."""

from functools import lru_cache
from math import comb
from statistics import NormalDist

import numpy as np

from planner.cost.meshes import Floats, Ints, Meshes
from planner.cost.pricing import Pricing
from planner.models.layers.blocks import Moe


def imbalance(pricing: Pricing, meshes: Meshes, layers: "Floats | float" = 1) -> Floats:
    """Load of the busiest expert rank over the mean, ``1 + sigma sqrt(ep / E) e(ep)``.

    Loads of experts spread by sigma of their mean. A rank adds up E / ep experts, and
    e(n) is the largest of n normal deviates. Another rank is the busiest in every
    layer: a layer waits for the busiest, while memory adds up over a rank's layers,
    ``sigma / sqrt(layers)``. A token asks each of its k experts once, so that no rank
    gets more than ``ep min(E / ep, k) / k``.

    Returns:
        Factor, 1 for dense models and for one rank. [1], shape (meshes,)
    """
    profile = pricing.profile
    ffn = next((k.ffn for k in pricing.model.kinds if isinstance(k.ffn, Moe)), None)
    if ffn is None:
        return np.ones(len(meshes))
    if profile.expert_imbalance is not None:
        return np.where(meshes.ep > 1, profile.expert_imbalance, 1.0)
    spread = profile.expert_spread * np.sqrt(meshes.ep / ffn.experts / layers)
    most = largest(int(meshes.ep.max(initial=1)))[meshes.ep]
    all_tokens = meshes.ep * np.minimum(ffn.experts / meshes.ep, ffn.top_k) / ffn.top_k
    factor: Floats = np.minimum(1.0 + spread * most, all_tokens)
    return factor


def assumed_routing(pricing: Pricing) -> tuple[str, ...]:
    """Sentence on the loads of the experts that prices assume.

    Returns:
        The sentence, none for a dense model. [text]
    """
    profile = pricing.profile
    if not pricing.model.expert_parameters:
        return ()
    if profile.expert_imbalance is not None:
        busiest = profile.expert_imbalance
        return (f"busiest expert rank carries {busiest:g} times the mean",)
    spread = 100 * profile.expert_spread
    return (f"loads of experts spread by {spread:g} % of their mean",)


@lru_cache(maxsize=16)
def largest(most: int) -> Floats:
    """Mean of the largest of n normal deviates.

    Returns:
        For n from 0 to most. [1], shape (most + 1,)

    References:
        G. Blom, Statistical estimates and transformed beta-variables, 1958.
    """
    deviate = NormalDist().inv_cdf
    deviations = [deviate((n - 0.375) / (n + 0.25)) for n in range(1, most + 1)]
    return np.array([0.0, *deviations])


def parts_reached(ffn: Moe, parts: Ints) -> Floats:
    """Mean number of other parts of the experts that a token's k distinct ones hit.

    ``(n - 1) (1 - P)`` with P the chance to miss a part, for even routing. Free
    routing draws from all E experts. Routing limited to M of G groups draws from
    ``S = M E / G``. A part that lies in one group is in these M times in G. A part of
    g groups has j of them chosen as in a draw without replacement. Parts that groups
    do not tile are taken under free routing, which reaches more parts.

    Args:
        parts: Equal parts of the experts: ranks, or domains. [1], shape (meshes,)

    References:
        DeepSeek-V2, arXiv:2405.04434, section 2.2.2: device-limited routing.
    """
    experts, k = ffn.experts / parts, ffn.top_k
    missed = _missed(ffn.experts, experts, k)
    if ffn.groups > 1:
        groups, chosen = ffn.groups, ffn.top_groups
        pool = chosen * ffn.experts // groups
        within = 1.0 - chosen / groups * (1.0 - _missed(pool, experts, k))
        missed = np.where(parts % groups == 0, within, missed)
        several = (groups % parts == 0) & (parts < groups)
        missed = np.where(several, _missed_groups(ffn, parts), missed)
    reached: Floats = (parts - 1) * (1.0 - missed)
    return reached


def _missed(experts: float, local: Floats, drawn: int) -> Floats:
    """Chance that distinct experts of a pool all lie outside those held. [1].

    ``prod_{i < k} (1 - held / (E - i))``.
    """
    missed = np.ones(len(local))
    for already in range(drawn):
        missed = missed * np.maximum(1.0 - local / (experts - already), 0.0)
    return missed


def _missed_groups(ffn: Moe, parts: Ints) -> Floats:
    """Chance to miss a part of ``g = G / n`` whole groups, of which j are chosen. [1].

    ``sum_j C(g, j) C(G - g, M - j) / C(G, M) prod_{i < k} (1 - j (E / G) / (S - i))``.
    """
    groups, chosen = ffn.groups, ffn.top_groups
    pool, group_size = chosen * ffn.experts // groups, ffn.experts // groups
    missed = np.zeros(len(parts))
    for mine in range(chosen + 1):
        ways = [comb(g, mine) * comb(groups - g, chosen - mine) for g in range(groups)]
        share = np.array(ways)[groups // parts % groups] / comb(groups, chosen)
        local = np.full(len(parts), float(mine * group_size))
        missed = missed + share * _missed(pool, local, ffn.top_k)
    return missed
