"""Key of the measured rows whose layouts can be compared."""

from collections.abc import Iterator

from planner.calibration.rows.rows import Row


def sweep_of(row: Row) -> str:
    """Key of the rows that differ in nothing but their layout.

    Rows of one key are of one campaign: one state of one cluster. A row that names
    none is of the release that the row states.
    """
    model, hard, job = row.model, row.hardware, row.job
    shape = (model.layers, model.hidden, model.heads, model.vocab)
    size = (hard.gpu, hard.gpus, job.seq_len, job.global_batch, job.precision)
    parts = (row.source_key, model.name, *shape, *size, job.framework)
    return "|".join(map(str, (*parts, *_further(row))))


def _further(row: Row) -> Iterator[str]:
    """Facts that change the step and are no choice of a layout."""
    software = row.software
    yield software.campaign or software.version or ""
    if row.model.moe:
        yield f"{row.model.moe.experts} experts"
    if row.job.task:
        yield row.job.task
    if software.compile is not None:
        yield "compiled" if software.compile else "not compiled"
    if software.fp8 and software.fp8.recipe:
        yield f"fp8 {software.fp8.recipe}"
    if software.attention:
        yield software.attention
    if software.moments:
        yield f"moments {software.moments}"
