"""The best of every complete plan, each priced on its own.

Plans come from :mod:`every_plan`; prices from the table, the simulator and the count
of memory that the search rests on, and from none of its reasoning.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import erfc, log, sqrt

import numpy as np
from every_mesh import Mesh
from every_plan import FOLDED, Choice, choices, free_layers
from every_split import count_plans, splits
from strategies import small_problem

from planner.cost.estimate.host_bound import host_bound, leaves_the_gpus
from planner.cost.memory.buffers import buffer_bytes, context_bytes, device_bytes
from planner.cost.memory.communicators import communication_bytes
from planner.cost.meshes import Floats, Meshes
from planner.cost.parameters.rank_parameters import (
    Owned,
    embedding_owned,
    head_owned,
    layer_owned,
)
from planner.cost.parameters.states import late_gradients, state_bytes
from planner.cost.pipeline.memory_rows import fits, rank_blocks
from planner.cost.pipeline.splits import Counts, stages_of, step_ns
from planner.cost.pricing import Pricing
from planner.cost.table.mixed import price_meshes
from planner.cost.table.table import CostTable
from planner.schedules import SPLIT
from planner.search.space.schedules import SEARCHED
from planner.specs.table import BLOCK, StageCosts


@dataclass(frozen=True)
class Tied:
    """A candidate whose fastest split is as fast as any plan of the job."""

    step_s: float
    choice: Choice
    variant: int
    least_bytes: float
    """Device memory of the least of its fastest splits. [B]"""
    most_bytes: float


Answer = tuple[int, tuple[Counts, ...]]
"""Step of the fastest splits before the straggler factor [ns], and all of them."""


def fields_of(choice: Choice, menu: Sequence[str]) -> tuple[int, ...]:
    """Fields of a layout in their order: of the mesh, then of its schedule."""
    mesh = choice.mesh._asdict()
    del mesh["micro_batches"]
    entry = menu.index(choice.menu[0]) if len(choice.menu) == 1 else -1
    entry -= choice.block
    return (*mesh.values(), choice.vpp, SEARCHED.index(choice.schedule), entry)


def kinds_of(found: Sequence[Choice]) -> tuple[str, ...]:
    """Kinds of recompute that the candidates of a job use, in their order."""
    return tuple(dict.fromkeys(kind for choice in found for kind in choice.menu))


@lru_cache(maxsize=4096)
def plans_of_shape(
    runs: tuple[tuple[int, int], ...], pp: int, vpp: int, entries: int, extra: int
) -> int:
    """Splits of a shape, which its prices have no part in. [1]."""
    one = small_problem().layers[0]
    shape = replace(
        small_problem(pp=pp, vpp=vpp, runs=runs, extra_layers=extra),
        menu=("",) * entries,
        layers=(one,) * (1 + max(kind for kind, _ in runs)),
    )
    return count_plans(shape)


def copies_of(choice: Choice) -> int:
    """How often the ranks hold the model. [1]."""
    return 1 + (choice.schedule == "dualpipe")


def plans_of(job: Pricing, found: Sequence[Choice]) -> int:
    """Complete plans of candidates; on several pools as many as prices may allow."""
    layers, runs = job.model.layers, job.runs

    def plans(choice: Choice) -> int:
        if choice.block:
            return 1
        pp, depth = choice.mesh.pp, choice.vpp // copies_of(choice)
        free = free_layers(job, choice)
        extra = layers - -(-layers // (pp * depth)) if choice.hosting else free
        return plans_of_shape(runs, pp, depth, len(choice.menu), extra)

    return sum(map(plans, found))


def priced(job: Pricing) -> tuple[list[Choice], CostTable] | None:
    """Candidates of a job and a table with one row for each; none without any."""
    found = choices(job)
    if not found:
        return None
    rows = Meshes.from_rows([tuple(choice.mesh) for choice in found])
    return found, price_meshes(job, rows, kinds_of(found))


def costs_of(table: CostTable, row: int, choice: Choice) -> StageCosts:
    menu = tuple(table.menu.index(kind) for kind in choice.menu)
    costs = table.stage_costs(
        row,
        schedule=choice.schedule,
        vpp=choice.vpp,
        menu=menu,
        block=choice.block,
        hosting=choice.hosting,
    )
    free = free_layers(table.pricing, choice)
    assert choice.hosting or costs.extra_layers == free
    return costs


Admits = Callable[[StageCosts, Counts], bool]
"""True for a split that the memory, or the limit on its risk, admits."""


def fastest(costs: StageCosts, admits: Admits = fits) -> Answer | None:
    """Every split that is admitted, simulated; those that no other beats."""
    steps = [(step_ns(costs, s), s) for s in splits(costs) if admits(costs, s)]
    if not steps:
        return None
    least = min(step for step, _ in steps)
    return least, tuple(split for step, split in steps if step == least)


def problems(job: Pricing) -> Iterator[tuple[Choice, StageCosts]]:
    """The inner problem of every candidate that its hosts' memory admits."""
    listed = priced(job)
    if listed is None:
        return
    found, table = listed
    admitted = within_host_memory(job, found, table.meshes)
    for row, choice in enumerate(found):
        if admitted[row]:
            yield choice, costs_of(table, row, choice)


def within_host_memory(
    job: Pricing, found: Sequence[Choice], rows: Meshes
) -> list[bool]:
    """Whether hosts hold what leaves the GPUs under any split of the candidate."""
    room = job.topology.cluster.node.host_memory
    admitted = np.ones(len(found), dtype=bool)
    if room is None or not leaves_the_gpus(job):
        return admitted.tolist()
    for menu in {choice.menu for choice in found}:
        at = [i for i, choice in enumerate(found) if choice.menu == menu]
        held = _most_on_host(job, [found[i] for i in at], rows.take(np.array(at)))
        admitted[at] = held <= room
    return admitted.tolist()


