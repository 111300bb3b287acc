"""Names that are alike are found, the nearest first, and no others."""

from planner.hardware.reading.nearest import alike, nearest

KNOWN = ("h100-sxm", "h100-pcie", "h200-sxm", "h100-nvl", "mi300x")


def test_at_most_three_names_are_alike_and_the_nearest_comes_first() -> None:
    found = alike("h100-sxn", KNOWN)
    assert found[0] == nearest("h100-sxn", KNOWN) == "h100-sxm"
    assert len(found) == 3
    assert "mi300x" not in found


def test_a_name_that_is_like_none_has_no_nearest() -> None:
    assert nearest("abacus", KNOWN) is None
    assert nearest("h100", KNOWN, cutoff=0.9) is None
