"""Pairs of layouts in the measured order, by hand."""

from benchmarks.accuracy.order import by_difference
from planner.calibration.accuracy.outcome import Outcome


def sweep(*steps: tuple[float, float]) -> list[Outcome]:
    """Layouts of one job, each with a predicted and a measured step."""
    return [
        Outcome(
            id=f"{n}", file="a.yaml", source="a", status="ok", sweep="job",
            layout=f"tp{n}", predicted_step_s=predicted, measured_step_s=measured,
        )
        for n, (predicted, measured) in enumerate(steps)
    ]  # fmt: skip


def test_pairs_fall_into_the_class_of_their_measured_difference() -> None:
    """Against 10 s: 2, 4 and 25 %, the last the wrong way round."""
    found = by_difference(sweep((1.0, 10.0), (2.0, 10.2), (3.0, 10.4), (0.5, 12.5)))
    assert found == [
        ("over 3% to 5%", 1, 1.0),
        ("over 5% to 10%", 0, None),
        ("over 10% to 20%", 0, None),
        ("over 20%", 3, 0.0),
    ]
