"""Pages as a reader gets them: drawn, quiet, within the window, in letters to read."""

import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
JOBS = ROOT / "configs/jobs"
BIG = JOBS / "llama-3.1-405b-16k-h100.yaml"
COMMANDS = {
    "plan": ("plan", BIG),
    "predict": ("predict", BIG),
    "explain": ("explain", JOBS / "llama-3-8b-8-a100.yaml", "--time-limit", "20"),
    "compare": ("compare", ROOT / "configs/purchases/70b-one-month.yaml"),
    "nothing fits": ("explain", JOBS / "llama-2-7b-4-rtx-4090.yaml"),
}
CHARTS = {"plan": 10, "predict": 7, "explain": 8, "compare": 6, "nothing fits": 0}
"""Fewest charts of each page. [1]"""
WIDTHS = (1280, 390)
LARGEST = 2e6
"""Size of a page. [B]"""
SMALLEST = 11.0
"""Size of its letters. [px]"""
SMALL_LETTERS = """
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const found = [];
while (walk.nextNode()) {
  const parent = walk.currentNode.parentElement;
  if (!walk.currentNode.data.trim() || parent.closest("script, style")) continue;
  if (parent.getClientRects().length === 0) continue;
  const size = parseFloat(getComputedStyle(parent).fontSize);
  if (size < arguments[0]) found.push(`${walk.currentNode.data} ${size}`);
}
return found;
"""
FAINT = """
const parts = (text) => text.match(/[\\d.]+/g).map(Number);
const light = (text) => {
  const [r, g, b] = parts(text).map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const page = light(getComputedStyle(document.body).backgroundColor);
return [...document.querySelectorAll("h1, h2, h3, p, li, td, th, dt, dd, figcaption")]
  .map((e) => [e.textContent.slice(0, 30), light(getComputedStyle(e).color)])
  .map(([text, ink]) => [text, Math.max(ink, page) + 0.05, Math.min(ink, page) + 0.05])
  .filter(([, lighter, darker]) => lighter / darker < 4.5);
"""

AXE = """
const done = arguments[arguments.length - 1];
axe.run(document, { resultTypes: ["violations"] }).then((found) => done(
  found.violations.filter((v) => ["serious", "critical"].includes(v.impact))
    .map((v) => `${v.id}: ${v.nodes.map((n) => n.target).slice(0, 4)}`)));
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for all pages. The suite is not collected with its packages."""
    from chromium import chromium  # noqa: PLC0415

    with chromium() as driver:
        yield driver


@pytest.fixture(scope="module", params=COMMANDS)
def page(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """What a command writes for --report, and its name."""
    name = request.param
    file = tmp_path_factory.mktemp("pages") / "page.html"
    command, job, *more = COMMANDS[name]
    run = [sys.executable, "-m", "planner", command, job, *more, "--report", file]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert file.is_file(), done.stderr
    return name, file


def opened(browser: Any, file: Path, width: int, theme: str = "light") -> None:
    from chromium import show  # noqa: PLC0415

    show(browser, file, width, theme)  # type: ignore[arg-type]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_is_drawn_without_a_complaint(
    browser: Any, page: tuple[str, Path], width: int
) -> None:
    """Every chart has marks, nothing overflows, letters can be read."""
    name, file = page
    opened(browser, file, width)

    assert [
        line for line in browser.get_log("browser") if "favicon" not in str(line)
    ] == []
    charts = browser.execute_script(
        "return [...document.querySelectorAll('.chart')].map("
        "(c) => c.querySelectorAll('svg .point, svg .js-line').length)"
    )
    assert len(charts) >= CHARTS[name]
    assert all(charts)
    assert (
        browser.execute_script("return document.documentElement.scrollWidth") <= width
    )
    assert browser.execute_script(SMALL_LETTERS, SMALLEST) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_follows_the_theme(
    browser: Any, page: tuple[str, Path], theme: str
) -> None:
    """Its background does, and its words stand out from it by 4.5 to 1."""
    opened(browser, page[1], 1280, theme)
    background = browser.execute_script(
        "return getComputedStyle(document.body).backgroundColor"
    )
    assert (background == "rgb(255, 255, 255)") == (theme == "light")
    assert browser.execute_script(FAINT) == []


def test_a_page_is_small_and_loads_nothing(
    browser: Any, page: tuple[str, Path]
) -> None:
    """One file, under 2 MB; the browser is offline and asked for nothing."""
    assert page[1].stat().st_size < LARGEST
    opened(browser, page[1], 1280)
    loaded = browser.execute_script(
        "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    )
    assert loaded == []


def test_contents_lead_to_sections(browser: Any, page: tuple[str, Path]) -> None:
    opened(browser, page[1], 1280)
    broken = browser.execute_script(
        "return [...document.querySelectorAll('nav a')].filter("
        "(a) => !document.querySelector(a.getAttribute('href'))).length"
    )
    assert broken == 0


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_has_no_serious_fault_of_accessibility(
    browser: Any, page: tuple[str, Path], width: int, theme: str
) -> None:
    opened(browser, page[1], width, theme)
    browser.execute_script((files("axe_core_python") / "axe.min.js").read_text())
    assert browser.execute_async_script(AXE) == []


def test_a_plan_is_picked_and_a_table_sorted_with_the_keyboard(
    browser: Any, page: tuple[str, Path]
) -> None:
    """The sheet of the picked plan is seen, with charts as wide as the page."""
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415

    if page[0] != "plan":
        return
    opened(browser, page[1], 1280)
    first, second, *_ = browser.find_elements("css selector", ".picks input")
    first.send_keys(Keys.ARROW_DOWN)
    assert second.is_selected()
    seen = browser.find_elements("css selector", ".picked:not([hidden])")
    assert [sheet.get_attribute("id") for sheet in seen] == [
        second.get_attribute("value")
    ]
    chart = seen[0].find_element("css selector", ".chart svg")
    assert chart.size["width"] > 600
    head = browser.find_element("css selector", "#others th")
    head.send_keys(Keys.ENTER)
    assert head.get_attribute("aria-sort") == "ascending"
