"""Debian's Chromium without a window, at a width and in a theme of ours."""

import base64
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

Theme = Literal["light", "dark"]
PATIENCE = 60.0
"""Time for the charts of a page to be drawn. [s]"""
NARROW = 600
"""Width below which the browser is a telephone. [px]"""
DRAWN = "return document.documentElement.dataset.drawn === 'yes'"
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")


def program(*names: str) -> str:
    """Where a program is; a browser that is missing is a failure, never a skip."""
    found = next(filter(None, map(shutil.which, names)), None)
    assert found, f"no {names[0]}: apt-get install -y chromium chromium-driver"
    return found


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser that records its console, closed at the end."""
    options = webdriver.ChromeOptions()
    for flag in _FLAGS:
        options.add_argument(flag)
    options.binary_location = program("chromium", "google-chrome")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, Service(program("chromedriver")))
    driver.set_script_timeout(2 * PATIENCE)
    try:
        yield driver
    finally:
        driver.quit()


def set_look(driver: Any, width: int, theme: Theme) -> None:
    """Give the window a width and the reader a theme."""
    metrics = {
        "width": width,
        "height": 900,
        "deviceScaleFactor": 1,
        "mobile": width < NARROW,
    }
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"name": "prefers-color-scheme", "value": theme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def show(driver: Any, page: Path, width: int, theme: Theme = "light") -> None:
    """Open a page and wait until its charts are drawn."""
    set_look(driver, width, theme)
    # A page from a file may load whatever it likes; so it is cut off.
    driver.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0}
    offline["uploadThroughput"] = 0
    driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    driver.get(page.resolve().as_uri())
    until = time.monotonic() + PATIENCE
    while not driver.execute_script(DRAWN):
        assert time.monotonic() < until, driver.get_log("browser")
        time.sleep(0.1)


def photograph(driver: Any, file: Path, width: int, height: int) -> None:
    """Write the top of the page as a PNG."""
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    shot = driver.execute_cdp_cmd(
        "Page.captureScreenshot",
        {"format": "png", "captureBeyondViewport": True, "clip": clip},
    )
    file.write_bytes(base64.b64decode(shot["data"]))
