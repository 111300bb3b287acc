"""A job under other methods: what fits, the largest model, the fewest GPUs."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from planner.cost.estimate.checkpoint import saved_bytes
from planner.cost.memory.buffers import context_bytes
from planner.cost.meshes import Meshes
from planner.cost.parameters.states import unsaved_bytes
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.job.expressible import unwritable
from planner.job.methods import check_method, frozen_model
from planner.job.variants import with_settings
from planner.models import Architecture, preset, preset_sizes
from planner.planning.capacity.leanest import Held, fewest_gpus, leanest, weigh
from planner.search.stop import StoppedError
from planner.specs.answer.memory import MethodAnswer
from planner.specs.layouts.layout import (
    Layout,
    Offload,
    RecomputeRange,
    Stage,
    even_layers,
)
from planner.specs.layouts.offload import unions
from planner.verify.legality import rule_violations

METHODS = (
    ("full", "adamw", False),
    ("full", "adamw", True),
    ("full", "adamw-8bit", False),
    ("lora", "adamw", False),
    ("qlora", "adamw", False),
)
"""Methods that are compared beside the job's own: (method, optimizer, offloaded)."""
LEAST_FROZEN = {"full": 0.0, "lora": 2.0, "qlora": 0.5}
"""Fewest bytes of a parameter that does not train: 16-bit, and NF4. [B]"""
ROUNDED = 0.9
"""Least ratio of a published count to the true count, as names are rounded. [1]"""
_NOWHERE = "no number of these GPUs that was tried holds it"

Place = Callable[[Pricing], Held | None]
"""Finds a layout for a job, with its memory; None where no layout is legal."""


def method_answers(pricing: Pricing, given: Layout | None) -> tuple[MethodAnswer, ...]:
    """Memory of the job under each method, the job's own method first.

    Args:
        pricing: The job. [-]
        given: The given layout, or None: each method takes its most frugal layout. [-]

    Returns:
        One answer for each method, shape (methods,). [-]
    """
    training = pricing.training
    own = (training.method, training.optimizer, bool(pricing.offload.optimizer))
    allowed = [way for way in METHODS if not way[2] or may_offload(pricing)]
    others = [way for way in allowed if way != own]
    return tuple(_answer(pricing, given, *way) for way in (own, *others))


def may_offload(pricing: Pricing) -> bool:
    """Tell if the framework can offload optimizer states and the job allows it."""
    able = any("optimizer" in group for group in pricing.framework.limits.offload)
    return able and pricing.search.offload is None and pricing.offload == Offload()


def _least_offload(workload: Workload) -> Offload:
    """The fewest categories, optimizer among them, that the framework can offload."""
    sets = unions(workload.framework.limits.offload)
    least = min((parts for parts in sets if "optimizer" in parts), key=len)
    return Offload(**dict.fromkeys(least, 1.0))


def _answer(
    pricing: Pricing,
    given: Layout | None,
    method: str,
    optimizer: str,
    offloaded: bool,  # noqa: FBT001
) -> MethodAnswer:
    """Answers for one method, or the reason why there are none."""
    change: dict[str, object] = {"method": method, "optimizer": optimizer}
    answer = MethodAnswer(method=method, optimizer=optimizer, offloaded=offloaded)
    if offloaded and not pricing.offload.optimizer:
        pricing = replace(pricing, offload=_least_offload(pricing))
        given = given and given.model_copy(update={"offload": pricing.offload})
    try:
        changed = with_settings(pricing, change)
        check_method(changed.training, pricing.model, pricing.gpu)
        return _with_memory(changed, given, answer)
    except BadInputError as error:
        return answer.model_copy(update={"reason": str(error)})


def _with_memory(
    pricing: Pricing, given: Layout | None, answer: MethodAnswer
) -> MethodAnswer:
    place = _placing(given)
    held, (fewest, ended) = _judged(pricing, given), _fewest(pricing)
    found = {
        "verdict": held and held.memory.verdict,
        "device_gib": held and held.memory.peak_device_gib.value,
        "oom_probability": held and held.memory.oom_probability,
        "gpus": pricing.gpus,
        "largest_model": largest_model(pricing, place),
        "gpus_needed": fewest and fewest.layout.gpus,
        "nodes_needed": fewest and nodes_of(pricing, fewest.layout.gpus),
        "layout": fewest and fewest.layout,
        "reason": "" if fewest or ended else _NOWHERE,
        "is_late": ended,
    }
    return answer.model_copy(update=found)


