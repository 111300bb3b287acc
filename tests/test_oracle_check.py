"""benchmarks/memory/oracle_check.py, as people run it."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

SCRIPT = Path(__file__).resolve().parents[1] / "benchmarks/memory/oracle_check.py"
MODEL = {
    "family": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 500,
}


def run(*arguments: str) -> int:
    main = runpy.run_path(str(SCRIPT))["main"]
    code: int = main(list(arguments))
    return code


def written(folder: Path, cases: Any, results: Any) -> tuple[str, str]:
    """Files of cases and results."""
    first, second = folder / "cases.yaml", folder / "results.json"
    first.write_text(yaml.safe_dump(cases))
    second.write_text(json.dumps(results))
    return str(first), str(second)


def checked(folder: Path, cases: Any, results: Any) -> dict[str, Any]:
    """The JSON report over some cases."""
    out = folder / "out.json"
    assert run(*written(folder, cases, results), "--json", str(out)) == 0
    told: dict[str, Any] = json.loads(out.read_text())
    return told


@pytest.mark.slow
def test_the_golden_cases_are_within_one_percent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    here = SCRIPT.parent
    files = (str(here / "cases.yaml"), str(here / "golden.json"))
    assert run(*files, "--json", "-") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["within_1pct"], told["within_3pct"], told["unsupported"]) == (
        71,
        71,
        0,
    )
    assert set(told["cases"][0]) == {
        "name",
        "predicted_gib",
        "golden_gib",
        "error",
        "status",
        "reason",
    }


def test_errors_are_counted_by_size(tmp_path: Path) -> None:
    cases = {"models": {"m": MODEL}, "cases": {"a": {"model": "m", "seq": 64}}}
    truth = {"a": {"peak": {"total": 1}}}
    total = checked(tmp_path, cases, truth)["cases"][0]["predicted_gib"] * 2**30
    for factor, counts in ((1.005, (1, 1)), (1.02, (0, 1)), (1.2, (0, 0))):
        told = checked(tmp_path, cases, {"a": {"peak": {"total": total * factor}}})
        assert (told["within_1pct"], told["within_3pct"]) == counts
        assert told["cases"][0]["error"] == pytest.approx(1 / factor - 1, abs=1e-4)


def test_what_cannot_be_priced_has_its_reason(tmp_path: Path) -> None:
    cases = {
        "cases": {
            "family": {"model": {**MODEL, "family": "t5"}},
            "field": {"model": MODEL, "precision": "int3"},
            "crashed": {"model": MODEL, "seq": 64},
            "untold": {"model": MODEL, "seq": 64},
        }
    }
    told = checked(tmp_path, cases, {"crashed": {"error": "no kernel"}})
    assert told["unsupported"] == 4
    reasons = {row["name"]: row["reason"] for row in told["cases"]}
    assert "t5" in reasons["family"]
    assert "precision" in reasons["field"]
    assert "no kernel" in reasons["crashed"]
    assert reasons["untold"] == "no golden result"


def test_depth_can_be_set_beside_the_model(tmp_path: Path) -> None:
    shallow = {"model": {**MODEL, "num_hidden_layers": 1}, "seq": 64}
    cases = {"cases": {"a": {"model": MODEL, "seq": 64, "layers": 1}, "b": shallow}}
    first, second = checked(tmp_path, cases, {})["cases"]
    assert first["predicted_gib"] == second["predicted_gib"]


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        ("cases: [", "not well formed"),
        ("models: {}", "cases: a map from names to cases is missing"),
        ("cases: {a: {seq: 3}}", "cases.a: no model"),
        ("cases: {a: {model: m}}", "unknown model 'm'"),
    ],
)
def test_a_broken_file_is_one_message_and_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cases: str, words: str
) -> None:
    file, results = tmp_path / "cases.yaml", tmp_path / "results.json"
    file.write_text(cases)
    results.write_text("{}")
    assert run(str(file), str(results)) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1


def test_a_missing_file_is_one_message_and_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(str(tmp_path / "none.yaml"), str(tmp_path / "none.json")) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_table_ends_with_the_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = {"cases": {"a": {"model": MODEL, "seq": 64}}}
    assert run(*written(tmp_path, cases, {"a": {"peak": {"total": 5}}})) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].split() == ["case", "predicted", "golden", "error", "GiB"]
    assert out[-1] == "1 cases: 0 within 1 %, 0 within 3 %, 0 unsupported"
