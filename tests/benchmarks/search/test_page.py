"""The page: every table from rows, whole or not, and the part beside Calculon."""

import pytest

from benchmarks.search.cases import BESIDE_CALCULON
from benchmarks.search.peers import beside
from benchmarks.search.peers.held import Held
from benchmarks.search.shown.page import page

ON_A_MACHINE = {"machine": "2026-11-21, a machine", "peak_mib": 1500.0}
PROVEN = {
    "job": BESIDE_CALCULON,
    "space": "full",
    "status": "optimal",
    "candidates": 123_456,
    "priced": 123_456,
    "solved": 7,
    "gap": 0.0,
    "step_s": 9.0,
    "first_plan_s": 1.5,
    "proof_s": 4.0,
    "process_s": 5.0,
    "cpu_s": 4.5,
    "phases_s": {"import": 1.0},
    "series": [[1.0, None, 8.0], [2.5, 10.0, 8.0], [4.0, 9.0, 9.0]],
    **ON_A_MACHINE,
}
FAILED = {
    "job": "moe-2t-100k-gb200",
    "space": "default",
    "status": "failed",
    "error": "MemoryError",
    "process_s": 3.0,
    **ON_A_MACHINE,
}
GROWTH = [
    {**PROVEN, "along": "GPUs", "value": 512 * 2**k, "search_s": 2.0**k}
    for k in range(3)
]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> str:
    """A page of two cases and three points; Calculon's space counted before."""
    found = {"none": Held(10, 8, 10, 8, 4), "optimizer": Held(20, 16, 5, 4, 2)}
    monkeypatch.setattr(beside, "_found", lambda: (found, Held(100, 50, 70, 40, 9)))
    return page({"cases": [FAILED, PROVEN], "growth": GROWTH})


def test_the_page_tells_date_machine_and_command(shown: str) -> None:
    assert "2026-11-21, a machine (5 rows)" in shown
    assert "python -m benchmarks.search --all --full --growth --write" in shown


def test_a_case_has_its_gap_at_every_moment(shown: str) -> None:
    gaps = "none | none | 0.00% | 0.00% | 0.00% | 0.00% | 0.00% | 0.00%"
    assert f"| {BESIDE_CALCULON} | full | {gaps} |" in shown


def test_a_failure_stands_on_the_page_and_misses_its_bar(shown: str) -> None:
    assert "| moe-2t-100k-gb200 | default | MemoryError | none |" in shown
    missed = "first plan | at most 10.0 s | none | no |"
    assert f"| moe-2t-100k-gb200 | default | {missed}" in shown


def test_growth_has_its_powers(shown: str) -> None:
    assert "Fitted powers of the number of GPUs: candidates 0.00" in shown
    assert "whole search 1.00" in shown
    assert "Against layers: not measured yet." in shown


def test_calculon_stands_beside_our_search(shown: str) -> None:
    assert "| optimizer | 20 | 16 | 5 | 2 | the framework updates" in shown
    assert "| all | 30 | 24 | 15 | 6 |" in shown
    assert "| ours, full space | 123,456 | 4.0 s to the proof | 0.00% |" in shown
    assert "| Calculon, no offload | 158,752 | 4.6 min on 2 cores |" in shown


def test_what_is_not_measured_is_named(shown: str) -> None:
    waiting = shown.rpartition("Not measured yet:")[2]
    assert "deepseek-v3-2048-h800 (full)" in waiting
    assert "moe-2t-100k-gb200 (default)" not in waiting
