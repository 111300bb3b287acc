"""What is kept of each measurement, and the bars beside it."""

import json
from pathlib import Path

from benchmarks.search.cases import of_the_page
from benchmarks.search.results import KEYS, keep, known
from benchmarks.search.shown import bars

LLAMA = ("llama-3.1-405b-16k-h100", "default")


def row(job: str, space: str, **fields: object) -> dict[str, object]:
    return {"job": job, "space": space, "peak_mib": 1000.0, **fields}


def test_a_new_measurement_replaces_the_old_one_of_its_case(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    keep("cases", [row("a", "default", gap=1.0), row("a", "full", gap=2.0)], path)
    keep("cases", [row("a", "default", gap=3.0)], path)
    keep("growth", [{"along": "GPUs", "value": 8}], path)
    gaps = [one["gap"] for one in known(path)["cases"]]
    assert (gaps, known(path)["growth"]) == (
        [3.0, 2.0],
        [{"along": "GPUs", "value": 8}],
    )
    assert set(json.loads(path.read_text())) == set(KEYS)


def met(**fields: object) -> str:
    """Whether the first bar, of a proof in 10 s, is met."""
    return bars.BARS[0].cells([row(*LLAMA, **fields)])[-1]


def test_a_bar_is_met_up_to_its_figure() -> None:
    assert (met(proof_s=10.0), met(proof_s=10.1), met(proof_s=None)) == (
        "yes",
        "no",
        "no",
    )


def test_the_bar_on_a_gap_looks_at_the_sixtieth_second() -> None:
    closes = [[1.0, 10.0, 9.0], [59.0, 10.0, 9.96], [61.0, 10.0, 10.0]]
    full = row(LLAMA[0], "full", series=closes)
    assert bars.BARS[1].cells([full])[-2:] == ("0.40%", "yes")
    assert bars.BARS[1].cells([full | {"series": closes[:1]}])[-2:] == ("10.00%", "no")


def test_the_bar_on_memory_is_on_the_most_of_all() -> None:
    rows = [row("a", "full", peak_mib=1900.0), row("b", "full", peak_mib=1910.0)]
    assert bars.cells(rows)[-1][0] == "b"
    assert [bars.cells(rows[:n])[-1][-1] for n in (1, 2)] == ["yes", "no"]


def test_every_bar_is_on_a_case_of_the_page() -> None:
    cases = {(case.job, case.space) for case in of_the_page()}
    assert {(bar.job, bar.space) for bar in bars.BARS} <= cases
