"""The report of a calibration: fitted constants beside their defaults."""

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table

from planner.evidence.fitting.calibrate import Constancy, Own
from planner.evidence.fitting.peaks import Held
from planner.evidence.fitting.user_fit import Fitted
from planner.report.tables import section, sentences


def calibration_report(
    fits: Mapping[tuple[str, str, str], Fitted],
    skipped: Mapping[str, str],
    contradictions: Sequence[str],
    file: str,
) -> RenderableType:
    """Fitted and refused constants, contradictions, and rows left out."""
    parts: list[RenderableType] = [
        section(f"{framework}, {stack} on {gpu}", _body(fit))
        for (gpu, framework, stack), fit in fits.items()
    ]
    if contradictions:
        parts.append(section("Contradictions", sentences(contradictions)))
    if skipped:
        lines = [f"{name}: {why}" for name, why in skipped.items()]
        parts.append(section("Rows left out", sentences(lines)))
    parts.append(section("Valid for", VALID))
    parts.append(section("Next", f"--calibration {file} prices with these constants"))
    return Group(*parts)


VALID = (
    "the GPUs, stacks and models above, while cluster and software stay as they are. "
    "Another model takes the factors of `other jobs`, which say less; another GPU or "
    "stack takes none."
)


def _body(fit: Fitted) -> RenderableType:
    """Median errors before and after the fit, factors of jobs, and constants."""
    steps, peaks = fit.steps, sum(held.rows for held in fit.held.values())
    rows = "1 step time" if steps.rows == 1 else f"{steps.rows} step times"
    said = f"{rows}, median error {steps.before:.1%} before, {steps.residual:.1%} after"
    heights = "1 peak" if peaks == 1 else f"{peaks} peaks"
    return Group(f"{said}; {heights} of memory", _factors(fit), _constants(fit))


def _factors(fit: Fitted) -> Table:
    """Measured over predicted, of each measured job and of others."""
    table = Table("job", "step", "90 % confidence", "memory", "reserved", box=None)
    for job in fit.jobs:
        model, campaign = job
        name = f"{model}, {campaign}" if campaign else model
        table.add_row(name, *_own(fit.steps.jobs.get(job), fit.held.get(job)))
    table.add_row("other jobs", *_own(fit.steps.others, fit.others))
    return table


def _own(step: Own | None, held: Held | None) -> tuple[str, ...]:
    band = f"{step.low:.3g} to {step.high:.3g}" if step else ""
    memory = (f"{held.memory:.3f}", f"{held.reserved:.3f}") if held else ("", "")
    return (f"{step.factor:.4g}" if step else "", band, *memory)


def _constants(fit: Fitted) -> Table:
    table = Table("constant", "default", "fitted", "90 % confidence", "", box=None)
    for one in fit.steps.constants:
        table.add_row(*_cells(one))
    return table


def _cells(one: Constancy) -> tuple[str, ...]:
    unit = " s" if one.name == "step_overhead" else ""
    default = f"{one.default:.4g}{unit}"
    if one.refused:
        return (one.name, default, "kept", "", one.refused)
    band = f"{one.low:.4g} to {one.high:.4g}{unit}"
    return (one.name, default, f"{one.value:.4g}{unit}", band, "")
