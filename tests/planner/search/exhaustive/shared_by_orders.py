"""A fleet of three pools, and checks of what its orders share."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
from every_split import cheapest_split, splits
from strategies import small_job
from whole_jobs import with_room

from planner.cost.pipeline.linear import lines_at, path_lines
from planner.cost.pipeline.memory_rows import fits, memory_rows
from planner.cost.pipeline.splits import by_rank
from planner.cost.pricing import Pricing
from planner.cost.table.mixed import price_meshes
from planner.hardware.catalog import resolve_cluster
from planner.hardware.fleets import ClusterSpec
from planner.hardware.graph.topology import ClusterTopology
from planner.hardware.reading.files import SHIPPED
from planner.search import waiting
from planner.search.bounds import memory_bounds
from planner.search.bounds.bounds import relax
from planner.search.bounds.group_bounds import times_of
from planner.search.bounds.memory_bounds import cannot_fit, most_layers
from planner.search.bounds.paths import ShapePaths
from planner.search.first_tier import Family, FirstTier, first_tier
from planner.search.priced import PricedInOrder, stage_costs
from planner.search.solver.dual import tighten
from planner.search.space.fleet import arrangements
from planner.specs.search import SearchSpec
from planner.specs.table import StageCosts

NODES = {"fast": "dgx-h100", "slow": "dgx-a100-80gb", "small": "dgx-a100-40gb"}
WIDE = {"hidden_size": 4096, "intermediate_size": 16384}
TAKEN = 39.5e9
"""Memory that is taken on every GPU: of the small ones hardly a layer fits. [B]"""
LIMITS = {"tp": (4, 8), "cp": 1, "zero_stage": 1, "micro_batch": 1, "pp": (3, 6)}
"""Limits of all jobs here."""


@cache
def job() -> Pricing:
    """A Llama of few layers on a node of each of three kinds."""
    pools = [{"name": n, "node": node, "nodes": 1} for n, node in NODES.items()]
    spec = ClusterSpec.model_validate({"name": "made", "pools": pools})
    limits = SearchSpec.model_validate(LIMITS | {"recompute": ("none", "full")})
    base = small_job(limits, sequences=8, config={"num_hidden_layers": 5, **WIDE})
    there = replace(base, topology=ClusterTopology(resolve_cluster(spec, SHIPPED)))
    return with_room(there, TAKEN)


@cache
def orders() -> tuple[tuple[Pricing, FirstTier], ...]:
    """Every order of all three pools, with its candidates, as a search lists them."""
    family = Family()
    return tuple(
        (variant, first_tier(variant, np.inf, family=family))
        for variant in arrangements(job())
        if len(variant.stage_pools) == 3
    )


@cache
def problems() -> tuple[tuple[StageCosts, ...], ...]:
    """Inner problems of every order, each candidate priced by itself."""
    return tuple(
        tuple(stage_costs(v, tier.space, c) for c in range(len(tier.space)))
        for v, tier in orders()
    )


def check_prices() -> None:
    """Shared prices are those of the order alone."""
    for (variant, tier), costs in zip(orders(), problems(), strict=True):
        priced = PricedInOrder(variant, tier.space, tier.order, shared=tier.prices)
        assert tier.prices is not None
        for place, candidate in enumerate(tier.order.tolist()):
            assert priced.costs(place) == costs[candidate]


def check_memory() -> None:
    """A rank holds what the rows of its own order leave room for."""
    for costs in problems():
        for each in costs:
            own = np.full(each.pp, each.vpp * each.most_layers)
            rows = memory_rows(each.timeless)
            alone = memory_bounds._most(each, rows)
            assert most_layers(each).tolist() == np.minimum(own, alone).tolist()


def check_groups() -> None:
    """A path is as long in a group as in each candidate; no bound is above a split."""
    for (variant, tier), costs in zip(orders(), problems(), strict=True):
        shapes = ShapePaths()
        for each in costs:
            if shapes.lessons(each) == 0 and not cannot_fit(each):
                tighten(each, relax(each, None, shapes), None, shapes)
        queue = waiting.Waiting(variant, tier, shapes)
        before = tier.bounds.copy()
        while queue.next(np.inf) is None:
            pass
        raised = queue.bounds > before
        assert raised.any()
        for candidate in np.flatnonzero(raised).tolist():
            best = cheapest_split(costs[candidate])
            step = np.inf if best is None else best[0] * costs[candidate].slowdown
            assert queue.bounds[candidate] <= step / 1e9
        tier.bounds[:] = before


def check_rooms() -> None:
    """No split that fits has more layers on a rank than a group allows."""
    for (variant, tier), costs in zip(orders(), problems(), strict=True):
        space = tier.space
        table = price_meshes(variant, space.meshes, space.recompute)
        for candidate, each in enumerate(costs):
            own = space.take(np.array([candidate]))
            most = waiting.most_on_ranks(table, own, each.pool_of_rank)
            for counts in splits(each):
                loads = by_rank(each, counts.sum(axis=(1, 2)))
                assert (loads <= most).all() or not fits(each, counts)


def check_times() -> None:
    """Lines at the times of a table are those of the problem that is cut out of it."""
    for (variant, tier), costs in zip(orders(), problems(), strict=True):
        space = tier.space
        table = price_meshes(variant, space.meshes, space.recompute)
        for candidate, each in enumerate(costs):
            entries = np.array([space.choices(candidate)])
            mesh = space.mesh[candidate : candidate + 1]
            paths = ShapePaths().of(each)
            for counts, p2p in zip(paths.counts, paths.p2p, strict=True):
                path = counts[None], p2p[None]
                found = lines_at(each, times_of(each, table, mesh, entries), *path)
                own = path_lines(each, *path)
                assert found.constants.tolist() == own.constants.tolist()
                assert np.array_equal(found.factors, own.factors)


CHECKS: dict[str, Callable[[], None]] = {
    "prices": check_prices,
    "memory": check_memory,
    "groups": check_groups,
    "rooms": check_rooms,
    "times": check_times,
}
