"""The least change of a job that makes it fit."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from planner.cost.pricing import Pricing
from planner.hardware.catalog import larger_machines, node, resolve_cluster
from planner.hardware.fleets import ClusterSpec
from planner.hardware.graph.topology import ClusterTopology
from planner.planning.capacity.alternatives import may_offload
from planner.planning.capacity.leanest import Held, leanest, weigh
from planner.planning.reasons import gpus_words
from planner.specs.answer.estimate import MemoryEstimate
from planner.specs.answer.memory import FittingChange, MethodAnswer
from planner.specs.layouts.layout import Layout, Offload
from planner.specs.layouts.layout_text import short_layout
from planner.specs.layouts.offload import unions

LEAST_TRAINED = ("full", "lora", "qlora")
"""Methods of training; each later one leaves more of the model as it is. [text]"""
SHORTEST = 512
"""Tokens of the shortest sequence that is proposed. [token]"""
DOUBLINGS = 4
"""Times that the GPUs are doubled in search of a cluster that fits. [1]"""
HOSTED = "states in host memory"
"""Words for states that offload moves. [text]"""


def cheapest_change(
    pricing: Pricing,
    layout: Layout,
    memory: MemoryEstimate,
    methods: Sequence[MethodAnswer],
    *,
    chosen: bool,
) -> FittingChange | None:
    """The least change after which a job fits.

    First come changes that train the same (the most frugal layout, states in the
    host's memory), then another optimizer, a method that trains less, shorter
    sequences, and at last more GPUs.

    Args:
        pricing: The job. [-]
        layout: Layout that the job is judged by. [-]
        memory: Memory of that layout. [GiB]
        methods: The job under each method, its own first. [-]
        chosen: True where the layout is the most frugal one already. [-]

    Returns:
        The first change after which the job fits; where there is none, the one of
        least risk, if that is below the job's. None for a job that fits. [-]
    """
    if memory.verdict == "fits":
        return None
    least: FittingChange | None = None
    for change in _changes(pricing, layout, methods, chosen=chosen):
        if change.verdict == "fits":
            return change
        if _risk(change) < _risk(least or memory):
            least = change
    return least if least is not None and least.verdict != "oom" else None


def _risk(of: FittingChange | MemoryEstimate) -> float:
    return 1.0 if of.oom_probability is None else of.oom_probability


def _changes(
    pricing: Pricing, layout: Layout, methods: Sequence[MethodAnswer], *, chosen: bool
) -> Iterator[FittingChange]:
    """Changes in their order; each is priced when it is asked for."""
    if not chosen and (held := leanest(pricing)) is not None:
        text = short_layout(held.layout)
        yield _change(f"layout {text}", ("--layout", text), held)
    yield from _hosted(pricing, methods)
    yield from _ways(methods)
    yield from _shorter(pricing, layout)
    yield from _more_gpus(pricing)


def _change(words: str, options: tuple[str, ...], held: Held) -> FittingChange:
    memory = held.memory
    return FittingChange(
        change=words,
        options=options,
        verdict=memory.verdict,
        device_gib=memory.peak_device_gib.value,
        oom_probability=memory.oom_probability,
        gpus=held.layout.gpus,
    )


def _hosted(
    pricing: Pricing, methods: Sequence[MethodAnswer]
) -> Iterator[FittingChange]:
    """The job's own method with as much in the host's memory as a GPU can do without.

    Frozen weights move too, since adapters leave little else. Left out where the
    methods have it already.
    """
    own, *others = methods
    there = [w for w in others if w.offloaded and w.optimizer == own.optimizer]
    if own.method in {way.method for way in there} or not may_offload(pricing):
        return
    for parts in sorted(unions(pricing.framework.limits.offload), key=len):
        if "parameters" not in parts or "activations" in parts:
            continue
        offload = Offload(**dict.fromkeys(parts, 1.0))
        held = leanest(replace(pricing, offload=offload))
        if held is not None:
            yield _change(HOSTED, ("--set", "search.offload=true"), held)
        return


def _ways(methods: Sequence[MethodAnswer]) -> Iterator[FittingChange]:
    """Methods that train no more of the model than the job's own, the nearest first."""
    own, *others = methods
    level = LEAST_TRAINED.index(own.method)
    able = [
        way
        for way in others
        if way.verdict is not None and LEAST_TRAINED.index(way.method) >= level
    ]
    able.sort(
        key=lambda way: (
            LEAST_TRAINED.index(way.method),
            way.optimizer != own.optimizer,
        )
    )
    for way in able:
        yield FittingChange(
            change=_words(own, way),
            options=tuple(_options(own, way)),
            verdict=way.verdict or "oom",
            device_gib=way.device_gib or 0.0,
            oom_probability=way.oom_probability,
            gpus=way.gpus,
        )


def _words(own: MethodAnswer, way: MethodAnswer) -> str:
    """The difference between two methods, in words. [text]."""
    words = [way.method] if way.method != own.method else []
    words += [way.optimizer] if way.optimizer != own.optimizer else []
    words += [HOSTED] if way.offloaded != own.offloaded else []
    return ", ".join(words)


def _options(own: MethodAnswer, way: MethodAnswer) -> Iterator[str]:
    """Options of the command line that make the job of a method. [text]."""
    if way.method != own.method:
        yield from ("--set", f"training.method={way.method}")
    if way.optimizer != own.optimizer:
        yield from ("--set", f"training.optimizer={way.optimizer}")
    if way.offloaded != own.offloaded:
        yield from ("--set", f"search.offload={str(way.offloaded).lower()}")


def _shorter(pricing: Pricing, layout: Layout) -> Iterator[FittingChange]:
    """Sequences of half the length, and half of that, in the same layout."""
    training = pricing.training
    length = training.seq_len // 2
    while length >= SHORTEST:
        change = {"seq_len": length, "global_batch": pricing.sequences}
        step = training.model_copy(update={"global_batch_tokens": None, **change})
        held = Held(layout, weigh(replace(pricing, training=step), layout))
        options = ("--set", f"training.seq_len={length}")
        yield _change(f"sequences of {length:,} tokens", options, held)
        length //= 2


def _more_gpus(pricing: Pricing) -> Iterator[FittingChange]:
    """Twice the GPUs, and twice as many again, each in its most frugal layout."""
    for spec, options in islice(_larger(pricing), DOUBLINGS):
        try:
            cluster = resolve_cluster(spec, pricing.topology.cluster.catalog)
        except ValueError:
            continue
        there = replace(pricing, topology=ClusterTopology(cluster))
        held = leanest(replace(there, pools=(), pods=(), stage_pools=()))
        if held is not None:
            words = gpus_words(cluster.gpus, cluster.node.gpus_per_node)
            yield _change(words, ("--set", options), held)


def _larger(pricing: Pricing) -> Iterator[tuple[ClusterSpec, str]]:
    """Clusters of more GPUs: the rest of a node, larger machines, then more nodes."""
    cluster = pricing.topology.cluster
    spec = cluster.spec
    plain = {"tiers": (), "out_of_service": (), "pools": ()}
    each = spec.gpus_per_node or 0
    whole = node(spec.node, cluster.catalog).gpus_per_node
    while each and each < whole:
        each = min(2 * each, whole)
        there = spec.model_copy(update=plain | {"gpus_per_node": each})
        yield there, f"cluster.gpus_per_node={each}"
    if spec.nodes == 1 and not each:
        for larger in larger_machines(cluster):
            there = spec.model_copy(update=plain | {"node": larger.name})
            yield there, f"cluster.node={larger.name}"
    nodes = spec.nodes
    while not each:
        nodes *= 2
        there = spec.model_copy(update=plain | {"nodes": nodes})
        yield there, f"cluster.nodes={nodes}"