def _most_on_host(job: Pricing, found: Sequence[Choice], rows: Meshes) -> Floats:
    """Most that a node holds for candidates of one menu. [B]."""
    vpp = np.array([choice.vpp for choice in found])
    copies = np.array([copies_of(choice) for choice in found])
    most = -(-job.model.layers // (rows.pp * vpp // copies))
    return host_bound(
        job,
        rows,
        vpp=vpp,
        layers=most + (job.search.space == "full"),
        recompute=found[0].menu,
        at_once=np.array([choice.schedule == "gpipe" for choice in found]),
        folded=np.array([choice.schedule in FOLDED for choice in found]),
        copies=copies,
        split=np.array([choice.schedule in SPLIT for choice in found]),
    )


def best_plans(variants: Sequence[Pricing]) -> list[Tied]:
    """The fastest plans over all variants of a job; none where nothing fits."""
    every = [tied for at, job in enumerate(variants) for tied in _of_variant(at, job)]
    least = min((tied.step_s for tied in every), default=0.0)
    return [tied for tied in every if tied.step_s == least]


def _of_variant(variant: int, job: Pricing) -> list[Tied]:
    """Candidates of one variant that no other beats.

    Under a limit on the risk every plan is priced without the limit, and its chance is
    worked out by hand.
    """
    if job.risk is not None:
        return _risked(variant, job)
    known: dict[StageCosts, Answer | None] = {}
    listed = list(problems(job))
    for _, costs in listed:
        if costs not in known:
            known[costs] = fastest(costs)
    found = [
        (answer[0] * costs.slowdown / 1e9, choice, costs, answer[1])
        for choice, costs in listed
        if (answer := known[costs]) is not None
    ]
    least = min((step for step, *_ in found), default=0.0)
    ties = [each for each in found if each[0] == least]
    return [_tied(variant, job, *each) for each in ties]


def _risked(variant: int, job: Pricing) -> list[Tied]:
    """Candidates of one variant that no other of an admitted risk beats."""
    found = []
    for choice, costs in problems(replace(job, risk=None)):
        on = Meshes.from_rows([tuple(choice.mesh)])

        def admits(its: StageCosts, split: Counts, on: Meshes = on) -> bool:
            return oom_chance(job, on, its, split) <= job.risk

        if (answer := fastest(costs, admits)) is not None:
            step = answer[0] * costs.slowdown / 1e9
            found.append((step, choice, costs, answer[1]))
    least = min((step for step, *_ in found), default=0.0)
    return [_tied(variant, job, *each) for each in found if each[0] == least]


def oom_chance(job: Pricing, on: Meshes, costs: StageCosts, split: Counts) -> float:
    """Chance of the rank that is likeliest to run out, from its memory in bytes.

    What a rank needs beyond its states is off by a factor; its logarithm is normal,
    and the band has 5 % beyond either end.
    """
    chances = []
    for rank, blocks in enumerate(rank_blocks(costs, split).tolist()):
        part, row = job.on_parts(on)[costs.pool(rank)]
        fixed = float(communication_bytes(part, row)[0]) + context_bytes(part)
        own = blocks * BLOCK + float(buffer_bytes(part, row)[0])
        needed = own * part.profile.memory_factor / part.profile.packing + fixed
        states = states_of(part, row, costs, split, rank) * part.profile.memory_factor
        room = (part.gpu.memory_capacity - states) / (needed - states)
        band = part.uncertainty.memory
        spread = log(band.high if room >= 1 else 1 / band.low) / 1.6448536269514722
        far = log(room) / spread if room > 0 else float("-inf")
        chances.append(0.5 * erfc(far / sqrt(2)))
    return max(chances)


def states_of(
    job: Pricing, on: Meshes, costs: StageCosts, split: Counts, rank: int
) -> float:
    """States of a rank in the optimizer's step: parameters times bytes. [B]."""

    def of(owned: Owned) -> float:
        states = state_bytes(job, owned, on).total + late_gradients(job, owned, on)
        return float(states[0])

    total = 0.0
    for stage in stages_of(costs, rank):
        for kind, layers in enumerate(split[stage].sum(axis=1).tolist()):
            total += layers * of(layer_owned(job, job.kinds[kind], on))
        total += of(embedding_owned(job, on)) * (stage == 0)
        total += of(head_owned(job, on)) * (stage == costs.stages - 1)
    return total


def _tied(
    variant: int,
    job: Pricing,
    step: float,
    choice: Choice,
    costs: StageCosts,
    fastest_splits: Sequence[Counts],
) -> Tied:
    sizes = [device_of(job, choice.mesh, costs, each) for each in fastest_splits]
    return Tied(step, choice, variant, min(sizes), max(sizes))


def device_of(job: Pricing, mesh: Mesh, costs: StageCosts, split: Counts) -> float:
    """Device memory of a plan's fullest rank. [B]."""
    each = job.on_parts(Meshes.from_rows([tuple(mesh)]))
    held = rank_blocks(costs, split).tolist()
    found = []
    for rank, blocks in enumerate(held):
        part, row = each[costs.pool(rank)]
        own = blocks * BLOCK + float(buffer_bytes(part, row)[0])
        fixed = float(communication_bytes(part, row)[0]) + context_bytes(part)
        found.append(device_bytes(part, own, fixed))
    return max(found)