def _fewest(pricing: Pricing) -> tuple[Held | None, bool]:
    """The layout that needs the fewest GPUs; True where the time ended before it."""
    try:
        return fewest_gpus(pricing), False
    except StoppedError:
        return None, True


def nodes_of(workload: Workload, gpus: int) -> int:
    """Nodes of the job's cluster that a number of GPUs takes."""
    return -(-gpus // workload.topology.cluster.node.gpus_per_node)


def _judged(pricing: Pricing, given: Layout | None) -> Held | None:
    """The layout that a method is judged by."""
    return leanest(pricing) if given is None else _as_given(pricing, given)


def _placing(given: Layout | None) -> Place:
    """Way to find a layout for a job: the given layout, or the most frugal."""
    if given is None:
        return lambda workload: leanest(workload, enough=True)
    return lambda workload: _as_given(workload, given)


def _as_given(pricing: Pricing, given: Layout) -> Held | None:
    """The given layout with its memory; even stages for a model of other depth."""
    layout = given
    if sum(layout.layers_per_stage) != pricing.model.layers:
        layers = even_layers(pricing.model.layers, given.pp * given.vpp)
        kind = _usual_recompute(given)
        stages = tuple(_stage(count, kind) for count in layers)
        layout = given.model_copy(update={"stages": stages})
    if rule_violations(pricing, layout):
        return None
    return Held(layout, weigh(pricing, layout))


def _stage(layers: int, kind: str) -> Stage:
    ranges = (RecomputeRange(start=0, stop=layers, kind=kind),) if layers else ()
    return Stage(layers=layers, recompute=ranges)


def _usual_recompute(layout: Layout) -> str:
    """The recompute kind of most layers. [text]."""
    layers: Counter[str] = Counter()
    for stage in layout.stages:
        for part in stage.recompute:
            layers[part.kind] += part.stop - part.start
    return max(layers, key=lambda kind: layers[kind], default="none")


def largest_model(pricing: Pricing, place: Place) -> str | None:
    """The largest preset that fits in the place of the job's model.

    Tries presets downward by published parameters, from the largest whose states
    could lie on these GPUs. Passes over presets that the layout cannot split.

    Returns:
        Name of the preset, None where not even the smallest fits. [text]
    """
    for model in _candidates(pricing):
        held = _tried(pricing, model, place)
        if held is not None and held.fits:
            return model.name
    return None


def _tried(pricing: Pricing, model: Architecture, place: Place) -> Held | None:
    """A preset in the place of the job's model, None where it cannot be trained so.

    A model that the framework's writers have no words for is none of the job's.
    """
    training = pricing.training
    lacks = unwritable(replace(pricing, model=model))
    if any(lack.field == "spec.model" for lack in lacks):
        return None
    try:
        check_method(training, model, pricing.gpu)
        return place(replace(pricing, model=frozen_model(training, model)))
    except BadInputError:
        return None


def _candidates(pricing: Pricing) -> Iterator[Architecture]:
    """Presets that are not ruled out by their states alone, largest first.

    A preset is checked by its published count, which is rounded, then by the true one.
    """
    sizes = preset_sizes()
    each = _least_bytes(pricing)
    room = (pricing.gpu.memory_capacity - context_bytes(pricing)) * pricing.gpus
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        if ROUNDED * sizes[name] * each <= room:
            model = preset(name)
            if model.parameters * each <= room:
                yield model


def _least_bytes(pricing: Pricing) -> float:
    """Fewest bytes that a parameter takes on GPUs, however it is divided. [B].

    At the end of a backward pass, gradients lie beside weights, master copy and
    moments. An optimizer that runs in the backward pass keeps no gradients.
    """
    offload, training = pricing.offload, pricing.training
    if training.frozen:
        return 0.0 if offload.parameters else LEAST_FROZEN[training.method]
    stages = pricing.framework.limits.zero_stages
    return min(_stage_bytes(pricing, stage) for stage in stages)


def _stage_bytes(pricing: Pricing, stage: int) -> float:
    """Bytes that a trained parameter takes on GPUs at one ZeRO stage. [B]."""
    offload, saved = pricing.offload, saved_bytes(pricing, stage)
    alone = Meshes.of_layout(Layout(zero_stage=stage))
    each = float(unsaved_bytes(pricing, alone).gradients[0])
    here = (1.0 - offload.parameters) * saved.weights + (
        1.0 - offload.optimizer
    ) * saved.optimizer
    if not pricing.training.optimizer_in_backward:
        here += (1.0 - offload.gradients) * each * saved.parameters
    return here / pricing.model.trained_parameters
