"""Every key that the installed DeepSpeed reads is read, judged, or stated harmless."""

import json
from pathlib import Path

import pytest
from conftest import Run

from planner.frameworks.deepspeed.launch.known import blocks

pytestmark = pytest.mark.frameworks
SCRIPT = Path(__file__).parent / "deepspeed" / "keys.py"
REFUSED = {
    *("amp", "compression_training", "curriculum_learning", "eigenvalue", "elasticity"),
    *("graph_harvesting", "nebula", "progressive_layer_drop", "quantize_training"),
    *("sparse_attention", "sparse_gradients"),
}
"""Keys that DeepSpeed looks for to refuse them, and that are unknown here."""


def test_no_key_of_the_installed_release_is_passed_over(run_in: Run) -> None:
    done = run_in("deepspeed", [str(SCRIPT)], timeout=300)
    (line,) = [one for one in done.stdout.splitlines() if one.startswith("KEYS ")]
    every: dict[str, list[str]] = json.loads(line.removeprefix("KEYS "))
    paths = {(block, name) for block, names in every.items() for name in names}
    known = {(block, name) for block, name in paths if blocks()[block].knows(name)}
    assert {name for _, name in paths - known} == REFUSED
    print(f"{len(paths)} keys of DeepSpeed, {len(known)} known")  # noqa: T201
    assert len(known) > 150
