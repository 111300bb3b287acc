"""Track cases with PyTorch's own trackers: the truths that oracle_check.py reads.

usage: python benchmarks/memory/track.py CASES.yaml [NAME ...] > RESULTS.json

CASES is in the format of cases.yaml; with names, those cases alone. Needs the extras
`oracle` and `test`. A case that PyTorch cannot run on fake tensors holds its `error`.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.eager import EagerCase

SUITE = Path(__file__).resolve().parents[2] / "tests" / "oracle" / "memory"
SOURCE = "benchmarks/memory/track.py: peaks in bytes by phase, and by category"


def described(path: str) -> dict[str, EagerCase]:
    """Cases of a file by name, each with the fields of its model."""
    data = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    models = data.get("models", {})
    cases = {}
    for name, case in data["cases"].items():
        model = case["model"]
        fields = models[model] if isinstance(model, str) else model
        cases[name] = EagerCase(**case | {"model": with_depth(fields, case)})
    return cases


def with_depth(model: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """Fields of a model with the depth that a case gives it, if any."""
    if "layers" not in case:
        return model
    key = "n_layer" if model.get("family") == "gpt2" else "num_hidden_layers"
    return model | {key: case["layers"]}


def truth(case: EagerCase) -> dict[str, Any]:
    """Peaks that the trackers find for one case, or the error."""
    from tracked_step import tracked  # noqa: PLC0415 -- only where torch is

    try:
        phases, (parameters, trained) = tracked(case)
    except Exception as error:  # noqa: BLE001 -- whatever PyTorch raises is the answer
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    name = max(phases, key=lambda phase: phases[phase].total)
    return {
        "peak": phases[name].parts | {"total": phases[name].total},
        "peak_phase": name,
        "phase_peak_total": {phase: most.total for phase, most in phases.items()},
        "n_params": parameters,
        "n_trainable": trained,
    }


def main() -> None:
    """Track the cases of a file and print their tracked peaks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    sys.path.insert(0, str(SUITE))
    try:
        pytest.importorskip("tracked_step")
    except pytest.skip.Exception as missing:
        sys.exit(f"{missing}; pip install -e '.[oracle,test]'")
    told: dict[str, Any] = {"source": SOURCE}
    for name, case in described(asked.cases).items():
        if not asked.names or name in asked.names:
            told[name] = truth(case)
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
