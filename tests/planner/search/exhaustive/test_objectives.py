"""Least cost, energy and memory equal those of every plan of small jobs."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby, product
from math import inf, isclose
from operator import itemgetter

import pytest
from brute_force import costs_of, device_of, priced, within_host_memory
from every_plan import Choice
from every_split import splits
from examples import examples
from hypothesis import Phase, given, seed, settings
from tiers import some
from whole_jobs import whole_jobs

from planner.cost.estimate.breakdown import own_factor, work_by_rank
from planner.cost.meshes import Meshes
from planner.cost.pipeline.memory_rows import fits, rank_blocks
from planner.cost.pipeline.splits import Counts, step_ns
from planner.cost.pricing import Pricing
from planner.cost.table.mixed import price_meshes
from planner.cost.table.table import CostTable
from planner.errors import BadInputError
from planner.frameworks import FRAMEWORKS
from planner.job.variants import variants
from planner.search.aims.least_peak import least_peak
from planner.search.best_first import search_all
from planner.search.stop import Stop
from planner.specs.aim import Aim
from planner.specs.table import StageCosts

NAMES = [framework.name for framework in FRAMEWORKS]
SMALL = 100
"""Complete plans of a drawn job. [1]"""
COST = Aim("cost", base=0.3, each=1.0, per_node=2, whole=4.3)
ENERGY = Aim("energy", base=0.1, each=0.5, kernel=0.4, per_node=2, whole=2.1)
"""Amounts whose parts all matter, on nodes of two GPUs."""
MEMORY = Aim("memory")
Plan = tuple[Pricing, CostTable, Choice, StageCosts, Counts]


def every_plan(job: Pricing) -> Iterator[Plan]:
    """Every split of every candidate that fits the GPUs, on its variant."""
    for variant in variants([job]):
        listed = priced(variant)
        if listed is None:
            continue
        found, table = listed
        admitted = within_host_memory(variant, found, table.meshes)
        for row, choice in enumerate(found):
            costs = costs_of(table, row, choice)
            for split in splits(costs) if admitted[row] else ():
                if fits(costs, split):
                    yield variant, table, choice, costs, split


def amount(plan: Plan) -> float:
    """Amount of a plan's step in seconds of the whole fleet, term by term."""
    variant, _, choice, costs, split = plan
    aim, mesh = variant.aim, choice.mesh
    gpus = mesh.tp * mesh.pp * mesh.cp * mesh.dp
    step = step_ns(costs, split) * costs.slowdown / 1e9
    nodes = -(-gpus // aim.per_node)
    total = (aim.base + aim.each * nodes) * step
    if aim.kernel:
        total += aim.kernel * gpus / mesh.pp * kernels(plan)
    return total / aim.whole


def kernels(plan: Plan) -> float:
    """Time of all pipeline ranks in kernels, from the causes of each rank's work."""
    variant, _, choice, costs, split = plan
    alone = price_meshes(variant, Meshes.from_rows([tuple(choice.mesh)]), costs.menu)
    work = work_by_rank(alone, costs, split)
    busy = sum(
        rank.by_cause.get(c, 0.0) for rank in work for c in ("compute", "recompute")
    )
    return own_factor(alone) * busy / 1e9


def check_amount(job: Pricing) -> None:
    """The search proves the least amount over all plans, or says why it cannot."""
    plans = list(every_plan(job))
    chosen = job.aim.kernel and any(layers_choose(plan[2]) for plan in plans)
    try:
        outcomes = search_all(variants([job]), top=1)
    except BadInputError as error:
        assert "layers choose" in str(error)  # noqa: PT017
        assert chosen or any(map(layers_choose, candidates(job)))
        return
    assert not chosen
    least = min(map(amount, plans), default=inf)
    found = sorted(plan for outcome in outcomes for plan in outcome.ranked)
    bound = min(outcome.bound_s for outcome in outcomes)
    assert bool(found) == bool(plans)
    if found:
        assert isclose(found[0].step_s, least, rel_tol=1e-12)
        assert found[0].step_s == bound


def candidates(job: Pricing) -> Iterator[Choice]:
    """Every candidate, those that fit nowhere too."""
    for variant in variants([job]):
        listed = priced(variant)
        yield from listed[0] if listed is not None else ()


def layers_choose(choice: Choice) -> bool:
    """Tell if splits of a candidate differ in what they recompute."""
    return not choice.block and len(choice.menu) > 1


def check_peak(job: Pricing) -> None:
    """The least peak of all plans, and then the fastest of those that need no more."""
    every = list(leanest_splits(job))
    least = min((size for size, _ in every), default=inf)
    peak = least_peak(variants([job]), Stop())
    assert peak.is_proven
    assert isclose(peak.found, least, rel_tol=1e-12) or peak.found == least
    if not every:
        return
    limited = replace(job, aim=replace(MEMORY, most_bytes=peak.found))
    outcomes = search_all(variants([limited]), top=1)
    (found,) = sorted(plan for outcome in outcomes for plan in outcome.ranked)
    fastest = min(step for size, step in every if isclose(size, least, rel_tol=1e-12))
    assert found.step_s == fastest == min(outcome.bound_s for outcome in outcomes)


def leanest_splits(job: Pricing) -> Iterator[tuple[float, float]]:
    """Device memory of each candidate's leanest splits, and the fastest of their steps.

    Device memory of a mesh rises with the blocks of its fullest rank.
    """
    for candidate, plans in groupby(every_plan(job), key=itemgetter(0, 2, 3)):
        variant, choice, costs = candidate
        held = [(int(rank_blocks(costs, plan[4]).max()), plan[4]) for plan in plans]
        least = min(blocks for blocks, _ in held)
        leanest = [split for blocks, split in held if blocks == least]
        step = min(step_ns(costs, split) for split in leanest) * costs.slowdown / 1e9
        yield device_of(variant, choice.mesh, costs, leanest[0]), step


def run(check: Callable[[Pricing], None], name: str, aim: Aim, jobs: int) -> None:
    """Check so many drawn jobs of a framework, of GPUs of one kind."""
    drawn = given(whole_jobs(name, SMALL).map(lambda job: replace(job, aim=aim)))
    settled = settings(max_examples=jobs, print_blob=False, phases=[Phase.generate])
    seed(jobs)(settled(drawn(check)))()


@pytest.mark.parametrize(("name", "aim"), some(product(NAMES, [COST, ENERGY]), 3))
def test_the_least_amount_is_the_least_of_all_plans(name: str, aim: Aim) -> None:
    run(check_amount, name, aim, jobs=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("aim", [COST, ENERGY], ids=lambda aim: aim.name)
def test_the_least_amounts_of_many_more_jobs(name: str, aim: Aim) -> None:
    run(check_amount, name, aim, jobs=examples(50))


@pytest.mark.parametrize("name", some(NAMES, 2))
def test_the_least_peak_is_the_least_of_all_plans(name: str) -> None:
    run(check_peak, name, MEMORY, jobs=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_least_peaks_of_many_more_jobs(name: str) -> None:
    run(check_peak, name, MEMORY, jobs=examples(50))
