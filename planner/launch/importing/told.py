"""Text of an imported spec, and the report on what was read."""

from collections.abc import Mapping
from typing import Any

from planner.hardware.reading.escape import comment, yaml_text
from planner.launch.brief import Reading


def spec_text(fields: Mapping[str, object], reading: Reading) -> str:
    """Write the spec as YAML, headed by the settings that were not understood."""
    head = [f"Read from {reading.target} files by `planner import`."]
    for title, words in (
        ("Set aside by --ignore", tuple(map(str, reading.unknown))),
        ("Changes no layout, time or memory", reading.ignored),
    ):
        if words:
            head += [f"{title}:", *(f"  {comment(word)}" for word in words)]
    return yaml_text(dict(fields), head)


def _worked_out(reading: Reading, fields: Mapping[str, Any]) -> list[str]:
    """Line on the origin of a global batch that no file gives."""
    batch, each = fields.get("training", {}).get("global_batch"), reading.per_replica
    if not (batch and each) or "global_batch" in reading.training or batch % each:
        return []
    return [
        f"  global batch: {batch:,}, {each:,} for each of {batch // each:,} replicas"
    ]


def report(reading: Reading, fields: Mapping[str, object], out: str) -> str:
    """Report on the settings that were understood, and on those that were not."""
    layout = fields.get("layout")
    shown = layout if isinstance(layout, dict) else {}
    degrees = [f"{k}={v}" for k, v in shown.items() if isinstance(v, int | str)]
    lines = [f"{out}: a job for {reading.framework}", "  layout: " + ", ".join(degrees)]
    hardware = fields.get("cluster")
    if isinstance(hardware, Mapping):
        lines.append(f"  hardware: {hardware.get('name', '')}")
    lines += _worked_out(reading, fields)
    if reading.unknown:
        lines += ["  set aside by --ignore:"]
        lines += [f"    {comment(str(word))}" for word in reading.unknown]
    if reading.ignored:
        lines.append(
            f"  {len(reading.ignored)} settings change no layout, time or memory"
        )
    lines.append(f"  next: planner predict {out}")
    return "\n".join(lines)
