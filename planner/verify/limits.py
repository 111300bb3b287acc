"""Limits of the user that a layout, or the settings that it was found with, breaks."""

from planner.cost.workload import Workload
from planner.specs.layouts.axes import NUMBERS
from planner.specs.layouts.formats import FORMAT_AXES
from planner.specs.layouts.layout import Layout
from planner.specs.search import SETTINGS
from planner.verify.breach import Breach, Breaches, Broken
from planner.verify.recompute import kinds_used


def axis_limits(workload: Workload, layout: Layout) -> Broken:
    """Axes of a layout that lie outside the user's limits."""
    search = workload.search
    for number in NUMBERS:
        yield from number_limit(workload, layout, number.name)
    words: list[tuple[str, str]] = [("schedule", layout.schedule)]
    # without stages or without replicas both orders are the same
    words += [("order", layout.order)] if min(layout.pp, layout.dp) > 1 else []
    words += [("recompute", kind) for kind in kinds_used(workload, layout)]
    for axis, word in words:
        if not search.allows_text(axis, word):
            yield _beyond(axis, getattr(search, axis), word)
    if layout.cp > 1 and not search.allows_context(layout.cp_kind):
        yield _beyond("cp_kind", search.cp_kind, layout.cp_kind)
    if layout.tp > 1 and search.sp not in (None, layout.sp):
        yield _beyond("sp", search.sp, layout.sp)


def number_limit(workload: Workload, layout: Layout, axis: str) -> Broken:
    """Number of a layout that lies outside the user's limit on it."""
    value = getattr(layout, axis)
    if not workload.search.allows(axis, value):
        yield _beyond(axis, getattr(workload.search, axis), value)


def _beyond(axis: str, limit: object, value: object) -> tuple[str, str, str]:
    """A value beyond a limit, which is shown as the user wrote it."""
    field = "stages.recompute" if axis == "recompute" else axis
    return field, _sentence(axis, limit, value), str(limit)


def _sentence(axis: str, limit: object, value: object) -> str:
    return f"the search block limits {axis} to {limit}: {value}"


def setting_limits(workload: Workload, _: Layout) -> Breaches:
    """Settings of the training block that are not among those left open."""
    for name in SETTINGS:
        listed, value = workload.search.choices(name), getattr(workload.training, name)
        if listed and value not in listed:
            only = ", ".join(listed)
            words = _sentence(name, only, value)
            yield Breach(f"spec.training.{name}", value, words, only)


def format_limits(workload: Workload, layout: Layout) -> Breaches:
    """Formats that the framework cannot send in, or that the user does not allow."""
    own = workload.framework.own_formats
    sent = layout.stated_formats or own
    precision, name = workload.training.precision, workload.framework.name
    for axis, kind in FORMAT_AXES.items():
        word, forms = getattr(sent, kind), getattr(workload.framework.formats, kind)
        can = word in forms and precision in forms[word].precisions
        field, listed = f"layout.comm_dtype.{kind}", workload.search.choices(axis)
        if word != getattr(own, kind) and not can:
            yield Breach(
                field, word, f"{name} sends no {kind} in {word} at {precision}"
            )
        if listed and word not in listed:
            only = ", ".join(listed)
            yield Breach(field, word, _sentence(axis, only, word), only)
