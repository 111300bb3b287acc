"""The whole run on a page, and the pages of all phases as one."""

from collections.abc import Sequence
from dataclasses import replace

from planner.document.blocks import Block, Document, Facts, Notes, Section, Table, Tile
from planner.report.run import PARTS, run_rows, stretch_rows
from planner.report.screen import run_words
from planner.specs.answer.run import Run

_DAY = 86400.0


def phased_page(parts: Sequence[tuple[str, Document]], run: Run | None) -> Document:
    """The page of one plan, or of one plan for each phase, with the whole run.

    Args:
        parts: Name and page of each phase; an empty name without phases. [-]
        run: The run, None where no tokens are known. [-]
    """
    (_, first), several = parts[0], len(parts) > 1
    sections = [
        section
        for place, (name, page) in enumerate(parts, start=1)
        for section in _of_phase(name, place, page.sections)
    ]
    if run is None:
        return replace(first, sections=sections)
    whole = run_section(run)
    tiles = [*first.tiles, _tile(run)]
    if not several:
        *before, last = sections
        answer = f"{first.answer}{run_words(run)}"
        ordered = [*before, whole, last]
        return replace(first, answer=answer, tiles=tiles, sections=ordered)
    return replace(
        first,
        answer=f"{first.answer}; {len(parts)} phases{run_words(run)}",
        lead=" ".join(f"{name}: {page.lead}" for name, page in parts),
        tiles=tiles,
        sections=[whole, *sections],
    )


def _of_phase(name: str, place: int, sections: Sequence[Section]) -> list[Section]:
    """Sections with the name of their phase before their title."""
    if not name:
        return list(sections)
    return [
        replace(s, id=f"phase-{place}-{s.id}", title=f"{name}: {s.title}")
        for s in sections
    ]


def _tile(run: Run) -> Tile:
    time, share = run.time_to_train_s, run.effective_share
    return Tile(
        "Whole run",
        f"{time.value / _DAY:,.1f} days",
        f"between {time.low / _DAY:,.1f} and {time.high / _DAY:,.1f}; "
        f"{share.value:.1%} of it trains",
    )


def run_section(run: Run) -> Section:
    """Time, interruptions, GPU-hours, cost and energy of a run.

    Returns:
        The section. [-]
    """
    parts: list[Block] = [Facts(run_rows(run))]
    if len(run.stretches) > 1:
        sheet = Table(
            ("part", *PARTS), tuple(stretch_rows(run)), title="Parts of the run"
        )
        parts.append(sheet)
    parts.append(Notes(run.assumptions, "Assumed of the run"))
    return Section("run", "The whole run", parts)
