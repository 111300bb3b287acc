"""Numbers of the catalog agree with each other; a slip in any of them is found."""

from pathlib import Path

import pytest

from planner.hardware.checks import findings, standings
from planner.hardware.overlay import laid_over
from planner.hardware.reading import files
from planner.hardware.reading.files import SHIPPED


def lay(folder: Path, kind: str, name: str, old: str, new: str) -> list[str]:
    """Findings without a reason when a line of our own file is changed."""
    text = (files.folder(kind) / f"{name}.yaml").read_text()
    assert old in text
    (folder / kind).mkdir()
    (folder / kind / f"{name}.yaml").write_text(text.replace(old, new, 1))
    return deviations(folder)


def deviations(folder: Path) -> list[str]:
    every = findings(laid_over(folder))
    return [f"{one.name} {one.field}" for one in every if not one.reason]


def test_nothing_deviates_without_a_reason() -> None:
    assert [one for one in findings(SHIPPED) if not one.reason] == []


@pytest.mark.parametrize(
    ("name", "old", "new", "field"),
    [
        ("h800-sxm5-80gb", "tf32: 494.5", "tf32: 454.5", "peak_tf32"),
        ("h800-sxm5-80gb", "fp32: 67", "fp32: 59.3", "peak_fp32"),
        ("l4", "sm_count: 58", "sm_count: 60", "boost_clock"),
        ("l4", "bandwidth: 300", "bandwidth: 320", "memory_bandwidth"),
        ("l4", "peak_fp8: 242", "peak_fp8: 300", "peak_fp8/peak_bf16"),
        ("l4", "tdp: 72 W", "tdp: 720 W", "tdp"),
        ("l4", "tdp: 72 W", "tdp: 7.2 W", "tdp"),
        ("b300-sxm-288gb", "fp4: 12600", "fp4: 9000", "peak_fp4/peak_fp8"),
    ],
)
def test_a_wrong_number_of_a_gpu_is_found(
    tmp_path: Path, name: str, old: str, new: str, field: str
) -> None:
    assert f"{name} {field}" in lay(tmp_path, "gpus", name, old, new)


def test_a_wrong_rate_of_a_link_is_found(tmp_path: Path) -> None:
    slow = "{name: nvlink4-slow, kind: scale-up, bandwidth: 360 GB/s, links: 18, "
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "nvlink4-slow.yaml").write_text(
        slow + "per_link: 20 GB/s, sources: {'*': here}}"
    )
    assert deviations(tmp_path) == ["nvlink4-slow per_link"]


def test_a_quote_far_from_the_others_is_found(tmp_path: Path) -> None:
    found = lay(tmp_path, "prices", "gb300-279gb", "price: 18 USD", "price: 180 USD")
    assert found == ["gb300-279gb rental"]


def test_every_gpu_has_a_standing_and_weak_prices_say_why() -> None:
    every = {one.name: one for one in standings(SHIPPED)}
    assert set(every) == set(SHIPPED.names("gpus"))
    assert every["h100-sxm5-80gb"].note == ""
    assert every["gaudi2"].note == "no quote"
    assert every["h800-sxm5-80gb"].note == "fewer than 3 quotes, none of 2026"
