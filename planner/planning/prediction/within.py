"""One layout of a job, within all that the job's search block says."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.job.comm_formats import wire_formats
from planner.job.expressible import refuse_inexpressible
from planner.job.variants import offloads, runnable
from planner.planning.prediction.predict import predict_limited
from planner.planning.prediction.ran import as_ran
from planner.specs.answer.result import RankedPlan
from planner.specs.layouts.axes import AXES
from planner.specs.layouts.formats import FORMAT_AXES, CommDtype, GivenFormats
from planner.specs.layouts.layout import PartialLayout
from planner.specs.search import SETTINGS, Span, listed

Way = tuple[Workload, PartialLayout]
"""The job under one training block, and the layout with its offload and formats."""


@dataclass(frozen=True)
class _Priced:
    """A way with its price."""

    way: Way
    plan: RankedPlan

    @property
    def sort_key(self) -> tuple[bool, float]:
        """Layouts that fit by their step [s], then the others by their peak [GiB]."""
        memory = self.plan.estimate.memory
        peak, step = memory.peak_device_gib.value, self.plan.estimate.step_time_s.value
        fits = peak <= memory.capacity_gib
        return not fits, step if fits else peak


def predict_within(workload: Workload, given: PartialLayout) -> RankedPlan:
    """Price a layout as a search would that this layout alone is left to.

    What the search block widens is chosen: offload and formats that the layout leaves
    open, and a method, optimizer or precision of its list where the training block's
    own is not on it. What it limits holds: a limit of one value fills in what the
    layout leaves open, and a layout outside the limits is refused.

    Raises:
        BadInputError: No framework can run the job, the limits leave nothing, or the
            layout is not legal.
    """
    found = _best(list(_ways(workload, given)))
    return as_ran(found.way[0], given, found.plan)


def way(workload: Workload, given: PartialLayout) -> Way:
    """The job and the layout that :func:`predict_within` prices, stages still open.

    Returns:
        The job under its training block, and the layout with its offload and formats.
    """
    ways = list(_ways(workload, given))
    return ways[0] if len(ways) == 1 else _best(ways).way


def _best(ways: list[Way]) -> _Priced:
    found, refused = list[_Priced](), list[BadInputError]()
    for job, layout in ways:
        try:
            found.append(_Priced((job, layout), predict_limited(job, layout)))
        except BadInputError as error:
            refused.append(error)
    if not found:
        raise refused[0]
    return min(found, key=lambda each: each.sort_key)


def _ways(workload: Workload, given: PartialLayout) -> Iterator[Way]:
    """Training blocks, formats and offloads that the search block leaves open."""
    refuse_inexpressible((workload,))
    search, given = workload.search, _filled(workload, given)
    # Shares and formats of the full space that nobody lists are not the layout's.
    listing = search.model_copy(update={"space": "default", **_own(workload)})
    if given.offload and search.offload is None:
        search = search.model_copy(update={"offload": True})
    named = any(listing.choices(axis) for axis in FORMAT_AXES)
    for job in runnable((replace(workload, search=listing),)):
        formats = _formats(job, given) if named else [None]
        moved = list(offloads(job)) if listing.offload and not given.offload else [None]
        for sent in formats:
            for offload in moved:
                more = {"comm_dtype": sent, "offload": offload}
                told = {name: its for name, its in more.items() if its is not None}
                yield replace(job, search=search), given.model_copy(update=told)


def _formats(job: Workload, given: PartialLayout) -> list[CommDtype]:
    """Formats that the search block lists, those of the layout in their place."""
    own = given.comm_dtype or GivenFormats()
    return list(dict.fromkeys(own.over(sent) for sent in wire_formats(job)))


def _filled(workload: Workload, given: PartialLayout) -> PartialLayout:
    """The layout with every axis that the search block leaves one value."""
    only = {
        axis.name: value
        for axis in AXES
        if axis.is_limited and getattr(given, axis.name) is None
        for value in [_only(getattr(workload.search, axis.name))]
        if value is not None
    }
    if isinstance(given.stages, tuple):
        only.pop("recompute", None)
    return given.model_copy(update=only)


def _only(limit: object) -> object:
    """The one value of a limit; None where it has several."""
    values = listed(limit) if isinstance(limit, Span) else limit
    if isinstance(values, tuple):
        return values[0] if len(values) == 1 else None
    return values


def _own(workload: Workload) -> dict[str, str]:
    """Settings of the training block that the search block lists among others."""
    settings = {name: getattr(workload.training, name) for name in SETTINGS}
    return {
        name: value
        for name, value in settings.items()
        if value in workload.search.choices(name)
    }
