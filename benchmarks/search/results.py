"""Measurements so far: results.json, a row for each case and point of growth."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.search.process import Row

RESULTS = Path(__file__).parent / "results.json"
KEYS = {"cases": ("job", "space"), "growth": ("along", "value")}
"""Each table of the file with the fields that tell its rows apart. [text]"""
Tables = dict[str, list[Row]]


def known(path: Path = RESULTS) -> Tables:
    """Every row of the file.

    Args:
        path: The file; it need not exist.

    Returns:
        Rows by table.
    """
    read: Tables = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return {table: read.get(table, []) for table in KEYS}


def keep(table: str, rows: Iterable[Row], path: Path = RESULTS) -> Tables:
    """Put measurements in place of older measurements of the same case.

    Args:
        table: A key of ``KEYS``. [text]
        rows: New measurements.
        path: The file.

    Returns:
        Every row of the file, new and old.
    """
    tables = known(path)
    merged = {_key(table, row): row for row in (*tables[table], *rows)}
    tables[table] = list(merged.values())
    path.write_text(_text(tables), encoding="utf-8")
    return tables


def _key(table: str, row: Row) -> tuple[Any, ...]:
    return tuple(row[field] for field in KEYS[table])


def _text(tables: Tables) -> str:
    """JSON with a line for every row, so that a change shows the rows measured."""
    blocks = [
        f" {json.dumps(table)}: [\n"
        + ",\n".join(f"  {json.dumps(row)}" for row in rows)
        + "\n ]"
        for table, rows in tables.items()
    ]
    return "{\n" + ",\n".join(blocks) + "\n}\n"
