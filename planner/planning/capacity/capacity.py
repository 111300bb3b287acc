"""Answers `planner memory`: memory of a job, and the largest job that fits."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial

from planner.cost.estimate.checkpoint import checkpoint
from planner.cost.estimate.stack import set_by_hand, stack_in_force
from planner.cost.inference.estimate import (
    cache_bytes_per_token,
    gpus_to_serve,
    largest_request,
    legal_groups,
    serving_estimate,
)
from planner.cost.inference.formats import formats
from planner.cost.inference.largest import largest
from planner.cost.pricing import Pricing
from planner.cost.routing import assumed_routing
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.hardware.catalog import Cluster
from planner.job.expressible import refuse_inexpressible
from planner.job.variants import variants
from planner.models import Architecture
from planner.planning.capacity.alternatives import method_answers
from planner.planning.capacity.cheapest import cheapest_change
from planner.planning.capacity.leanest import Held, leanest, weigh
from planner.planning.prediction.predict import complete
from planner.planning.prediction.ran import ran_memory
from planner.planning.prediction.refusals import refuse_host
from planner.planning.prediction.within import way
from planner.planning.sanity import resume_doubts
from planner.specs.answer.estimate import MemoryEstimate
from planner.specs.answer.memory import (
    InferenceMemory,
    LargestJob,
    TrainingMemory,
)
from planner.specs.answer.uncertainty import UNMEASURED
from planner.specs.inference import InferenceSpec
from planner.specs.layouts.layout import Layout, PartialLayout
from planner.verify.writable import writer_breaches

GRAIN = 64
"""Grain of the largest sequence, beside the degrees that split it. [token]"""
MOST_MICRO_BATCH, MOST_TOKENS = 2**16, 2**26
"""Largest micro-batch and sequence that are tried. [sequence] and [token]"""


def training_memory(
    workload: Workload, given: PartialLayout, warnings: tuple[str, ...] = ()
) -> TrainingMemory:
    """Memory of a training job under a layout, and the most that fits.

    Args:
        workload: The job. [-]
        given: Layout of the job; an empty one is the most frugal legal layout. [-]
        warnings: Sentences on legal input that is rarely meant. [text]

    Returns:
        Memory by stage, the largest batch and sequence, other methods, the
        checkpoint. [GiB]

    Raises:
        BadInputError: The layout is not legal, the limits leave none, or the host is
            too small for what is offloaded.
    """
    chosen = not given.given()
    if not chosen:
        workload, given = way(workload, given)
    layout = _frugal(workload) if chosen else _completed(workload, given)
    if not chosen:
        workload = replace(workload, search=workload.search.unlimited())
    pricing = Pricing.of(workload, layout)
    memory = weigh(pricing, layout)
    refuse_host(pricing, memory)
    if given.ran:
        memory = ran_memory(pricing, layout, memory)
    methods = method_answers(pricing, None if chosen else layout)
    return TrainingMemory(
        gpus=layout.gpus,
        gpus_needed=methods[0].gpus_needed,
        nodes_needed=methods[0].nodes_needed,
        gpus_per_node=pricing.topology.cluster.node.gpus_per_node,
        positions=pricing.model.max_position,
        memory=memory,
        layout=layout,
        chosen=chosen,
        largest=_largest_job(pricing, layout),
        methods=methods,
        cheapest_change=cheapest_change(
            pricing, layout, memory, methods, chosen=chosen
        ),
        checkpoint=checkpoint(pricing, layout),
        stack=stack_in_force(pricing),
        assumptions=_assumptions(pricing, layout, chosen=chosen),
        warnings=(*warnings, *resume_doubts(pricing, memory)),
    )


def _frugal(workload: Workload) -> Layout:
    """The most frugal legal layout, of all that may lie in the host's memory."""
    if workload.search.offload:
        every = variants((workload,))
        ways = [way for way in every if way.training == workload.training]
    else:
        ways = [Pricing.candidate(workload)]
    found = [held for way in ways if (held := leanest(way)) is not None]
    if not found:
        refuse_inexpressible((workload,))
        for breach in writer_breaches(workload, Layout()):
            if workload.gpus == 1:
                raise BadInputError(breach.sentence, field="training")
        raise BadInputError(
            "no legal layout is left; planner explain says which limits clash",
            field="search",
        )
    return min(found, key=_peak).layout


def _peak(held: Held) -> tuple[bool, float]:
    """Order of layouts: those that the host holds first, then by device memory."""
    host = held.memory.host
    short = host is not None and not host.is_enough
    return short, held.memory.peak_device_gib.value


def _completed(workload: Workload, given: PartialLayout) -> Layout:
    """The layout with even stages where open; the solver's stages if even ones fail."""
    if given.stages is not None:
        return complete(workload, given)
    layout = complete(workload, given.model_copy(update={"stages": "even"}))
    held = weigh(workload, layout)
    if layout.pp == 1 or held.peak_device_gib.value <= held.capacity_gib:
        return layout
    return complete(workload, given)


