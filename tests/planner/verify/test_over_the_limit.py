"""Plans that may run out of memory, by the user's own limit, are verified too."""

import json

from typer.testing import CliRunner

from planner.cli.app import app

LIMITS = {
    "tp": "1",
    "pp": "1",
    "dp": "8",
    "zero_stage": "0",
    "micro_batch": "1",
    "recompute": "full",
    "memory_risk": "0.99",
}


def test_a_plan_beyond_the_card_is_what_the_verifier_counts() -> None:
    """Tensors packed, or the allocator's own replay: the less of both counts."""
    words = ["plan", "--model=llama-3.1-8b", "--on=8xh100", "--json=-"]
    words += [f"--set=search.{name}={value}" for name, value in LIMITS.items()]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    memory = json.loads(done.stdout)["plans"][0]["estimate"]["memory"]
    assert memory["peak_device_gib"]["value"] > memory["capacity_gib"]
