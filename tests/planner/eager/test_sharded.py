"""Replays of one rank among many agree with PyTorch's own trackers, phase by phase."""

from functools import cache

import pytest
from each import each
from memory_cases import cases, golden

from planner.eager import Replay, replay

CASES = cases("sharded/")
TRUTHS = golden("sharded/")

NEAR = {
    "x03_gemma3_zero3_full": "angles that no block of so small a model reads",
    "x16_gemma_pp3_s0": "one gradient of the stream less is held, of three",
}
"""Phases within 0.2 % rather than to the byte, and by what."""


@cache
def told_of(name: str) -> Replay:
    """The replay of a case, once."""
    return replay(CASES[name])


def test_every_case_has_its_truth() -> None:
    assert CASES.keys() == TRUTHS.keys()


@each("name", TRUTHS)
def test_every_phase_peaks_where_the_tracker_says(name: str) -> None:
    """To two of the allocator's smallest blocks."""
    phases = {phase: peak.total for phase, peak in told_of(name).phases.items()}
    near = {"rel": 2e-3} if name in NEAR else {"rel": 0, "abs": 1024}
    assert phases == pytest.approx(TRUTHS[name]["phase_peak_total"], **near)


@each("name", TRUTHS)
def test_the_peak_is_in_the_tracked_phase(name: str) -> None:
    assert told_of(name).phase == TRUTHS[name]["peak_phase"]


@each("name", TRUTHS)
def test_parameters_are_those_of_all_ranks(name: str) -> None:
    """A rank's shards are counted in the model's own numbers."""
    told, truth = told_of(name), TRUTHS[name]
    counted = (told.parameters, told.trainable)
    assert counted == (truth["n_params"], truth["n_trainable"])


@each("name", TRUTHS)
def test_what_a_peak_is_made_of_sums_to_it(name: str) -> None:
    for peak in told_of(name).phases.values():
        assert sum(peak.by_category.values()) == peak.total


@each("name", [n for n in TRUTHS if "zero" in n])
def test_shards_and_their_states_are_what_the_tracker_counts(name: str) -> None:
    told, truth = told_of(name).peak.by_category, TRUTHS[name]["peak"]
    for category in ("params", "optimizer"):
        assert told.get(category, 0) == truth[category]
