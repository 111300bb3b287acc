"""The report of a calibration: fitted constants beside their defaults."""

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table

from planner.evidence.fitting.calibrate import Calibrated, Constancy
from planner.report.tables import section, sentences


def calibration_report(
    fits: Mapping[tuple[str, str, str], Calibrated],
    skipped: Mapping[str, str],
    contradictions: Sequence[str],
    file: str,
) -> RenderableType:
    """Fitted and refused constants, contradictions, and rows left out.

    Args:
        fits: Fit of each GPU, framework and stack. [-]
        skipped: Id of a row left out to the reason. [text]
        contradictions: Sentences. [text]
        file: File with the fitted constants. [text]

    Returns:
        A renderable for printing. [-]
    """
    parts: list[RenderableType] = [
        section(f"{framework}, {stack} on {gpu}", _body(fit))
        for (gpu, framework, stack), fit in fits.items()
    ]
    if contradictions:
        parts.append(section("Contradictions", sentences(contradictions)))
    if skipped:
        lines = [f"{name}: {why}" for name, why in skipped.items()]
        parts.append(section("Rows left out", sentences(lines)))
    parts.append(section("Next", f"--calibration {file} prices with these constants"))
    return Group(*parts)


def _body(fit: Calibrated) -> RenderableType:
    """Median errors before and after the fit, and the table of constants."""
    table = Table("constant", "default", "fitted", "90 % confidence", "", box=None)
    band = f"{fit.low:.4g} to {fit.high:.4g}"
    why = "measured over predicted step"
    table.add_row("step_factor", "1", f"{fit.factor:.4g}", band, why)
    for one in fit.constants:
        table.add_row(*_cells(one))
    rows = "1 row" if fit.rows == 1 else f"{fit.rows} rows"
    said = f"{rows}, median error {fit.before:.1%} before and {fit.residual:.1%} after"
    return Group(said, table)


def _cells(one: Constancy) -> tuple[str, ...]:
    unit = " s" if one.name == "step_overhead" else ""
    default = f"{one.default:.4g}{unit}"
    if one.refused:
        return (one.name, default, "kept", "", one.refused)
    band = f"{one.low:.4g} to {one.high:.4g}{unit}"
    return (one.name, default, f"{one.value:.4g}{unit}", band, "")
