"""Kernel tables of nine GPUs: figures of ai-dynamo/aiconfigurator, condensed.

Medians over the engines and versions that were measured; of collectives the fastest.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent / "tables"


class Shaped(NamedTuple):
    """Time of one kernel of a table."""

    key: dict[str, str]
    """Column to its value in the row: GPU, format, shape. [text]"""
    size: int
    """Rows, tokens, length or bytes, by table. [1] or [B]"""
    seconds: float
    """Measured time. [s]"""

    def number(self, column: str) -> int:
        """Whole number of a column.

        Args:
            column: Name of the column. [text]

        Returns:
            The number. [1]
        """
        return int(self.key[column])


def table(name: str) -> Iterator[Shaped]:
    """Kernels of one table.

    Args:
        name: `gemm`, `experts`, `attention`, `nccl` or `deepep`. [text]

    Yields:
        One kernel for each cell with a time.
    """
    with (HERE / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = {column: row[column] for column in row if not column.isdigit()}
            for column in row:
                if column.isdigit() and row[column]:
                    yield Shaped(key, int(column), float(row[column]) * 1e-6)
