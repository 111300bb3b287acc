"""What is wrong in a row is refused with file, row and field; the others are kept."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from measured_rows import SAMPLE, changed
from typer.testing import CliRunner

from planner.calibration.rows.blocks import SoftwareBlock
from planner.calibration.rows.rows import Reading, Row, read_rows
from planner.cli.app import app

Read = Callable[..., Reading]
SOUND = changed(id="sound")
SHIPPED = Path(__file__).resolve().parents[3] / "benchmarks" / "accuracy" / "rows"

WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"normalised": {"fabric": "infinband"}}, "normalised.fabric", "infiniband"),
    ({"normalised": {"fabrik": "none"}}, "normalised.fabrik", "did you mean fabric"),
    ({"normalised": {"sharding": {"kind": "fsdp3"}}}, "sharding.kind", "fsdp"),
    ({"normalised": {"recompute": {"kind": "ful"}}}, "recompute.kind", "mean full"),
    ({"normalised": {"schedule": {"kind": "gpip"}}}, "schedule.kind", "1f1b"),
    ({"normalised": {"offload": {"optimiser": 1}}}, "offload.optimiser", "optimizer"),
    ({"normalised": {"recompute": {"modules": ["mpl"]}}}, "modules.0", "mlp"),
    ({"normalised": [1]}, "normalised", "a block of fields"),
    ({"software": {"loss": "compield"}}, "software.loss", "did you mean compiled"),
    ({"software": {"fp8": {"recipe": "rowise"}}}, "software.fp8.recipe", "rowwise"),
    ({"software": {"cuda_graph": "none"}}, "software.cuda_graph", "cuda_graphs"),
    ({"measured": {"step_time": 10.0}}, "measured.step_time", "mean step_time_s"),
    ({"job": {"sec_len": 4096}}, "job.sec_len", "did you mean seq_len"),
    ({"layout": {"pt": 2}}, "layout.pt", "did you mean tp"),
    ({"model": {"moe": {"expert": 8}}}, "model.moe.expert", "did you mean experts"),
    ({"chekc": "ok"}, "chekc", "did you mean check"),
    ({"measured": {"mfu": 7.5}}, "measured.mfu", "less than or equal to 1"),
    ({"measured": {"step_time_s": 1e-9}}, "measured.step_time_s", "1e-09"),
    ({"measured": {"step_time_s": float("inf")}}, "measured.step_time_s", "inf"),
    ({"measured": {"step_time_s": float("nan")}}, "measured.step_time_s", "nan"),
    ({"measured": {"tokens_per_s_per_gpu": 1e300}}, "tokens_per_s_per_gpu", "1e+300"),
    ({"job": {"global_batch": 10**18}}, "job.global_batch", "1000000"),
    ({"job": {"seq_len": 2**63}}, "job.seq_len", "less than or equal to"),
    ({"check": "okay"}, "check", "okay"),
    ({"layout": 3.5}, "layout", "a block of fields"),
]


def told(reading: Reading) -> str:
    assert [row.id for row in reading.rows] == ["sound"]
    (wrong,) = reading.invalid
    assert "\n" not in wrong.reason
    assert wrong.reason.startswith(wrong.file)
    return wrong.reason


@pytest.mark.parametrize(("broken", "field", "says"), WRONG)
def test_what_is_wrong_is_told_by_row_and_field(
    read: Read, broken: dict[str, Any], field: str, says: str
) -> None:
    row = changed(**{k: v for k, v in broken.items() if k != "layout"})
    if "layout" in broken:
        its = broken["layout"]
        row["layout"] = row["layout"] | its if isinstance(its, dict) else its
    if "sec_len" in row["job"]:
        del row["job"]["seq_len"]
    if "pt" in (row["layout"] if isinstance(row["layout"], dict) else ()):
        del row["layout"]["tp"]
    if "step_time" in row["measured"]:
        row["measured"].pop("step_time_s", None)
    reason = told(read(row, SOUND))
    assert ": mine: " in reason
    assert field in reason
    assert says in reason


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- {id: x, id: y}\n", "line 1: the key is given twice"),
        ("- id: x\n  job: {tp: 1, pp: 2, tp: 3}\n", "line 2: the key is given twice"),
        ("- id: [x\n", "line "),
        ("- id: *nobody\n", "undefined alias"),
        ("- 7\n", "row 1: is no block of fields"),
        ("- " + "[" * 5000 + "\n", "inside each other"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_an_item_that_is_no_yaml_ends_no_other(
    text: str, says: str, *, first: bool, tmp_path: Path
) -> None:
    sound = yaml.safe_dump([SOUND], sort_keys=False)
    (tmp_path / "r.yaml").write_text(text + sound if first else sound + text)
    reason = told(read_rows([tmp_path]))
    if first:
        assert says in reason
    else:
        assert says.partition(" ")[2].partition(": ")[2] in reason


def test_a_utilisation_in_per_cent_is_a_share(read: Read) -> None:
    row = read(changed(measured={"mfu": 45.0})).rows[0]
    assert row.measured.mfu == pytest.approx(0.45)


def test_further_keys_are_kept_and_told(read: Read) -> None:
    row = read(changed(layout={"colour": "red"}, weather="fine")).rows[0]
    assert set(row.unread) == {"layout.colour", "weather"}


def test_software_may_say_all_that_its_vocabulary_has(read: Read) -> None:
    said = {
        "version": "core 0.16",
        "attention": "cudnn",
        "compile": True,
        "gradients": {"accumulate": "fp32", "reduce": "bf16"},
        "moments": "8-bit",
        "tp_overlap": "userbuffers",
        "cuda_graphs": "full-iteration",
        "bucket_parameters": 200_000_000,
        "fp8": {"recipe": "delayed", "attention": True},
        "campaign": "mine",
    }
    row = read(changed(software=said)).rows[0]
    assert row.software == SoftwareBlock.model_validate(said)


def test_an_impossible_step_is_invalid_and_the_others_are_priced(
    tmp_path: Path,
) -> None:
    fast = changed(measured={"step_time_s": 0.001})
    file = tmp_path / "r.yaml"
    file.write_text(yaml.safe_dump([fast, SOUND]))
    done = CliRunner().invoke(app, ["validate", str(file), "--json", "-"])
    assert done.exit_code == 0, done.stderr
    first, second = json.loads(done.stdout)["rows"]
    assert (first["status"], second["status"]) == ("invalid", "ok")
    assert "measured.step_time_s" in first["reason"]
    words = ["calibrate", str(file), "--out", str(tmp_path / "mine.yaml")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.stderr
    assert "mine" in done.stdout


def test_a_broken_row_of_each_kind_ends_neither_command(tmp_path: Path) -> None:
    """Unreadable, illegal, unpriced and sound rows in one file."""
    illegal = changed(id="illegal", model={"heads": 15})
    unknown = changed(id="unknown", hardware={"gpu": "Abacus"})
    items = [illegal, unknown, changed(measured={"mfu": 7.5}), SOUND]
    file, out = tmp_path / "r.yaml", tmp_path / "mine.yaml"
    file.write_text("- {id: a, id: b}\n" + yaml.safe_dump(items))
    done = CliRunner().invoke(app, ["validate", str(file), "--json", "-"])
    statuses = {row["id"]: row["status"] for row in json.loads(done.stdout)["rows"]}
    assert statuses == {
        "illegal": "unsupported",
        "unknown": "unsupported",
        "sound": "ok",
        "mine": "invalid",
        "": "invalid",
    }
    done = CliRunner().invoke(app, ["calibrate", str(file), "--out", str(out)])
    assert done.exit_code == 0, done.stderr
    assert yaml.safe_load(out.read_text())["stacks"][0]["rows"] == 1


def every_key(model: type, inside: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        inner = getattr(field.annotation, "model_fields", None)
        if inner is not None:
            yield from every_key(field.annotation, (*inside, name))
        else:
            yield (*inside, name)


KEYS = [path for path in every_key(Row) if path[-1] not in ("file", "unread")]


@given(st.sampled_from(KEYS), st.integers(0, 2**32))
def test_a_key_with_two_letters_swapped_is_never_kept(
    path: tuple[str, ...], seed: int
) -> None:
    *blocks, key = path
    letters = list(key)
    at = seed % (len(key) - 1)
    letters[at : at + 2] = letters[at + 1], letters[at]
    odd = "".join(letters)
    if odd == key:
        return
    row = copy.deepcopy(changed())
    block = row
    for name in blocks:
        block = block.setdefault(name, {})
    value = block.pop(key, 1)
    block[odd] = value
    from planner.calibration.rows.rows import _row  # noqa: PLC0415

    told = _row(Path("mine.yaml"), 1, row)
    assert not isinstance(told, Row), odd
    assert odd in told.reason or key in told.reason


@pytest.mark.parametrize(
    "folder", [SAMPLE, pytest.param(SHIPPED, marks=pytest.mark.slow)]
)
def test_every_shipped_row_says_only_known_words(folder: Path) -> None:
    reading = read_rows([folder])
    assert reading.invalid == ()
    assert {key for row in reading.rows for key in row.unread} == set()
