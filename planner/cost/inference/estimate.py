"""Memory of a GPU that serves a model: moments, verdict, the most that fits."""

from collections.abc import Iterable, Iterator

from planner.cost.inference.cache import cache_bytes, token_bytes
from planner.cost.inference.formats import formats
from planner.cost.inference.largest import largest
from planner.cost.inference.weights import largest_linear, weight_bytes
from planner.cost.inference.workspace import pass_bytes
from planner.hardware.reading.quantities import Bytes
from planner.models.architecture import Architecture
from planner.specs.answer.estimate import Interval
from planner.specs.answer.memory import LargestRequest, ServingEstimate, ServingMemory
from planner.specs.answer.uncertainty import UNMEASURED
from planner.specs.inference import InferenceSpec

GB, GIB = 1e9, 2.0**30
MOST_BATCH, MOST_CONTEXT = 2**20, 2**30
"""Upper ends of the searches for the largest request. [sequence] and [token]"""
MOMENTS = ("prefill", "decode")
"""A chunk of prompts while the cache is full, and one token of every sequence."""


def serving_memory(
    model: Architecture, spec: InferenceSpec, moment: str
) -> ServingMemory:
    """Memory of one GPU at one moment of serving. [GiB].

    The sum of weights, the cache of every sequence at full context, and the peak of
    the forward pass.

    Args:
        spec: Formats, batch, context, group. [-]
        moment: One of ``MOMENTS``. [text]

    Leaves out CUDA graphs, LoRA adapters beside the model, and a draft model.
    """
    facts = formats()
    weights, runtime = facts.weights[spec.weights], facts.runtime
    tokens = spec.batch * spec.context
    rows = min(spec.chunk, tokens) if moment == "prefill" else spec.batch
    work = pass_bytes(
        model,
        runtime,
        rows=rows,
        batch=spec.batch,
        element=weights.others / 8,
        expanded=weights.expanded * largest_linear(model, spec.tp),
        tp=spec.tp,
    )
    cache = facts.cache[spec.kv_cache]
    kept = cache_bytes(model, cache, batch=spec.batch, context=spec.context, tp=spec.tp)
    return ServingMemory(
        moment=moment,
        weights=weight_bytes(model, weights, spec.tp) / GIB,
        kv_cache=kept / GIB,
        activations=work / GIB,
        communication=runtime.communicator_gb * GB / GIB if spec.tp > 1 else 0.0,
        context=runtime.context_gb * GB / GIB,
    )


def serving_estimate(
    model: Architecture, spec: InferenceSpec, capacity: Bytes
) -> ServingEstimate:
    """Peak memory of one GPU over all moments, with its verdict.

    Args:
        spec: Formats, batch, context, group. [-]

    Returns:
        Memory, interval and verdict. [GiB]
    """
    moments = [serving_memory(model, spec, moment) for moment in MOMENTS]
    worst = max(moments, key=lambda memory: memory.device)
    band, room = UNMEASURED.memory, capacity / GIB
    device = Interval.around(worst.device, band).at_least(worst.counted)
    return ServingEstimate(
        peak_allocated_gib=Interval.around(worst.allocated, band).at_least(
            worst.counted
        ),
        peak_reserved_gib=worst.allocated,
        peak_device_gib=device,
        capacity_gib=room,
        oom_probability=1.0
        if worst.counted > room
        else band.beyond(room / worst.device),
        verdict=device.verdict(room),
        stages=(worst,),
        moments={memory.moment: memory.device for memory in moments},
    )


def serves(model: Architecture, spec: InferenceSpec, capacity: Bytes) -> bool:
    """Tell if the predicted peak memory of every moment fits the GPU.

    Args:
        spec: Formats, batch, context, group. [-]

    Returns:
        True where the peak memory fits. [-]
    """
    sizes = (serving_memory(model, spec, moment).device for moment in MOMENTS)
    return max(sizes) * GIB <= capacity


def largest_request(
    model: Architecture, spec: InferenceSpec, capacity: Bytes
) -> LargestRequest:
    """Largest batch at the context, and largest context at the batch.

    Args:
        spec: Formats, batch, context, group. [-]

    Returns:
        Batch and context: at most 2^20 sequences and 2^30 tokens, 0 where nothing
        fits. [1]
    """

    def fits(field: str, value: int) -> bool:
        return serves(model, spec.model_copy(update={field: value}), capacity)

    return LargestRequest(
        batch=largest(lambda n: fits("batch", n), most=MOST_BATCH, start=spec.batch),
        context=largest(
            lambda n: fits("context", n), most=MOST_CONTEXT, start=spec.context
        ),
    )


def legal_groups(model: Architecture, most: int) -> Iterator[int]:
    """Tensor-parallel degrees that a model can be split over, ascending.

    Query heads divide over the GPUs; key and value heads divide or are repeated.
    """
    for tp in range(1, most + 1):
        if all(_splits(kind.attention.heads, kind, tp) for kind in model.kinds):
            yield tp


def _splits(heads: int, kind: object, tp: int) -> bool:
    groups = getattr(getattr(kind, "attention", None), "kv_heads", heads)
    return heads % tp == 0 and (groups % tp == 0 or tp % max(groups, 1) == 0)


def gpus_to_serve(
    model: Architecture, spec: InferenceSpec, capacity: Bytes, groups: Iterable[int]
) -> int | None:
    """Fewest GPUs of one tensor-parallel group that hold the job.

    Args:
        spec: Formats, batch, context. [-]
        groups: Allowed sizes of a group, ascending. [1]

    Returns:
        GPUs, or None where no group holds the job. [1]
    """
    for tp in groups:
        if serves(model, spec.model_copy(update={"tp": tp}), capacity):
            return tp
    return None


def cache_bytes_per_token(model: Architecture, spec: InferenceSpec) -> float:
    """Bytes that one more token of one sequence takes on one GPU.

    Returns:
        Memory over all layers, before any window is full. [B]
    """
    cache = formats().cache[spec.kv_cache]
    return sum(n * token_bytes(kind, cache, spec.tp) for kind, n in model.runs)
