"""Photographs the pages of README and docs: `python tests/browser/screenshots.py`.

It runs the commands, opens what they write in Chromium and writes `docs/images`; the
extra `browser` and Debian's chromium and chromium-driver are needed.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from subprocess import PIPE

from chromium import Theme, chromium, photograph, show

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
WIDTH = 1280
HEIGHTS = {"plan": 945, "compare": 2800}
COMMANDS = {
    "plan": ("plan", "configs/jobs/llama-3.1-405b-16k-h100.yaml"),
    "compare": ("compare", "configs/purchases/70b-one-month.yaml"),
}
THEMES: dict[str, Theme] = {"plan": "light", "compare": "dark"}


def main() -> None:
    """Write every image."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as driver:
        for name, (command, *arguments) in COMMANDS.items():
            page = Path(folder) / f"{name}.html"
            run = [sys.executable, "-m", "planner", command, *arguments]
            subprocess.run([*run, "--report", page], cwd=ROOT, check=True, stdout=PIPE)
            show(driver, page, WIDTH, THEMES[name])
            photograph(driver, IMAGES / f"{name}.png", WIDTH, HEIGHTS[name])


if __name__ == "__main__":
    main()
