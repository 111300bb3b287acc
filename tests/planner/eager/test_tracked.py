"""Replays agree with PyTorch's own trackers, phase by phase."""

from functools import cache

import pytest
from each import each
from memory_cases import cases, golden

from planner.eager import EagerCase, Replay, replay

CASES = {**cases(""), **cases("more/")}
TRUTHS = {**golden(""), **golden("more/")}
HALVES = [
    set(list(TRUTHS)[::2]),
    pytest.param(set(list(TRUTHS)[1::2]), marks=pytest.mark.slow),
]
"""Every second case is of the first line, the others are for the gate."""
LOOSE = {"g01_llama8b_pp4_s0": 1e-3, "g04_llama8b_pp4_s0_full": 1e-3}
"""A first stage's other micro-batches: within 0.1 %."""


@cache
def told_of(name: str) -> Replay:
    """The replay of a case, once."""
    return replay(CASES[name])


def alone(case: EagerCase) -> bool:
    """Whether one GPU does the whole work, which is tracked to the byte."""
    return case.zero == 0 and case.tp == 1 and case.pp == 1


@pytest.mark.slow
@pytest.mark.parametrize("half", HALVES, ids=["first", "second"])
@each("name", TRUTHS)
def test_the_peak_is_the_tracked_one(name: str, half: set[str]) -> None:
    if name not in half:
        return
    truth, told = TRUTHS[name], told_of(name)
    exact = 0.0 if alone(CASES[name]) else LOOSE.get(name, 1e-4)
    assert told.peak.total == pytest.approx(truth["peak"]["total"], rel=exact)
    assert told.phase == truth["peak_phase"]


@pytest.mark.parametrize("half", HALVES, ids=["first", "second"])
@each("name", [n for n in TRUTHS if alone(CASES[n])])
def test_every_phase_peaks_where_the_tracker_says(name: str, half: set[str]) -> None:
    if name not in half:
        return
    told = told_of(name)
    phases = {phase: peak.total for phase, peak in told.phases.items()}
    assert phases == pytest.approx(TRUTHS[name]["phase_peak_total"], abs=512)


@pytest.mark.parametrize("half", HALVES, ids=["first", "second"])
@each("name", [n for n in TRUTHS if alone(CASES[n])])
def test_parameters_are_counted_as_the_model_counts_them(
    name: str, half: set[str]
) -> None:
    if name not in half:
        return
    told, truth = told_of(name), TRUTHS[name]
    counted = (told.parameters, told.trainable)
    assert counted == (truth["n_params"], truth["n_trainable"])


@pytest.mark.parametrize("half", HALVES, ids=["first", "second"])
@each("name", [n for n in TRUTHS if alone(CASES[n])])
def test_what_a_peak_is_made_of_sums_to_it(name: str, half: set[str]) -> None:
    if name not in half:
        return
    for peak in told_of(name).phases.values():
        assert sum(peak.by_category.values()) == peak.total


@pytest.mark.parametrize("name", ["a01_llama1b_bf16", "h02_llama8b_lora16_full"])
def test_states_are_named_as_the_tracker_names_them(name: str) -> None:
    told, truth = told_of(name).peak.by_category, TRUTHS[name]["peak"]
    for category in ("params", "buffers", "optimizer", "inputs"):
        assert told.get(category, 0) == truth[category]
