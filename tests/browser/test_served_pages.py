"""Served pages in Chromium: the main story of each by real clicks, at two widths."""

import io
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from served import Served, served, until

pytestmark = pytest.mark.web
ROOT = Path(__file__).resolve().parents[2]
ROWS = ROOT / "tests" / "planner" / "calibration" / "measured" / "nemo-docs.yaml"
LOOKS = ((1280, "light"), (390, "dark"), (1280, "dark"), (390, "light"))
PATIENCE = 120.0
"""Longest wait for an answer. [s]"""
BATCHES = count(256, 64)
"""A batch for each look at the plan, so that none has its answer kept. [sequence]"""
AXE = """
const done = arguments[arguments.length - 1];
const told = (n) => `${n.target} ${n.failureSummary}`;
axe.run(document, { resultTypes: ["violations"] }).then((found) => done(
  found.violations.filter((v) => ["serious", "critical"].includes(v.impact))
    .map((v) => `${v.id}: ${v.nodes.map(told).slice(0, 4)}`)));
"""
MARKS = """
return [...document.querySelectorAll(".chart")].map(
  (chart) => chart.querySelectorAll("svg .point, svg .js-line").length);
"""
STATE = """
return [...document.querySelectorAll(".closing dd")].map((said) => said.textContent);
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served("--workers", "2") as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from chromium import chromium  # noqa: PLC0415

    with chromium() as driver:
        yield driver


@pytest.fixture(params=LOOKS, ids=lambda look: f"{look[0]}-{look[1]}")
def look(request: pytest.FixtureRequest, browser: Any) -> Any:
    """The browser at a width and in a theme."""
    width, theme = request.param
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
    browser.get_log("browser")
    return browser


def find(browser: Any, css: str) -> Any:
    return browser.find_element("css selector", css)


def seen(browser: Any, css: str) -> list[Any]:
    found: list[Any] = browser.find_elements("css selector", css)
    return found


def text(browser: Any, css: str) -> str:
    """Text of an element, empty where none is there; never of one just replaced."""
    script = "return document.querySelector(arguments[0])?.innerText ?? ''"
    return str(browser.execute_script(script, css))


def write(browser: Any, name: str, text: str) -> None:
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415

    box = find(browser, f"#{name}")
    # clear() would leave the field, which asks anew.
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(Keys.DELETE, text)


def awaited(browser: Any, holds: Callable[[], Any], why: str) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, (why, browser.current_url)
        time.sleep(0.05)


def answered(browser: Any, kind: str) -> None:
    css = f'[data-answered="{kind}"]'
    awaited(browser, lambda: seen(browser, css), f"no answer of {kind}")


def sound(browser: Any) -> None:
    """No console error, no overflow, no serious fault of accessibility."""
    time.sleep(0.3)
    assert browser.get_log("browser") == []
    script = "return document.documentElement.scrollWidth - innerWidth"
    assert browser.execute_script(script) <= 0
    browser.execute_script((files("axe_core_python") / "axe.min.js").read_text())
    assert browser.execute_async_script(AXE) == []


def go(browser: Any) -> None:
    click(browser, find(browser, "button.go"))


def click(browser: Any, button: Any) -> None:
    """A real click, where the window shows the element."""
    browser.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", button
    )
    button.click()


def restored(browser: Any, css: str) -> None:
    """A reload shows the same state."""
    before, words = browser.current_url, text(browser, css)
    browser.refresh()
    awaited(browser, lambda: seen(browser, css), "nothing after a reload")
    assert (browser.current_url, text(browser, css)) == (before, words)


def test_plan_with_live_progress(server: Served, look: Any) -> None:
    """Bound and incumbent close in; then the plan, its folder and its address."""
    look.get(server.base + "/")
    write(look, "model", "llama-3.1-70b")
    write(look, "on", "64xh100")
    click(look, find(look, "details.more summary"))
    batch = next(BATCHES)
    write(look, "global_batch", str(batch))
    go(look)
    states = set()

    def done() -> bool:
        states.add(tuple(look.execute_script(STATE)))
        return bool(seen(look, '[data-answered="plan"]'))

    awaited(look, done, "no plan")
    live = [state for state in states if state]
    assert len(live) >= 2
    assert any(best.endswith(" s") for best, *_ in live)
    assert "llama-3.1-70b" in text(look, "h2.verdict")
    assert f"--global-batch {batch}" in text(look, ".command code")
    awaited(look, lambda: all(look.execute_script(MARKS)), "charts without marks")
    second = seen(look, ".picks input")[1]
    click(look, second)
    shown = [part.get_attribute("id") for part in seen(look, ".picked:not([hidden])")]
    assert shown == [second.get_attribute("value")]
    sound(look)
    restored(look, "h2.verdict")
    folder = find(look, '.downloads a[href^="/plan.zip"]').get_attribute("href")
    with urllib.request.urlopen(folder) as sent:  # noqa: S310  # of our own server
        names = zipfile.ZipFile(io.BytesIO(sent.read())).namelist()
    assert "run/plan.json" in names


def test_a_wrong_field_is_marked_and_the_rest_kept(server: Served, look: Any) -> None:
    """By the form itself, and by the worker that looks the name up."""
    look.get(server.base + "/plan?model=llama-9-9b&on=8xh100&seq_len=1024")
    awaited(look, lambda: text(look, "#error-model"), "no fault")
    assert "did you mean" in text(look, "#error-model")
    assert find(look, "#model").get_attribute("aria-invalid") == "true"
    assert find(look, "#seq_len").get_attribute("value") == "1024"
    write(look, "model", "<script>alert(1)</script>")
    write(look, "on", "/etc/passwd")
    go(look)
    awaited(look, lambda: text(look, "#error-on"), "no fault of the GPUs")
    assert find(look, "#model").get_attribute("value") == "<script>alert(1)</script>"
    sound(look)


def test_knobs_leave_older_answers_beside_the_new(server: Served, look: Any) -> None:
    look.get(server.base + "/what-if?model=llama-3.2-1b&on=8xh100")
    awaited(look, lambda: len(seen(look, ".card")) == 1, "no answer")
    write(look, "count", "16")
    look.execute_script("arguments[0].blur()", find(look, "#count"))
    awaited(look, lambda: len(seen(look, ".card")) == 2, "no second answer")
    method = find(look, "#method")
    method.find_element("css selector", 'option[value="lora"]').click()
    awaited(look, lambda: len(seen(look, ".card")) == 3, "no third answer")
    assert "16 x h100" in text(look, ".card.newest h2")
    assert "lora" in text(look, ".card.newest h2")
    # On a busy machine a first answer may have no plan till its gap is closed.
    awaited(look, lambda: len(seen(look, ".beside-new")) == 2, "nothing beside it")
    assert "was=" in look.current_url
    restored(look, ".card.newest")
    assert len(seen(look, ".card")) == 3
    sound(look)


def test_compare_clusters(server: Served, look: Any) -> None:
    look.get(server.base + "/compare")
    write(look, "model", "llama-3.2-1b")
    for place, (gpus, price) in enumerate(
        (("8xh100", "2.5 USD/GPU-h"), ("8xh200", ""))
    ):
        write(look, f"on{place}", gpus)
        write(look, f"price{place}", price)
    write(look, "tokens", "20B")
    go(look)
    answered(look, "compare")
    assert "8xh100" in text(look, "#at-candidates")
    sound(look)
    restored(look, "h2.verdict")


def test_memory_by_method_and_moment(server: Served, look: Any) -> None:
    look.get(server.base + "/memory")
    write(look, "model", "llama-3.2-1b")
    write(look, "on", "2xh100")
    go(look)
    answered(look, "memory")
    assert "qlora" in text(look, "#at-methods")
    assert "micro-batch" in text(look, "#at-most")
    sound(look)
    restored(look, "h2.verdict")


def test_a_click_asks_why_not(server: Served, look: Any) -> None:
    look.get(server.base + "/explain?model=llama-3.2-1b&on=4xh100")
    answered(look, "explain")
    click(look, seen(look, ".whys a")[0])
    awaited(look, lambda: "layout=" in look.current_url, "no question")
    awaited(look, lambda: seen(look, "section#at-given"), "no judgement")
    assert "--layout " in text(look, ".command code")
    sound(look)
    restored(look, "h2.verdict")


def test_rows_are_held_against_predictions(server: Served, look: Any) -> None:
    look.get(server.base + "/rows")
    job, (rows, log) = find(look, ".of-log"), seen(look, ".kinds input")
    assert not job.is_displayed()
    click(look, log)
    assert job.is_displayed()
    click(look, rows)
    look.execute_script(
        "document.getElementById('content').value = arguments[0]", ROWS.read_text()
    )
    go(look)
    answered(look, "rows")
    assert "rows" in text(look, "h2.verdict") + text(look, ".eyebrow")
    sound(look)
    restored(look, "h2.verdict")


def test_a_closed_tab_frees_its_worker(server: Served, browser: Any) -> None:
    until(lambda: not server.workers(), "others work still")
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    browser.get(server.base + "/plan?model=deepseek-v3&on=2048xh100")
    until(lambda: bool(server.workers()), "no search")
    browser.close()
    browser.switch_to.window(first)
    until(lambda: not server.workers(), "a worker goes on for nobody")
