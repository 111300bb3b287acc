"""The catalog shows everything that is known, with units, marks and sources."""

import json
from pathlib import Path

import pytest
from each import each
from typer.testing import CliRunner

from planner.cli import app
from planner.hardware.reading.files import SHIPPED, folder
from planner.report.catalog import KINDS, kind_names

ENTRIES = [(kind, name) for kind in KINDS for name in kind_names(kind, SHIPPED)]


def shown(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["catalog", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_overview_names_everything() -> None:
    text = shown()
    assert [name for _, name in ENTRIES if name not in text] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_a_row_for_each_of_its_names(kind: str) -> None:
    rows = [line.split()[0] for line in shown(kind).splitlines() if line.strip()]
    assert [name for name in kind_names(kind, SHIPPED) if name not in rows] == []


@pytest.mark.slow
@each(("kind", "name"), ENTRIES[::10])
def test_an_entry_shows_its_name_and_its_json_holds_it(kind: str, name: str) -> None:
    check_entry(kind, name)


@pytest.mark.slow
@each(("kind", "name"), ENTRIES)
def test_every_entry_shows_its_name(kind: str, name: str) -> None:
    check_entry(kind, name)


def check_entry(kind: str, name: str) -> None:
    assert name in shown(kind, name)
    (entry,) = json.loads(shown(kind, name, "--json", "-"))[kind]
    assert entry["name"] == name


def test_numbers_are_in_natural_units_and_unverified_ones_are_marked() -> None:
    text = shown("gpus")
    assert "[GiB]" in text
    row = next(line for line in text.splitlines() if line.startswith("h100-sxm5"))
    assert row.split()[1:] == ["hopper", "79.647", "?", "3,350", "989", "1,979", "700"]


def test_one_gpu_shows_the_source_of_its_numbers() -> None:
    text = shown("gpus", "h100-sxm5-80gb")
    row = next(line for line in text.splitlines() if line.startswith("memory_capacity"))
    assert "79.647 GiB" in row
    assert "nvidia-smi" in row


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["gpu"], ["'gpu'", "did you mean gpus?", "frameworks"]),
        (["gpus", "h100-sxm5"], ["'h100-sxm5'", "h100-sxm5-80gb"]),
        (["models", "llama-3.1-40b"], ["did you mean llama-3.1-405b"]),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(
    arguments: list[str], fragments: list[str]
) -> None:
    done = CliRunner().invoke(app, ["catalog", *arguments])
    assert done.exit_code == 2
    assert [f for f in fragments if f not in done.stderr] == []


def test_a_gpu_shows_what_it_reaches_and_what_is_a_relatives() -> None:
    text = " ".join(shown("gpus", "rtx-4090").split())
    assert "reached bf16 92.5% of peak" in text
    assert "reached ring 10 GB/s" in text
    assert "transferred attention l40s times 0.5411" in text


LINK = "{name: my-link, kind: host, bandwidth: %s, sources: {'*': here}}"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "links").mkdir()
    return tmp_path


def test_own_hardware_is_listed_with_ours_for_one_run(own: Path) -> None:
    (own / "links" / "my-link.yaml").write_text(LINK % "5 GB/s")
    names = shown("links", "--hardware", str(own))
    assert "my-link" in names
    assert "nvlink4" in names
    assert "my-link" not in shown("links")


@pytest.mark.parametrize(
    "command",
    [
        ["catalog", "links"],
        ["predict", "llama-3-8b-8-a100", "--layout", "tp=2"],
        ["plan", "llama-3-8b-8-a100"],
    ],
    ids=lambda command: command[0],
)
def test_wrong_own_hardware_is_refused_with_file_and_field(
    own: Path, command: list[str]
) -> None:
    (own / "links" / "my-link.yaml").write_text(LINK % "5 GHz")
    done = CliRunner().invoke(app, [*command, "--hardware", str(own)])
    assert done.exit_code == 2
    assert "--hardware: " in done.stderr
    assert "my-link.yaml: bandwidth: GHz is no unit here" in done.stderr


def test_a_job_is_priced_on_own_hardware(own: Path) -> None:
    """The same GPU at half its peak takes longer."""
    (own / "gpus").mkdir()
    ours = Path(__file__).parents[3] / "hardware" / "gpus" / "a100-sxm4-80gb.yaml"
    slow = ours.read_text().replace("312 TFLOP/s", "156 TFLOP/s")
    (own / "gpus" / "a100-sxm4-80gb.yaml").write_text(slow)

    def step(*options: str) -> float:
        job = ["predict", "llama-3-8b-8-a100", "--layout", "tp=2", "--json", "-"]
        done = CliRunner().invoke(app, [*job, *options])
        assert done.exit_code == 0, done.output
        seconds: float = json.loads(done.stdout)["estimate"]["step_time_s"]["value"]
        return seconds

    assert step("--hardware", str(own)) > 1.3 * step()


def test_the_check_of_our_catalog_passes_and_tells_the_prices() -> None:
    text = shown("--check")
    assert "0 deviations without a reason" in text
    assert "gb200-186gb" in text
    data = json.loads(shown("--check", "--json", "-"))
    assert (data["schema"], data["deviations"]) == ("planner/catalog-check@1", [])


def test_a_catalog_with_a_wrong_number_fails_its_check(tmp_path: Path) -> None:
    text = (folder("gpus") / "l4.yaml").read_text()
    (tmp_path / "gpus").mkdir()
    (tmp_path / "gpus" / "l4.yaml").write_text(text.replace(": 300 GB/s", ": 350 GB/s"))
    done = CliRunner().invoke(app, ["catalog", "--check", "--hardware", str(tmp_path)])
    assert done.exit_code == 2
    assert "gpus l4, memory_bandwidth: 350 GB/s" in done.stdout
