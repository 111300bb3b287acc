"""A user's own hardware and measurements: an H100 that is slower than ours."""

from pathlib import Path

from planner.hardware.reading.files import folder

H100 = "h100-sxm5-80gb"


def slower_h100(where: Path) -> Path:
    """A folder of hardware whose H100 multiplies at half the rate of ours."""
    ours = (folder("calibration") / f"{H100}.yaml").read_text()
    assert "short_run: 0.79" in ours
    (where / "calibration").mkdir(parents=True)
    slow = ours.replace("short_run: 0.79", "short_run: 0.40")
    (where / "calibration" / f"{H100}.yaml").write_text(slow)
    return where


def calibration_of(file: Path) -> Path:
    """A file of the user's own measurement of an H100's memory."""
    memory = "{efficiency: 0.5, op_latency: 5 us, source: measured here}"
    file.write_text(f"gpus:\n  {H100}:\n    memory: {memory}\n")
    return file
