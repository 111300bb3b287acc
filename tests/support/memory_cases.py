"""Cases and truths of benchmarks/memory, as tests read them."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from planner.eager import EagerCase
from planner.hardware.reading.yaml_text import parse_yaml

HERE = Path(__file__).resolve().parents[2] / "benchmarks" / "memory"


@cache
def golden(name: str) -> dict[str, Any]:
    """Truths of a file, by case."""
    truths: dict[str, Any] = json.loads((HERE / f"{name}golden.json").read_text())
    truths.pop("source")
    return truths


@cache
def cases(name: str) -> dict[str, EagerCase]:
    """Cases of a file, by name."""
    data = parse_yaml((HERE / f"{name}cases.yaml").read_text())
    models = data.get("models", {})
    return {
        key: EagerCase(**{**case, "model": models.get(_key(case), case["model"])})
        for key, case in data["cases"].items()
    }


def _key(case: dict[str, Any]) -> str:
    return case["model"] if isinstance(case["model"], str) else ""
