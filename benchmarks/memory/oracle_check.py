"""Price cases of eager PyTorch training and compare them with golden totals.

usage: python benchmarks/memory/oracle_check.py CASES.yaml RESULTS.json [--json FILE|-]

CASES holds `cases` by name and, where these name their model, `models`. RESULTS holds
for each name the tracked peak in bytes (`peak.total`), or an `error`.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from planner.eager import EagerCase, Unsupported, replay

GIB = 2**30
"""Bytes of one GiB. [B/GiB]"""


class BrokenFileError(Exception):
    """A file cannot be read or has the wrong form; the message names the file."""


def read(path: str) -> Any:
    """Read a YAML or JSON file.

    Args:
        path: Path of the file. [path]

    Returns:
        Content of the file. [data]

    Raises:
        BrokenFileError: When the file is missing or not well formed.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        return json.loads(text) if path.endswith(".json") else yaml.safe_load(text)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not text"
        raise BrokenFileError(f"{path}: {reason}") from error
    except (yaml.YAMLError, json.JSONDecodeError) as error:
        told = " ".join(str(error).split())
        raise BrokenFileError(f"{path}: not well formed: {told}") from error


def cases_of(path: str) -> dict[str, dict[str, Any]]:
    """Cases by name, each with its model's fields in place.

    Args:
        path: The file of cases. [path]

    Returns:
        Keyword arguments of an EagerCase by name. [data]

    Raises:
        BrokenFileError: When there are no cases or a model is not described.
    """
    data = read(path)
    cases = data.get("cases") if isinstance(data, dict) else None
    if not isinstance(cases, dict) or not cases:
        raise BrokenFileError(f"{path}: cases: a map from names to cases is missing")
    models = data.get("models") or {}
    if not isinstance(models, dict):
        raise BrokenFileError(f"{path}: models: not a map from names to fields")
    return {str(name): _whole(path, name, case, models) for name, case in cases.items()}


def _whole(path: str, name: Any, case: Any, models: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(case, dict) or "model" not in case:
        raise BrokenFileError(f"{path}: cases.{name}: no model")
    model = case["model"]
    if isinstance(model, str):
        if model not in models:
            known = ", ".join(sorted(models)) or "none"
            raise BrokenFileError(
                f"{path}: cases.{name}.model: unknown model {model!r}; models: {known}"
            )
        model = models[model]
    return {**case, "model": model}


def golden_of(path: str) -> dict[str, Any]:
    """Results by name.

    Args:
        path: The file of results. [path]

    Returns:
        Content of the file. [data]

    Raises:
        BrokenFileError: When the content is no map.
    """
    data = read(path)
    if not isinstance(data, dict):
        raise BrokenFileError(f"{path}: not a map from names to results")
    return data


def compared(name: str, case: dict[str, Any], golden: Any) -> dict[str, Any]:
    """Price one case and compare the prediction with the golden result.

    Args:
        name: The case. [name]
        case: Keyword arguments of an EagerCase. [data]
        golden: Golden result of the case, if any. [data]

    Returns:
        The row of the report: GiB and relative error. [data]
    """
    predicted, reason = _replayed(case)
    truth, missing = _truth(golden)
    reason = reason or missing
    error = None
    if predicted is not None and truth is not None:
        error = predicted / truth - 1
    return {
        "name": name,
        "predicted_gib": None if predicted is None else predicted / GIB,
        "golden_gib": None if truth is None else truth / GIB,
        "error": error,
        "status": "ok" if reason is None else "unsupported",
        "reason": reason,
    }


def _replayed(case: dict[str, Any]) -> tuple[int | None, str | None]:
    try:
        return replay(EagerCase(**case)).peak.total, None
    except Unsupported as unsupported:
        return None, str(unsupported)
    except ValidationError as wrong:
        first = wrong.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        return None, f"{field}: {first['msg']}"


def _truth(golden: Any) -> tuple[int | None, str | None]:
    if not isinstance(golden, dict):
        return None, "no golden result"
    if "error" in golden:
        return None, f"the golden result is an error: {golden['error']}"
    try:
        return int(golden["peak"]["total"]), None
    except (KeyError, TypeError, ValueError):
        return None, "the golden result has no peak.total"


def report(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows with their counts.

    Args:
        rows: A row per case. [data]

    Returns:
        The whole report. [data]
    """
    errors = [abs(row["error"]) for row in rows if row["status"] == "ok"]
    return {
        "cases": rows,
        "within_1pct": sum(error <= 0.01 for error in errors),
        "within_3pct": sum(error <= 0.03 for error in errors),
        "unsupported": sum(row["status"] != "ok" for row in rows),
    }


def table(told: dict[str, Any]) -> str:
    """The report for people.

    Args:
        told: The whole report. [data]

    Returns:
        A heading, a line per case and a line of counts. [text]
    """
    width = max(len(row["name"]) for row in told["cases"])
    lines = [f"{'case':{width}} {'predicted':>10} {'golden':>10} {'error':>9}  GiB"]
    lines += [_line(row, width) for row in told["cases"]]
    counts = (
        f"{len(told['cases'])} cases: {told['within_1pct']} within 1 %, "
        f"{told['within_3pct']} within 3 %, {told['unsupported']} unsupported"
    )
    return "\n".join([*lines, counts])


def _line(row: dict[str, Any], width: int) -> str:
    predicted, golden = _gib(row["predicted_gib"]), _gib(row["golden_gib"])
    error = "" if row["error"] is None else f"{row['error']:+.3%}"
    reason = "" if row["reason"] is None else f"  unsupported: {row['reason']}"
    return f"{row['name']:{width}} {predicted:>10} {golden:>10} {error:>9}{reason}"


def _gib(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("cases", help="YAML file of cases")
    parser.add_argument("results", help="JSON file of golden results")
    parser.add_argument(
        "--json", metavar="FILE|-", help="where the report goes as JSON"
    )
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Check a file of cases.

    Args:
        arguments: The command line; the process's own when left out. [texts]

    Returns:
        0, or 2 when a file is missing or broken. [exit code]
    """
    given = _parser().parse_args(arguments)
    try:
        cases, golden = cases_of(given.cases), golden_of(given.results)
        rows = [compared(name, case, golden.get(name)) for name, case in cases.items()]
        told = report(rows)
        if given.json == "-":
            print(json.dumps(told, indent=1))
            return 0
        print(table(told))
        if given.json is not None:
            _write(given.json, told)
    except BrokenFileError as broken:
        print(f"error: {broken}", file=sys.stderr)
        return 2
    return 0


def _write(path: str, told: dict[str, Any]) -> None:
    try:
        Path(path).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise BrokenFileError(f"{path}: {error.strerror}") from error


if __name__ == "__main__":
    sys.exit(main())
