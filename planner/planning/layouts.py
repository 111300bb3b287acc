"""From what a search found to complete layouts."""

from planner.cost.estimate.layouts import layout_of
from planner.search.incumbents import Found
from planner.search.outcome import SearchOutcome
from planner.specs.layouts.layout import Layout


def found_layout(outcome: SearchOutcome, found: Found) -> Layout:
    """The complete layout of a plan that a search found."""
    space = outcome.space
    row = int(space.mesh[found.candidate])
    choices = space.choices(found.candidate)
    return layout_of(
        outcome.pricing,
        space.meshes,
        row,
        schedule=space.schedule(found.candidate),
        vpp=int(space.vpp[found.candidate]),
        menu=tuple(space.recompute[index] for index in choices),
        counts=found.counts,
        hosting=space.hosting(found.candidate),
        block=space.block(found.candidate) > 0,
    )
