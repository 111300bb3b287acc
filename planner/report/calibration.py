"""The report of a calibration: fitted constants beside their defaults."""

from collections.abc import Mapping, Sequence

from planner.calibration.fitting.calibrate import Constancy, Own
from planner.calibration.fitting.peaks import Held
from planner.calibration.fitting.user_fit import Fitted
from planner.document.blocks import (
    Block,
    Document,
    Notes,
    Section,
    Table,
    listed,
    section,
)
from planner.specs.counted import counted


def calibration_document(
    fits: Mapping[tuple[str, str, str], Fitted],
    skipped: Mapping[str, str],
    contradictions: Sequence[str],
    file: str,
) -> Document:
    """Fitted and refused constants, contradictions, and rows left out."""
    left_out = [f"{name}: {why}" for name, why in skipped.items()]
    return Document(
        title="planner calibrate",
        eyebrow=file,
        answer=f"Constants fitted for {counted(len(fits), 'stack')}",
        lead=f"--calibration {file} prices with these constants.",
        sections=[
            *(
                Section(f"fit-{place}", f"{framework}, {stack} on {gpu}", _body(fit))
                for place, ((gpu, framework, stack), fit) in enumerate(fits.items())
            ),
            *section("contradictions", "Contradictions", listed("", contradictions)),
            *section("left-out", "Rows left out", listed("", left_out)),
            *section("valid", "Valid for", listed("", [VALID])),
        ],
    )


VALID = (
    "the GPUs, stacks and models above, while cluster and software stay as they are. "
    "Another model takes the factors of `other jobs`, which say less; another GPU or "
    "stack takes none."
)


def _body(fit: Fitted) -> list[Block]:
    """Median errors before and after the fit, factors of jobs, and constants."""
    steps, peaks = fit.steps, sum(held.rows for held in fit.held.values())
    words = (
        f"{counted(steps.rows, 'step time')}, median error {steps.before:.1%} before, "
        f"{steps.residual:.1%} after; {counted(peaks, 'peak')} of memory"
    )
    constants = [*map(_cells, steps.constants)]
    titles = ("constant", "default", "fitted", "90% confidence", "")
    return [Notes([words]), _factors(fit), Table(titles, constants, 5)]


def _factors(fit: Fitted) -> Table:
    """Measured over predicted, of each measured job and of others."""
    rows = [
        (
            ", ".join(filter(None, job)),
            *_own(fit.steps.jobs.get(job), fit.held.get(job)),
        )
        for job in fit.jobs
    ]
    others = ("other jobs", *_own(fit.steps.others, fit.others))
    columns = ("job", "step", "90% confidence", "memory", "reserved")
    return Table(columns, [*rows, others])


def _own(step: Own | None, held: Held | None) -> tuple[str, ...]:
    band = f"{step.low:.3g} to {step.high:.3g}" if step else ""
    memory = (f"{held.memory:.3f}", f"{held.reserved:.3f}") if held else ("", "")
    return (f"{step.factor:.4g}" if step else "", band, *memory)


def _cells(one: Constancy) -> tuple[str, ...]:
    unit = " s" if one.name == "step_overhead" else ""
    default = f"{one.default:.4g}{unit}"
    if one.refused:
        return (one.name, default, "kept", "", one.refused)
    band = f"{one.low:.4g} to {one.high:.4g}{unit}"
    return (one.name, default, f"{one.value:.4g}{unit}", band, "")
