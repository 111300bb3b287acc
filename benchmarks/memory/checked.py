"""Errors of memory against PyTorch's trackers and against measured GPUs."""

import csv
from pathlib import Path
from statistics import mean, median

from benchmarks.memory.oracle_check import cases_of, compared, golden_of

HERE = Path(__file__).parent
SETS = {
    "one rank: families, precisions, losses, optimizers, adapters": "",
    "the same, further families and odd combinations": "more/",
    "one rank among many: FSDP2, tensor parallelism, stages": "sharded/",
}
"""Subject of a set of tracked cases to the prefix of its files. [text]"""
RESULTS = HERE.parent / "accuracy" / "results.csv"
PYTORCH = ("torchtune", "torchao", "torchtitan")
"""Sources whose runs are PyTorch's own fine-tuning and training stacks. [text]"""


def tracked_rows() -> list[tuple[object, ...]]:
    """Number of cases in every set, and of those near their tracked peak.

    Returns:
        Set, cases, within 0.1 %, within 1 %, largest error, shape (sets,). [text]
    """
    return [(what, *_agreement(prefix)) for what, prefix in SETS.items()]


def _agreement(prefix: str) -> tuple[object, ...]:
    cases = cases_of(str(HERE / f"{prefix}cases.yaml"))
    golden = golden_of(str(HERE / f"{prefix}golden.json"))
    rows = [compared(name, case, golden.get(name)) for name, case in cases.items()]
    errors = [abs(row["error"]) for row in rows if row["error"] is not None]
    near = (sum(error <= bar for error in errors) for bar in (0.001, 0.01))
    return (len(rows), *near, f"{max(errors):.2%}")


def measured_rows() -> list[tuple[object, ...]]:
    """Errors on published runs of PyTorch's stacks, on one GPU and on several.

    Returns:
        GPUs, runs, median, mean and largest absolute error, shape (2,). [text]
    """
    with RESULTS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["source"] in PYTORCH]
    return [
        _errors("one", rows, several=False),
        _errors("8 to 128", rows, several=True),
    ]


def _errors(
    name: str, rows: list[dict[str, str]], *, several: bool
) -> tuple[object, ...]:
    counted = [
        abs(float(row["memory_error"]))
        for row in rows
        if row["memory_error"] and (int(row["gpus"]) > 1) == several
    ]
    told = (f"{value:.1%}" for value in (median(counted), mean(counted), max(counted)))
    return (name, len(counted), *told)
