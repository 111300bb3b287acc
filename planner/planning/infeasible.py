"""Explains why no variant of a job fits, and what would make one fit."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from planner.cost.estimate.estimate import memory_estimate
from planner.cost.estimate.layouts import layout_of
from planner.cost.estimate.pricing import price
from planner.cost.meshes import Floats
from planner.cost.pricing import Pricing
from planner.cost.table.mixed import price_meshes
from planner.cost.table.table import CostTable
from planner.cost.workload import Workload
from planner.job.variants import variants
from planner.planning.reasons import gpus_words
from planner.search.bounds.paths import even_counts, in_class
from planner.search.first_tier import PART
from planner.search.outcome import SearchOutcome
from planner.search.space.space import Enumerator, Space
from planner.search.stop import Stop, StoppedError
from planner.specs.answer.estimate import StageMemory
from planner.specs.layouts.axes import AXIS, MESH
from planner.specs.layouts.layout import Layout, Offload
from planner.specs.layouts.layout_text import recompute_words
from planner.specs.layouts.offload import offload_text

TRIED = 64
"""Candidates of a variant looked at for the smallest footprint. [1]"""
OFFLOADS_TRIED = 16
"""Variants looked at for an offload that would fit. [1]"""


@dataclass(frozen=True)
class Footprint:
    """Memory of the fullest rank of one layout."""

    needed: float
    """[GiB]"""
    capacity: float
    """[GiB]"""
    layout: Layout
    stage: StageMemory
    pricing: Pricing

    @property
    def excess(self) -> float:
        """Memory needed over what a GPU has. [1]."""
        return self.needed / self.capacity


def infeasibility(
    outcomes: Sequence[SearchOutcome], stop: Stop | None = None
) -> tuple[str, ...]:
    """Name the smallest footprint reached, and what would make it fit.

    Args:
        outcomes: Finished searches of all variants, without a plan.
        stop: Ends the look for footprints: the smallest so far is named. [-]
    """
    stop = stop or Stop()
    found = [tightest(outcome.pricing, stop) for outcome in outcomes]
    footprints = [footprint for footprint in found if footprint is not None]
    layouts = sum(outcome.candidates for outcome in outcomes)
    if not footprints:
        return (f"{layouts:,} legal layouts, none fits.",)
    least = min(footprints, key=lambda footprint: footprint.needed)
    capacity = f"{least.capacity:.1f} GiB"
    within = "within the limit on the risk of" if least.excess <= 1 else "fits"
    return (
        f"{layouts:,} legal layouts{_over(len(outcomes))}, none {within} {capacity}.",
        f"The tightest reaches {least.needed:.1f} GiB on stage {least.stage.stage}: "
        f"{_words(least)}.",
        *_remedies(least),
        *_host_memory(outcomes),
        *_with_offload([outcome.pricing for outcome in outcomes], stop),
    )


def _over(variants: int) -> str:
    return f" over {variants} settings" if variants > 1 else ""


def _words(footprint: Footprint) -> str:
    """Degrees and settings of a layout."""
    layout, pricing = footprint.layout, footprint.pricing
    chosen = pricing.chosen
    told = (*MESH, AXIS["zero_stage"], AXIS["micro_batch"])
    parts = [
        *(f"{axis.told} {axis.of(layout)}" for axis in told),
        f"recompute {recompute_words(layout)}",
        *(f"{name} {value}" for name, value in chosen.items()),
        offload_text(layout.offload),
    ]
    return ", ".join(filter(None, parts))


def tightest(pricing: Pricing, stop: Stop | None = None) -> Footprint | None:
    """The least footprint of the candidates with the least states and activations.

    Returns:
        Least exact memory of some dozen candidates; None without a legal candidate.

    Leaves out every candidate that a rough count ranks lower, so a smaller footprint
    may exist.
    """
    stop = stop or Stop()
    found: list[Footprint] = []
    for table, space, candidate in _leanest(pricing, stop):
        footprint = _footprint(table, space, candidate)
        found += [footprint] if footprint is not None else []
        if found and stop.reached:
            break
    return min(found, key=lambda footprint: footprint.needed, default=None)


def _leanest(pricing: Pricing, stop: Stop) -> list[tuple[CostTable, Space, int]]:
    """The candidates that a rough count puts first, some dozens of the whole space."""
    best: list[tuple[float, tuple[CostTable, Space, int]]] = []
    for table, space in _priced_parts(pricing, stop):
        rough = _rough(table, space)
        first = np.argsort(rough, kind="stable")[:TRIED].tolist()
        best += [(float(rough[at]), (table, space, at)) for at in first]
        best = sorted(best, key=itemgetter(0))[:TRIED]
    return [candidate for _, candidate in best]


def _priced_parts(pricing: Pricing, stop: Stop) -> Iterator[tuple[CostTable, Space]]:
    """Price the whole space part by part, until the stop."""
    try:
        listing = Enumerator(pricing).listing(stop=stop)
    except StoppedError:
        return
    for some in listing.slices(PART):
        space = listing.part(some, Counter())
        if len(space):
            yield price_meshes(pricing, space.meshes, space.recompute), space
        if stop.reached:
            return


def _rough(table: CostTable, space: Space) -> Floats:
    """Blocks over the budget if layers spread evenly. [block], shape (candidates,)."""
    mesh = space.mesh
    pp = table.meshes.pp[mesh]
    entry = np.maximum(space.menu, 0)
    states = sum(count * table.units[kind].static for kind, count in table.pricing.runs)
    kept = sum(count * table.saved[kind] for kind, count in table.pricing.runs)
    ends = table.embedding.unit.static + table.head.unit.static
    depth = np.minimum(table.meshes.micro_batches[mesh], pp)
    rough = (np.asarray(states)[mesh] + np.asarray(kept)[entry, mesh] * depth) / pp
    rough = rough + ends[mesh] + table.transient.max(axis=0)[entry, mesh]
    return np.asarray(rough - table.budget[mesh])


def _footprint(table: CostTable, space: Space, candidate: int) -> Footprint | None:
    row, vpp = int(space.mesh[candidate]), int(space.vpp[candidate])
    entry = max(int(space.menu[candidate]), 0)
    costs = table.stage_costs(
        row,
        schedule=space.schedule(candidate),
        vpp=vpp,
        menu=(entry,),
        hosting=space.hosting(candidate),
    )
    counts = even_counts(costs)
    if not in_class(costs, counts):
        return None
    layout = layout_of(
        table.pricing,
        space.meshes,
        row,
        schedule=costs.schedule,
        vpp=vpp,
        menu=costs.menu,
        counts=counts,
        hosting=space.hosting(candidate),
    )
    memory = memory_estimate(price(table.pricing, layout))
    worst = max(memory.stages, key=lambda stage: stage.device)
    return Footprint(worst.device, memory.capacity_gib, layout, worst, table.pricing)


def _remedies(footprint: Footprint) -> tuple[str, ...]:
    """Sentence on what would help, by what takes most memory of the fullest rank."""
    pricing, stage, excess = footprint.pricing, footprint.stage, footprint.excess
    states = stage.weights + stage.gradients + stage.optimizer
    gpus = pricing.gpus
    if states > stage.activations + stage.transient:
        if excess <= 1:  # the prediction fits, and the risk is too high
            more = f"more than {gpus_words(gpus)} of this size would lower the risk"
            return (f"States are {states:.1f} GiB of it: {more}.",)
        node = pricing.topology.cluster.node.gpus_per_node
        nodes = int(np.ceil(gpus * excess / node))
        more = f"about {gpus_words(nodes * node, node)} of this size instead of {gpus}"
        return (f"States are {states:.1f} GiB of it: {more} would hold them.",)
    limits = pricing.search.limits()
    freed = ", ".join(f"{axis} {value}" for axis, value in limits.items())
    if freed:
        return (f"Activations and transients fill it: loosen the limits on {freed}.",)
    longer = pricing.training.seq_len // 2
    if excess <= 1:
        return (
            f"Activations and transients fill it: sequences of {longer} tokens or GPUs "
            f"with more memory would lower the risk (cp is {footprint.layout.cp}).",
        )
    return (
        f"Activations and transients fill it: sequences of {longer} tokens or GPUs "
        f"with {excess:.1f} times the memory would fit (cp is {footprint.layout.cp}).",
    )


def _host_memory(outcomes: Sequence[SearchOutcome]) -> tuple[str, ...]:
    """Number of layouts with more offload that host memory rules out, in words."""
    counted: Counter[str] = Counter()
    for outcome in outcomes:
        counted.update(
            {r: n for r, n in outcome.pruned.items() if r.startswith("host")}
        )
    return tuple(
        f"{count:,} layouts more are ruled out by {rule}."
        for rule, count in counted.items()
    )


def _with_offload(workloads: Sequence[Pricing], stop: Stop) -> tuple[str, ...]:
    """Tell if offload to host memory would fit, where the user did not allow it."""
    if workloads[0].search.offload not in (None, False):
        return ()
    tried: list[Footprint] = []
    for variant in _offloading(workloads):
        if stop.reached:
            break
        found = tightest(variant, stop)
        if found is not None and found.excess <= 1:
            return (f"{_NOT_ALLOWED}: search.offload: true would fit, {_at(found)}",)
        tried += [found] if found is not None else []
    if not tried:
        return ()
    least = min(tried, key=lambda footprint: footprint.needed)
    return (f"{_NOT_ALLOWED}, and found not to be enough: {_at(least)}",)


_NOT_ALLOWED = "Offload to host memory is not allowed"


def _at(footprint: Footprint) -> str:
    needed, capacity = footprint.needed, footprint.capacity
    return f"{needed:.1f} of {capacity:.1f} GiB at {_words(footprint)}."


def _offloading(workloads: Sequence[Workload]) -> list[Pricing]:
    """Variants that offload something, the least first, up to a number."""
    of_each: dict[str, Workload] = {}
    for workload in workloads:
        search = workload.search.model_copy(update={"offload": True})
        its = replace(workload, search=search)
        of_each.setdefault(workload.framework.name, its)
    every = variants(list(of_each.values()))
    return [each for each in every if each.offload != Offload()][:OFFLOADS_TRIED]
