"""The variants of a job: every setting that a search may choose beside the layout."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import inf

from pydantic import ValidationError

from planner.cost.pricing import Pricing
from planner.cost.workload import AnyWorkload, Workload
from planner.errors import BadInputError
from planner.frameworks.adapted import with_names
from planner.job.comm_formats import refuse_formats, wire_formats
from planner.job.expressible import refuse_unwritable, unwritable
from planner.job.methods import frozen_model
from planner.job.precisions import can_compute, refuse_precisions
from planner.search.space.fleet import arrangements
from planner.search.space.switches import with_and_without
from planner.specs.frameworks.limits import Limits
from planner.specs.layouts.layout import Offload
from planner.specs.layouts.offload import CATEGORIES, Parts, parts_of, unions, word_for
from planner.specs.reading.invalid import explained
from planner.specs.search import SETTINGS, SearchSpec
from planner.specs.training import ONLY_WITH, TrainingSpec

STEPS = (1.0, 0.75, 0.5, 0.25)
"""Shares of a category that the full space offloads, where parts are possible. [1]"""


def variants(workloads: Sequence[Workload]) -> tuple[Pricing, ...]:
    """One pricing for every framework, setting, format, offload and switch allowed.

    Variants with less offload come first, equals in the order that the user lists.
    Where plans are otherwise equal, this is the order of preference.

    Returns:
        Jobs with their own training block, formats on the wire and offload.
        [-], shape (variants,)

    Raises:
        BadInputError: A listed setting is impossible under every framework, or no
            framework of the job can run it.
    """
    every = [
        Pricing.candidate(workload, offload=offload, comm_dtype=formats)
        for workload in runnable(workloads)
        for formats in wire_formats(workload)
        for offload in offloads(workload)
    ]
    every = [
        switched
        for variant in every
        for place in arrangements(variant)
        for switched in with_and_without(place)
    ]
    return tuple(sorted(every, key=lambda variant: _share(variant.offload)))


def runnable(workloads: Sequence[Workload]) -> list[Workload]:
    """The job under every framework and training block that can run it.

    Raises:
        BadInputError: A listed setting is impossible under every framework, or no
            framework of the job can run it.
    """
    _refuse_impossible(workloads)
    refuse_precisions(workloads)
    under = [
        _under(workload, training)
        for workload in workloads
        for training in trainings(workload.training, workload.search)
        if can_compute(workload, training.precision)
    ]
    refuse_unwritable(under)
    under = [workload for workload in under if not unwritable(workload)]
    refuse_formats(under)
    return under


def trainings(training: TrainingSpec, search: SearchSpec) -> Iterator[TrainingSpec]:
    """The training block under every setting that the search may choose.

    Raises:
        BadInputError: A combination is no legal training block.
    """
    axes = [search.choices(name) or (getattr(training, name),) for name in SETTINGS]
    for values in product(*axes):
        yield _changed(training, dict(zip(SETTINGS, values, strict=True)))


def _changed(training: TrainingSpec, settings: Mapping[str, object]) -> TrainingSpec:
    """A training block with some fields replaced, and checked again."""
    fields = training.model_dump(exclude_unset=True) | dict(settings)
    for name, methods in ONLY_WITH.items():
        if fields.get("method", training.method) not in methods:
            fields.pop(name, None)
    try:
        return TrainingSpec.model_validate(fields)
    except ValidationError as error:
        raise explained(error, TrainingSpec, file="", inside="training") from error


def with_settings(workload: AnyWorkload, settings: Mapping[str, object]) -> AnyWorkload:
    """The job with the settings of a plan; formats on the wire are in the layout."""
    training = {name: settings[name] for name in SETTINGS if name in settings}
    if not training:
        return workload
    return _under(workload, _changed(workload.training, training))


def _under(workload: AnyWorkload, training: TrainingSpec) -> AnyWorkload:
    """The job with another training block: its own adapters, and its frozen layers.

    A layout that ran under one training block says nothing of memory under another.
    """
    training = with_names(workload.framework.name, training, workload.model)
    model, bands = frozen_model(training, workload.model), workload.uncertainty
    if training != workload.training:
        bands = bands.model_copy(update={"ran_within": inf})
    return replace(workload, training=training, model=model, uncertainty=bands)


def offloads(workload: Workload) -> Iterator[Offload]:
    """Offloads that one framework and training block allow."""
    limits, search = workload.framework.limits, workload.search
    for parts in _wanted(search, limits):
        if updates_on_host(workload.training.optimizer) or "optimizer" not in parts:
            yield from _stepped(parts, workload, full=search.space == "full")


def _wanted(search: SearchSpec, limits: Limits) -> Iterator[Parts]:
    """Sets of categories that the user allows and the framework can offload."""
    can = unions(limits.offload)
    if search.offload is True:
        yield from can
    elif not search.choices("offload"):
        yield frozenset()
    for word in search.choices("offload"):
        if parts_of(word) in can:
            yield parts_of(word)


def _stepped(parts: Parts, workload: Workload, *, full: bool) -> Iterator[Offload]:
    """Offloads of a set: all of it, and in the full space quarters where possible."""
    limits, layers = workload.framework.limits, workload.model.layers
    names = [name for name in CATEGORIES if name in parts]
    stepped = set(limits.offload_in_parts) & limits.offload if full else set()
    steps: list[tuple[float, ...]] = [
        STEPS if name in stepped else STEPS[:1] for name in names
    ]
    if limits.offloads_activations_alone and "activations" in names:
        at = names.index("activations")
        whole = (_whole(share, layers) for share in steps[at])
        steps[at] = tuple(dict.fromkeys(share for share in whole if share > 0))
    for shares in product(*steps):
        yield Offload(**dict(zip(names, shares, strict=True)))


def _whole(share: float, layers: int) -> float:
    """Share of whole layers, the last of which stays on the GPU."""
    return min(round(share * layers), layers - 1) / layers


def _share(offload: Offload) -> float:
    return float(sum(getattr(offload, name) for name in CATEGORIES))


def updates_on_host(optimizer: str) -> bool:
    """Tell if the host's processors can run the step of an optimizer.

    Returns:
        True except for 8-bit and paged optimizers, which have GPU kernels alone.

    References:
        bitsandbytes, optimizers with 8-bit states and paged optimizers: updates
        are GPU kernels.
    """
    return not (optimizer.endswith("8bit") or optimizer.startswith("paged"))


def _refuse_impossible(workloads: Sequence[Workload]) -> None:
    """Refuse a listed offload that no framework and no listed optimizer can do."""
    search = workloads[0].search
    for word in search.choices("offload"):
        if not any(parts_of(word) in _possible(workload) for workload in workloads):
            words = {word_for(p) for w in workloads for p in _possible(w)}
            raise BadInputError(
                "no framework and optimizer of this job can offload this",
                field="search.offload",
                value=word,
                allowed=", ".join(sorted(words)),
            )


def _possible(workload: Workload) -> set[Parts]:
    """Every set that can be offloaded, whether the user allows it or not."""
    optimizers = [t.optimizer for t in trainings(workload.training, workload.search)]
    on_host = any(map(updates_on_host, optimizers))
    every = unions(workload.framework.limits.offload)
    return {parts for parts in every if on_host or "optimizer" not in parts}
