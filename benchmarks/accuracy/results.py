"""The figures of a study: every row, and the summaries that are quoted."""

import csv
import io

from benchmarks.accuracy.contact_report import contact_coverage, stack_widths
from benchmarks.accuracy.study import Study, outcomes_of
from planner.calibration.accuracy.errors import accuracy, macro_accuracy
from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.summary import Summary, is_v100, summarise

WAYS = {
    "in_sample": "in-sample",
    "without_group": "leave-one-group-out",
    "without_source": "leave-one-source-out",
}
"""Ways to predict a row's step time, with their names in the report."""
CAMPAIGNS = 2
"""Split groups from which a source has several campaigns. [1]"""
LARGE = 64
"""GPUs of a large run. [1]"""
_LARGE_GPUS = ("a100", "h100", "h200", "b200", "gb200")
_LARGE_SOURCES = ("megatron", "nemo", "mlperf")
COLUMNS = (
    "id", "source", "status", "gpu", "gpus", "stack", "layout", "measured_s",
    "predicted_s", "in_sample", "without_group", "without_source", "inside",
    "measured_gib", "predicted_gib", "memory_error", "counter", "verdict", "oom",
    "counted",
)  # fmt: skip


def summaries(done: Study) -> dict[str, Summary]:
    """Summaries of the three ways side by side, without V100.

    Args:
        done: The study. [-]

    Returns:
        Way to summary. [-]
    """
    return {
        which: summarise(row for row in outcomes_of(done, which) if not is_v100(row))
        for which in WAYS
    }


def several_campaigns(done: Study) -> list[Outcome]:
    """Rows of sources with several split groups, the row's group left out of the fit.

    Args:
        done: The study. [-]

    Returns:
        Rows that count and are priced. [-]
    """
    rows = [row for row in outcomes_of(done, "without_group") if counts(row)]
    groups: dict[str, set[str]] = {}
    for row in rows:
        groups.setdefault(row.source, set()).add(row.split_group)
    return [row for row in rows if len(groups[row.source]) >= CAMPAIGNS]


def large(done: Study) -> list[Outcome]:
    """Large Megatron, NeMo and MLPerf runs, the run's source left out of the fit.

    Args:
        done: The study. [-]

    Returns:
        Rows that count and are priced. [-]
    """
    return [
        row
        for row in outcomes_of(done, "without_source")
        if counts(row)
        and row.gpus >= LARGE
        and row.gpu.startswith(_LARGE_GPUS)
        and any(word in f"{row.source} {row.stack}" for word in _LARGE_SOURCES)
    ]


def counts(row: Outcome) -> bool:
    """Tell if a row is priced and counted.

    Args:
        row: Any row. [-]

    Returns:
        True if so; False for suspect rows and V100. [-]
    """
    return row.counted and row.status == "ok" and not is_v100(row)


def figures(done: Study) -> dict[str, object]:
    """Everything that the report quotes, for programs.

    Args:
        done: The study. [-]

    Returns:
        Plain values. [-]
    """
    return {
        "date": done.fit.date,
        "summaries": {n: s.model_dump() for n, s in summaries(done).items()},
        "several_campaigns": {
            "macro": macro_accuracy(several_campaigns(done)).model_dump(),
            "rows": accuracy(several_campaigns(done)).model_dump(),
        },
        "large": accuracy(large(done)).model_dump(),
        "first_contact": {
            "coverage": contact_coverage(),
            "half_width": stack_widths(),
        },
        "linearisation": done.linearisation,
    }


def table(done: Study) -> str:
    """Every row as CSV: errors three ways.

    Args:
        done: The study. [-]

    Returns:
        Lines with a heading. [text]
    """
    ways = {which: outcomes_of(done, which) for which in WAYS}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for rows in zip(*ways.values(), strict=True):
        writer.writerow(_cells(*rows))
    return out.getvalue()


def _cells(inside: Outcome, group: Outcome, source: Outcome) -> list[object]:
    held: int | str = ""
    if source.step_low_s and source.step_high_s and source.measured_step_s:
        held = int(source.step_low_s <= source.measured_step_s <= source.step_high_s)
    return [
        inside.id, inside.source, inside.status, inside.gpu, inside.gpus,
        inside.stack, inside.layout, _short(inside.measured_step_s),
        _short(inside.predicted_step_s), _short(inside.step_error),
        _short(group.step_error), _short(source.step_error), held,
        _short(inside.measured_memory_gib), _short(inside.predicted_memory_gib),
        _short(inside.memory_error), inside.memory_counter, inside.verdict,
        int(inside.oom), int(counts(inside)),
    ]  # fmt: skip


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
