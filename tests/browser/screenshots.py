"""Photographs the pages of README and docs: `python tests/browser/screenshots.py`.

It runs the commands, opens what they write in Chromium and writes `docs/images`; the
extra `browser` and Debian's chromium and chromium-driver are needed.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from subprocess import PIPE
from typing import Any
from urllib.parse import urlencode

from chromium import Theme, chromium, photograph, set_look, show

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
WIDTH = 1280
HEIGHTS = {"plan": 885, "compare": 2800}
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
        what_if(driver)


def what_if(driver: Any) -> None:
    """Photograph the page of knobs, as it is served."""
    # Pictures have no tests beside them that would bring the folder.
    sys.path.append(str(ROOT / "tests" / "support"))
    from served import served  # noqa: PLC0415

    nodes = [("8", "h200-sxm-141gb"), ("16", "h100-sxm5-80gb"), ("8", "h100-sxm5-80gb")]
    job = [urlencode({"model": "llama-3.1-8b", "count": n, "gpu": g}) for n, g in nodes]
    query = "&".join([job[0], *(urlencode({"was": each}) for each in job[1:])])
    with served() as server:
        set_look(driver, WIDTH, "light")
        online = {"offline": False, "latency": 0, "downloadThroughput": -1}
        online["uploadThroughput"] = -1
        driver.execute_cdp_cmd("Network.emulateNetworkConditions", online)
        for _ in range(2):  # the second time every answer is proven
            driver.get(f"{server.base}/what-if?{query}&proof=1")
        photograph(driver, IMAGES / "what-if.png", WIDTH, 1060)


if __name__ == "__main__":
    main()
