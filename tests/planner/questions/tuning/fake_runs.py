"""Launches that print what Megatron-LM would, in place of a training run."""

import json
from pathlib import Path

LINE = "iteration {at}/20 | elapsed time per iteration (ms): {ms:.1f} | lm loss: 1.0"
TRUTH = {"compute": 1.05, "tp_comm": 1.6, "bubble": 1.5, "dp_comm": 1.2}
"""Factor of each cause on the made-up cluster; 1 for the others. [1]"""


def true_step(run: Path) -> float:
    """Step of a run's plan on the made-up cluster. [s]."""
    plan = json.loads((run / "plan.json").read_text())
    causes = plan["estimate"]["time_breakdown_s"]
    return float(sum(time * TRUTH.get(name, 1.0) for name, time in causes.items()))


def log_of(step_s: float) -> str:
    """Text of a log of 20 steps; the first is slow, as it is in a real run."""
    times = [3.0, *[1.0] * 19]
    lines = [
        LINE.format(at=at, ms=1000 * step_s * times[at - 1]) for at in range(1, 21)
    ]
    return "\n".join(lines) + "\n"


def fake_launch(run: Path) -> None:
    """Put a script in place of launch.sh that prints the log."""
    script = run / "launch.sh"
    script.write_text(
        f"#!/usr/bin/env bash\ncat <<'END'\n{log_of(true_step(run))}END\n"
    )
    script.chmod(0o755)
