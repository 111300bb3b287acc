"""`planner compare` prints, writes JSON, keeps what is done, and refuses clearly."""

import json
import socket
from pathlib import Path

import pytest
from purchases import CANDIDATES, JOB, up_to, written
from typer.testing import CliRunner
from typer.testing import Result as Run

from planner.cli import app
from planner.planning.comparison.entries import purchases
from planner.specs.reading.read import read_mapping

BAD_INPUT, OUT_OF_TIME = 2, 4
FIXED = [{**candidate, "nodes": 1} for candidate in CANDIDATES]


@pytest.fixture(autouse=True)
def _one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny candidates are planned here, not in processes of their own."""
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")


def run(*arguments: object) -> Run:
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


def test_json_has_the_fields_of_the_schema(tmp_path: Path) -> None:
    done = run(written(tmp_path, candidates=FIXED), "--json", "-")
    answer = json.loads(done.stdout)
    assert answer["schema"] == "planner/comparison@1"
    fields = {"name", "status", "plan", "gpus", "time_to_train_s", "cost_usd"}
    for one in answer["candidates"]:
        assert fields | {"energy_mwh", "pareto"} <= one.keys()
        assert one["plan"]["layout"]["dp"] == 8
    assert done.stderr == ""


@pytest.mark.slow
def test_the_report_says_what_people_ask(tmp_path: Path) -> None:
    done = run(written(tmp_path, candidates=up_to(4)), "--deadline", "9 h")
    text = " ".join(done.stdout.split())
    for part in ("Candidates", "time to train", "tokens/USD", "Plans", "gap"):
        assert part in text
    for part in ("the smallest that takes no more than 9.00 h", "What the next dollar"):
        assert part in text
    assert "each candidate; the gap says" in text


@pytest.mark.slow
@pytest.mark.parametrize("has_layout", [False, True])
def test_jobs_are_compared_on_their_own_clusters(
    tmp_path: Path, *, has_layout: bool
) -> None:
    """Two SPECs; what tells the jobs apart is said, and that layouts play no part."""
    for name, batch in (("one", 96), ("two", 192)):
        job = {**JOB, "training": {**JOB["training"], "global_batch": batch}}
        job |= {"layout": {"dp": 8}} if has_layout else {}
        cluster = {"name": name, "node": "dgx-h100", "nodes": 1}
        (tmp_path / f"{name}.yaml").write_text(json.dumps({**job, "cluster": cluster}))
    text = " ".join(run(tmp_path / "one.yaml", tmp_path / "two.yaml").stdout.split())
    assert "the jobs differ in sequences a step: 96, 192" in text
    assert ("the layout of one, two is not compared" in text) == has_layout


@pytest.mark.slow
def test_a_deadline_turns_the_file_round(tmp_path: Path) -> None:
    """The budget of the file stays as a check."""
    file = written(tmp_path, candidates=up_to(4)[:1], budget="1 kUSD")
    done = run(file, "--deadline", "20 h", "--json", "-")
    (one,) = json.loads(done.stdout)["candidates"]
    assert one["meets_deadline"]
    assert one["within_budget"]
    assert one["time_to_train_s"] <= 72_000


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"budget": "100 M"}, "M is no unit here"),
        ({"budget": "100"}, "units are USD, kUSD, MUSD"),
        ({"budget": "0 USD"}, "buys nothing"),
        ({"deadline": 60}, "units are s,"),
        ({"candidates": [{**FIXED[0], "price": "2.5"}]}, "currency and basis"),
        ({"candidates": [{**FIXED[0], "price": "-2 USD/GPU-h"}]}, "negative"),
        ({"candidates": [{**FIXED[0], "price": "2 EUR/GPU-h"}]}, "prices are in USD"),
        ({"candidates": [{"cluster": "dgx-h100-superpood"}]}, "dgx-h100-superpod"),
        ({"candidates": [{"cluster": {"node": "dgx-h1000"}, "nodes": 1}]}, "dgx-h100"),
        ({"candidates": [{"cluster": {"node": "dgx-h100"}}]}, "how many nodes"),
        ({"candidates": [FIXED[0], FIXED[0]]}, "two candidates have this name"),
        ({"candidates": []}, "candidates"),
        ({"job": "llama-3.1-405b-16k-h10"}, "llama-3.1-405b-16k-h100"),
        ({"budjet": "1 MUSD"}, "budget"),
    ],
)
def test_bad_input_is_one_message(
    tmp_path: Path, fields: dict[str, object], said: str
) -> None:
    done = run(written(tmp_path, **{"candidates": FIXED, **fields}))
    assert done.exit_code == BAD_INPUT, done.output
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--deadline", "60"), "--deadline: 60 is not a number and a unit"),
        (("--deadline", "0 d"), "--deadline: has to be more than 0"),
        (("--budget", "-5 MUSD"), "--budget: -5 MUSD is negative"),
        (("--deadline", "1 s"), "deadline: no candidate meets it"),
        (("--budget", "1 USD"), "budget: no candidate has a node for this budget"),
        (("--fall-back",), "--fall-back: goes with --scheduler"),
    ],
)
def test_a_bad_option_is_one_message(
    tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    done = run(written(tmp_path, candidates=up_to(2)), *options)
    assert done.exit_code == BAD_INPUT, done.output
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_time_limit_leaves_open_what_it_ends(tmp_path: Path) -> None:
    """No verdict on what was not looked at; more time is what the message asks for."""
    file = written(tmp_path, candidates=up_to(4))
    done = run(file, "--deadline", "9 h", "--time-limit", "0", "--json", "-")
    assert done.exit_code == OUT_OF_TIME, done.output
    assert "--time-limit" in done.stderr
    answer = json.loads(done.stdout)
    assert answer["best"] == ""
    for one in answer["candidates"]:
        assert not one["settled"]
        assert one["status"] == "unknown"


def test_a_purchase_stands_alone(tmp_path: Path) -> None:
    done = run(written(tmp_path), "llama-3.1-405b-16k-h100")
    assert done.exit_code == BAD_INPUT
    assert "a purchase file stands alone" in done.stderr


def test_an_unknown_file_names_the_nearest() -> None:
    done = run("405b-100-milion-usd")
    assert done.exit_code == BAD_INPUT
    assert "405b-100-million-usd" in done.stderr


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_one_message(tmp_path: Path) -> None:
    """Dask that is not installed is one as well."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    done = run(written(tmp_path, candidates=FIXED), "--scheduler", address)
    assert done.exit_code == BAD_INPUT
    assert "--scheduler" in done.stderr
    assert address in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_every_shipped_purchase_is_read() -> None:
    """Each has the six kinds of hardware, each price a source."""
    assert "405b-100-million-usd" in purchases()
    for path in purchases().values():
        fields = read_mapping(path)
        assert len(fields["candidates"]) >= 2
        assert all(one["source"] for one in fields["candidates"] if "price" in one)


def test_one_line_compares_gpus_without_a_file() -> None:
    line = ("--model", "llama-3.2-1b", "--method", "lora", "--tokens", "20M")
    done = run(*line, "--on", "1x4090", "--on", "1xl40s")
    text = " ".join(done.stdout.split())
    assert done.exit_code == 0, done.output
    for part in ("20M tokens", "1x4090", "1xl40s", "on 1 GPU:", "kWh"):
        assert part in text
    assert "adapters of rank 16" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no job is given"),
        (("--model", "llama-3.2-1b"), "no job is given"),
        (("70b-one-month", "--on", "1xl40s"), "--on: goes without a SPEC"),
        (("--model", "llama-3.2-1b", "--on", "1xzzz"), "--on"),
    ],
)
def test_half_a_line_is_refused(arguments: tuple[str, ...], words: str) -> None:
    done = run(*arguments)
    assert done.exit_code == BAD_INPUT
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 6
