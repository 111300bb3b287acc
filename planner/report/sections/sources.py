"""Assumptions, warnings, and every number behind a prediction with its source."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pydantic import BaseModel

from planner.cost.kernels import priced_kernel
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.document.blocks import Folded, Section, Table, listed
from planner.hardware.calibration import network
from planner.report.catalog import facts
from planner.report.sections.costs import number_words, stack_part
from planner.specs.answer.result import RankedPlan

_COLUMNS = ("number", "value", "source")
_CURVES = frozenset({"source", "seq_len", "forward", "backward"})


def assumptions_section(
    plan: RankedPlan, warnings: Sequence[str], pictured: Workload | None
) -> Section:
    """Assumptions and warnings of a prediction, its stack, and sources of a job.

    Args:
        plan: The prediction. [-]
        warnings: Sentences. [text]
        pictured: Job of the sources; none without. [-]
    """
    estimate = plan.estimate
    named = source_sheets(Pricing.of(pictured, plan.layout)) if pictured else ()
    parts = [
        *listed("Warnings", warnings),
        *listed("Assumed, and left out", estimate.assumptions),
        stack_part(estimate.stack),
        *(
            Folded(
                f"{sheet.title} ({len(sheet.rows)})",
                [replace(sheet, title="")],
                is_appendix=True,
            )
            for sheet in named
        ),
    ]
    lead = (
        "Every number of the hardware with its source; a question mark stands after "
        "one that was not looked up."
    )
    title = "Assumptions and sources"
    return Section("assumptions", title, parts, lead if named else "")


def source_sheets(pricing: Pricing) -> tuple[Table, ...]:
    """Facts of the hardware, measurements of it, and the software stack."""
    return (
        *(sheet for part in pricing.parts for sheet in _hardware(part)),
        *(_measured(part) for part in pricing.parts),
        _stack(pricing),
    )


def _hardware(workload: Workload) -> Iterator[Table]:
    cluster = workload.topology.cluster
    for kind, its in (
        ("GPU", cluster.gpu),
        ("node", cluster.node),
        ("scale-up link", cluster.scale_up),
        ("NIC", cluster.nic),
        ("cluster", cluster.spec),
    ):
        rows = tuple(row for row in facts(its) if row[2])
        if rows:
            yield Table(_COLUMNS, rows, words=3, title=f"{kind} {its.name}")


def _measured(workload: Workload) -> Table:
    """Measured rates of the GPU and the network, by section of the calibration."""
    its, rows = workload.calibration, list[tuple[str, str, str]]()
    precision = workload.training.precision
    known = {p: gemm for p, gemm in its.gemm.items() if p in (precision, "bf16")}
    for name, gemm in known.items():
        rows.append((f"matrix products, {name}", _numbers(gemm), gemm.source))
    kernel = priced_kernel(workload)
    for curve in its.attention:
        if curve.kernel == kernel:
            label = f"attention, {kernel}, heads of {curve.head_dim}"
            rows.append((label, _numbers(curve), curve.source))
    rows.append(("memory", _numbers(its.memory), its.memory.source))
    rows.append(("scale-up collectives", _numbers(its.scale_up), its.scale_up.source))
    cluster = workload.topology.cluster
    fabric = cluster.nic.fabric
    if fabric is not None:
        reached = network(fabric, cluster.catalog)
        rows.append((f"{fabric} collectives", _numbers(reached), reached.source))
    borrowed = (
        (f"taken over: {section}", "", why) for section, why in its.transferred.items()
    )
    title = f"Measured of {workload.gpu.name}"
    return Table(_COLUMNS, (*rows, *borrowed), words=3, title=title)


def _numbers(its: BaseModel) -> str:
    """The single numbers of a section, base units."""
    fields: Mapping[str, object] = dict(its)
    plain = (int, float, str)
    parts = [
        f"{name.replace('_', ' ')} {number_words(value)}"
        for name, value in fields.items()
        if name not in _CURVES and isinstance(value, plain) and value is not None
    ]
    return ", ".join(parts)


def _stack(workload: Workload) -> Table:
    profile, uncertainty = workload.framework.profile, workload.uncertainty
    rows = (
        (f"{profile.name} {profile.version}", "constants below", profile.source),
        (
            "interval of the step",
            f"{uncertainty.time.low:.3f} to {uncertainty.time.high:.3f} of it",
            uncertainty.why,
        ),
        (
            "interval of the memory",
            f"{uncertainty.memory.low:.3f} to {uncertainty.memory.high:.3f} of it",
            uncertainty.why,
        ),
    )
    return Table(_COLUMNS, rows, words=3, title="Software stack and intervals")
