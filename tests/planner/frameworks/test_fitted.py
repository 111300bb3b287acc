"""Fitted constants and intervals: which level and which group a job takes."""

import pytest

from planner.frameworks import FRAMEWORKS
from planner.frameworks import fitted as module
from planner.frameworks.fitted import (
    BORROWED,
    HOST_BOUND,
    AllIntervals,
    Fit,
    Group,
    Intervals,
    fitted,
    group_keys,
    intervals,
    uncertainty,
)
from planner.frameworks.megatron import FRAMEWORK
from planner.frameworks.stacks import stack_names
from planner.specs.answer.uncertainty import UNMEASURED, WAITING
from planner.specs.frameworks.deviation import Deviation

WHOLE = Group(low=0.7, high=1.4, rows=100, sources=9)
OWN = Group(low=0.9, high=1.1, rows=20, sources=3)
HOPPER = Group(low=0.8, high=1.2, rows=50, sources=5)
BANDS = Intervals(
    groups={"fast, dense": OWN, "hopper, dense": HOPPER}, everything=WHOLE
)


@pytest.fixture
def _shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    held = AllIntervals(date="", source="", time=BANDS, memory=BANDS)
    monkeypatch.setattr(module, "intervals", lambda: held)


@pytest.mark.usefixtures("_shipped")
@pytest.mark.parametrize(
    ("arch", "stack", "moe", "band"),
    [
        ("hopper", "fast", False, OWN),
        ("ampere", "fast", False, OWN),
        ("hopper", "new", False, HOPPER),
        ("hopper", "fast", True, WHOLE),
        ("rubin", "new", False, WHOLE),
    ],
)
def test_the_nearest_measured_group_decides(
    arch: str, stack: str, *, moe: bool, band: Group
) -> None:
    found = uncertainty(arch=arch, stack=stack, moe=moe)
    assert found.time == band.band
    assert ("this stack itself has none" in found.why) == (band != OWN)
    assert f"{band.rows} measured runs" in found.why


def test_a_step_that_waits_for_its_host_has_a_band_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups = {HOST_BOUND: WHOLE, "fast, dense": OWN}
    bands = Intervals(groups=groups, everything=HOPPER)
    held = AllIntervals(date="", source="", time=bands, memory=bands)
    monkeypatch.setattr(module, "intervals", lambda: held)
    found = uncertainty(arch="hopper", stack="fast", moe=False)
    assert found.step(WAITING - 0.01) == OWN.band
    assert found.step(WAITING) == WHOLE.band
    assert group_keys(arch="hopper", stack="fast", moe=True, waits=True) == (
        HOST_BOUND,
    )


@pytest.mark.usefixtures("_shipped")
def test_borrowed_kernels_widen_the_time_alone() -> None:
    found = uncertainty(arch="hopper", stack="fast", moe=False, borrowed=True)
    assert found.time.high == pytest.approx(1.1**BORROWED)
    assert found.time.low == pytest.approx(0.9**BORROWED)
    assert found.memory == OWN.band
    assert "borrowed" in found.why


def test_without_measurements_the_default_is_stated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    none = Intervals(everything=Group(low=0.85, high=1.15, rows=0, sources=0))
    held = AllIntervals(date="", source="", time=none, memory=none)
    monkeypatch.setattr(module, "intervals", lambda: held)
    assert uncertainty(arch="hopper", stack="x", moe=False) == UNMEASURED


def test_levels_multiply_and_unseen_members_change_nothing() -> None:
    fit = Fit(
        date="",
        source="",
        everything=Deviation(clock=0.9, step_overhead=0.01),
        architectures={"hopper": Deviation(clock=0.9, network=1.1)},
        stacks={"fast": Deviation(clock=1.2, step_overhead=0.02)},
    )
    both = fit.deviation("hopper", "fast")
    assert both.clock == pytest.approx(0.9 * 0.9 * 1.2)
    assert both.network == pytest.approx(1.1)
    assert both.step_overhead == pytest.approx(0.03)
    assert fit.deviation("rubin", "new") == fit.everything


def test_a_deviation_moves_a_profile_and_stays_above_zero() -> None:
    profile = FRAMEWORK.profile
    moved = Deviation(clock=0.5, step_overhead=-99.0).of(profile)
    assert moved.clock == profile.clock * 0.5
    assert moved.step_overhead == 0.0
    assert Deviation().of(profile) == profile


def test_what_is_shipped_names_stacks_that_exist() -> None:
    known = {name for room in FRAMEWORKS for name in stack_names(room.name)}
    assert set(fitted().stacks) <= known
    for table in (intervals().time, intervals().memory):
        for key in table.groups.keys() - {HOST_BOUND}:
            assert any(
                key
                in group_keys(arch=key.split(",")[0], stack=key.split(",")[0], moe=m)
                for m in (False, True)
            )


def test_what_is_shipped_stays_physical() -> None:
    levels = (
        fitted().everything,
        *fitted().architectures.values(),
        *fitted().stacks.values(),
    )
    for own in levels:
        assert 0.5 < own.clock < 1.5
        assert 0.5 < own.attention_rate < 2
        assert 0.3 < own.memory_traffic < 3
        assert 0.3 < own.latency < 3
        assert 0.5 < own.network < 2
        assert abs(own.step_overhead) < 0.1