def _largest_job(pricing: Pricing, layout: Layout) -> LargestJob:
    """Largest micro-batch, and largest sequence, everything else as it is.

    Gradient accumulation stays, so that a larger micro-batch makes a larger step.
    """
    unit = math.lcm(GRAIN, layout.tp * (2 * layout.cp if layout.cp > 1 else 1))
    batched = cache(partial(_with_micro_batch, pricing, layout))
    lengthened = cache(partial(_with_length, pricing, layout, unit))
    length = max(pricing.training.seq_len // unit, 1)
    packing, pair = pricing.profile.packing, pricing.training.together
    most = _most(batched, packing, layout.micro_batch, MOST_MICRO_BATCH)
    return LargestJob(
        micro_batch=most // pair * pair,
        seq_len=unit * _most(lengthened, packing, length, MOST_TOKENS // unit),
    )


def _most(
    memory: Callable[[int], MemoryEstimate], packing: float, now: int, most: int
) -> int:
    """Largest size that fits; the search begins at a linear guess.

    Allocated memory grows linearly with the size. Near capacity, device memory stays
    while the allocator frees cached blocks: ``A(n) = (capacity - F) phi_0``.
    """
    here, twice = (memory(size).peak_allocated_gib.value for size in (now, 2 * now))
    full = max(memory(now).stages, key=lambda stage: stage.device)
    room = memory(now).capacity_gib - full.context - full.communication
    steps = (room * packing - here) / (twice - here) if twice > here else 0.0
    guess = min(max(now + int(steps * now), 1), most)
    return largest(lambda size: _fits(memory(size)), most=most, start=guess)


def _with_micro_batch(workload: Workload, layout: Layout, size: int) -> MemoryEstimate:
    sequences = size * layout.dp * layout.grad_accum
    changed = layout.model_copy(update={"micro_batch": size})
    return _resized(workload, changed, global_batch=sequences)


def _with_length(
    workload: Workload, layout: Layout, unit: int, units: int
) -> MemoryEstimate:
    change = {"seq_len": units * unit, "global_batch": workload.sequences}
    # The longest row that fits, whatever the lengths of the texts.
    return _resized(workload, layout, **change, lengths=None, padding=None)


def _resized(
    workload: Workload, layout: Layout, **training: int | None
) -> MemoryEstimate:
    """Memory of the layout with some numbers of its step changed."""
    change = {"global_batch_tokens": None, **training}
    step = workload.training.model_copy(update=change)
    return weigh(replace(workload, training=step), layout)


def _fits(memory: MemoryEstimate) -> bool:
    return memory.peak_device_gib.value <= memory.capacity_gib


def _assumptions(pricing: Pricing, layout: Layout, *, chosen: bool) -> tuple[str, ...]:
    judged = "the layout is the most frugal legal one; name another with --layout"
    return (
        *((judged,) if chosen and layout.gpus > 1 else ()),
        *set_by_hand(pricing),
        pricing.uncertainty.why,
        *assumed_routing(pricing),
        f"fewest GPUs: {_counted(pricing.topology.cluster)}; one sequence a "
        "micro-batch, full recompute where there is one, even stages; time plays no "
        "part",
    )


def _counted(cluster: Cluster) -> str:
    """Units that a cluster is used by, in words."""
    node = cluster.node.gpus_per_node
    if cluster.spec.partial or node == 1:
        return "single GPUs of one node, then whole nodes" if node > 1 else "nodes of 1"
    return f"whole nodes of {node}, as the cluster does not say partial: true"


def inference_memory(
    model: Architecture, cluster: Cluster, spec: InferenceSpec
) -> InferenceMemory:
    """Memory of a GPU that serves a model, and the most that fits.

    Returns:
        Memory, the largest batch and context, the fewest GPUs. [GiB]

    Raises:
        BadInputError: The model cannot be split so, or the GPU lacks the format.
    """
    _refuse(model, cluster, spec)
    capacity, node = cluster.gpu.memory_capacity, cluster.node.gpus_per_node
    heads = max(kind.attention.heads for kind in model.kinds)
    needed = gpus_to_serve(model, spec, capacity, _groups(model, cluster, heads))
    return InferenceMemory(
        gpus=spec.tp,
        gpus_needed=needed,
        nodes_needed=needed and -(-needed // node),
        gpus_per_node=node,
        positions=model.max_position,
        memory=serving_estimate(model, spec, capacity),
        largest=largest_request(model, spec, capacity),
        cache_bytes_per_token=cache_bytes_per_token(model, spec),
        stack=spec.model_dump(),
        assumptions=(UNMEASURED.why, *_sources(spec)),
        warnings=_beyond(model, spec),
    )


def _groups(model: Architecture, cluster: Cluster, most: int) -> Iterator[int]:
    """Legal group sizes that fill nodes or divide them; any below a partial node."""
    node, partial = cluster.node.gpus_per_node, cluster.spec.partial
    for tp in legal_groups(model, most):
        if node % tp == 0 or tp % node == 0 or (partial and tp < node):
            yield tp


def _refuse(model: Architecture, cluster: Cluster, spec: InferenceSpec) -> None:
    """Refuse an illegal group, or a format that the GPU cannot compute with."""
    legal = list(_groups(model, cluster, cluster.gpus))
    if spec.tp not in legal:
        raise BadInputError(
            f"{model.name} on {cluster.gpus} GPUs cannot be split so",
            field="inference.tp",
            value=spec.tp,
            allowed=", ".join(map(str, legal)),
        )
    facts, gpu = formats().weights, cluster.gpu
    if gpu.arch in facts[spec.weights].missing_on:
        able = [name for name, fact in facts.items() if gpu.arch not in fact.missing_on]
        raise BadInputError(
            f"{gpu.name} cannot compute with {spec.weights} weights",
            field="inference.weights",
            value=spec.weights,
            allowed=", ".join(able),
        )


def _sources(spec: InferenceSpec) -> tuple[str, ...]:
    facts = formats()
    return (
        f"{spec.weights} weights: {facts.weights[spec.weights].source}",
        f"{spec.kv_cache} cache: {facts.cache[spec.kv_cache].source}",
        "left out: CUDA graphs, fragmentation, unfilled blocks of a paged cache",
    )


def _beyond(model: Architecture, spec: InferenceSpec) -> tuple[str, ...]:
    longest = model.max_position
    if longest is None or spec.context <= longest:
        return ()
    return (f"{spec.context:,} tokens are beyond {longest:,} of {model.name}",)
