"""The formats on the wire that a search tries: what user, framework and space allow."""

from collections.abc import Iterator, Sequence
from itertools import product

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.specs.layouts.formats import FORMAT_AXES, WIRE_BYTES, CommDtype


def wire_formats(workload: Workload) -> Iterator[CommDtype]:
    """Every pair of formats for gradients and for parameters, in order of preference.

    Listed formats are tried where the framework has them. Unlisted, the default space
    takes the framework's own formats, because narrower formats change the numbers.
    The full space takes all gradient formats, the framework's own first. Narrow
    gradients move fewer bytes, but may need a wide copy for the optimizer step. It
    takes the narrowest parameter format alone. That gathers fewer bytes into smaller
    buffers, and weights kept in the format take less memory; nothing else changes. So
    no layout takes more time or memory than with wider parameters.
    """
    axes = [_allowed(workload, axis) for axis in FORMAT_AXES]
    for gradients, parameters in product(*axes):
        yield CommDtype.model_validate(
            {"gradients": gradients, "parameters": parameters}
        )


def _allowed(workload: Workload, axis: str) -> list[str]:
    search, known = workload.search, workload.sendable(FORMAT_AXES[axis])
    if listed := search.choices(axis):
        return [word for word in listed if word in known]
    if search.space != "full":
        return [known[0]]
    if axis == "parameter_dtype":
        return [min(known, key=WIRE_BYTES.__getitem__)]
    return list(known)


def refuse_formats(workloads: Sequence[Workload]) -> None:
    """Refuse a listed format that no framework has under any listed precision."""
    for axis, name in FORMAT_AXES.items():
        known = list(dict.fromkeys(f for w in workloads for f in w.sendable(name)))
        for word in workloads[0].search.choices(axis):
            if word not in known:
                their = ", ".join(dict.fromkeys(w.framework.name for w in workloads))
                at = ", ".join(dict.fromkeys(w.training.precision for w in workloads))
                raise BadInputError(
                    f"{their} sends no {name} in this format under {at}",
                    field=f"search.{axis}",
                    value=word,
                    allowed=", ".join(known),
                )
