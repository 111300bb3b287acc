"""Claims of plans over tuned runs: pairs, reasons, and the pages made from the CSV."""

from pathlib import Path

from benchmarks.accuracy import claims
from benchmarks.accuracy.claims import Claim, best_measured, is_open, why


def claim(name: str, measured: float, planned: float, **fields: object) -> Claim:
    """A row that is predicted as 10 s."""
    known: dict[str, object] = {
        "id": name,
        "source": "s",
        "job": "a job",
        "layout": "tp8 mb1 z1",
        "plan": "tp4 mb2 z1",
        "status": "optimal",
        "measured_s": measured,
        "predicted_s": 10.0,
        "planned_s": planned,
        "memory": 0.5,
    }
    return Claim(**(known | fields))  # type: ignore[arg-type]


def test_a_faster_measured_layout_bears_a_claim_out() -> None:
    slow, fast = claim("slow", 12.0, 7.5), claim("fast", 9.0, 9.5)
    other = claim("other", 5.0, 9.0, job="another job")
    best = best_measured([slow, fast, other])
    assert best == {"a job": 9.0, "another job": 5.0}
    # 25 % are claimed, of which a measured layout had 25 %; 33 % are 8 more.
    assert not is_open(slow, best)
    assert not is_open(claim("slow", 12.0, 6.8), best)
    assert is_open(claim("slow", 12.0, 6.6), best)
    assert is_open(claim("fast", 9.0, 9.1), best)
    assert why(slow, best) == "a faster layout of the job was measured"


def test_a_row_without_a_step_has_no_measured_pair() -> None:
    row, fast = claim("oom", 0.0, 7.5), claim("fast", 9.0, 9.5)
    assert is_open(row, best_measured([row, fast]))


def test_a_plan_that_fills_the_memory_is_named() -> None:
    row = claim("no such row", 9.0, 8.0, memory=0.95, source="nowhere")
    assert why(row, {"a job": 9.0}) == "the plan fills over 90% of the memory"
    assert why(claim("no such row", 9.0, 8.0), {"a job": 9.0}) == "not understood"


def test_claims_survive_the_round_trip(tmp_path: Path) -> None:
    file = tmp_path / "claims.csv"
    rows = [claim("one", 9.0, 8.0), claim("two", 0.0, 10.0, memory=0.0)]
    claims.write(file, rows)
    assert claims.read(file) == rows


def test_the_pages_are_those_of_the_recorded_claims() -> None:
    assert claims.PAGE.read_text() == claims.page(claims.read(claims.CSV))
    assert claims.claims_section() in claims.README.read_text()


def test_every_large_claim_has_a_reason() -> None:
    rows = claims.read(claims.CSV)
    best = best_measured(rows)
    large = [row for row in rows if row.gain > claims.LARGE]
    unexplained = [row.id for row in large if why(row, best) == "not understood"]
    assert unexplained == []
