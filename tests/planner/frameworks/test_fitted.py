"""Fitted constants and intervals: which level and which group a job takes."""

import pytest

from planner.frameworks import FRAMEWORKS
from planner.frameworks import fitted as module
from planner.frameworks.fitted import (
    BORROWED,
    UNSEEN,
    AllIntervals,
    Fit,
    Group,
    Intervals,
    fitted,
    intervals,
    memory_keys,
    time_keys,
    uncertainty,
)
from planner.frameworks.megatron import FRAMEWORK
from planner.frameworks.stacks import stack_names
from planner.specs.answer.uncertainty import COUNTERS, UNMEASURED, Band
from planner.specs.frameworks.deviation import Deviation

WHOLE = Group(low=0.5, high=2.0, rows=100, sources=9)
ROOM = Group(low=0.7, high=1.4, rows=60, sources=6)
OWN = Group(low=0.9, high=1.1, rows=20, sources=3)
DEVICES = Group(low=0.6, high=1.5, rows=30, sources=5)
TIMES = Intervals(
    groups={"room": ROOM, "room, fast": OWN},
    everything=WHOLE,
    within=0.5,
    architectures=("ampere", "hopper"),
)
MEMORIES = Intervals(
    groups={"device": DEVICES, "allocated, room": OWN},
    everything=WHOLE,
    architectures=("hopper",),
)


@pytest.fixture
def _shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    held = AllIntervals(date="", source="", time=TIMES, memory=MEMORIES)
    monkeypatch.setattr(module, "intervals", lambda: held)


@pytest.mark.usefixtures("_shipped")
@pytest.mark.parametrize(
    ("framework", "stack", "arch", "band", "told"),
    [
        ("room", "fast", "hopper", OWN.band, ""),
        ("room", "new", "hopper", ROOM.band.wider(UNSEEN), "no run of this stack:"),
        ("room", "fast", "rubin", OWN.band.wider(UNSEEN), "no run of this GPU:"),
        ("other", "x", "rubin", WHOLE.band.wider(UNSEEN), "this stack and GPU:"),
    ],
)
def test_the_nearest_measured_group_decides_and_the_unseen_is_wider(
    framework: str, stack: str, arch: str, band: Band, told: str
) -> None:
    found = uncertainty(framework=framework, stack=stack, arch=arch)
    assert found.time == band
    assert found.within == TIMES.within
    assert told in found.why
    assert ("times wider" in found.why) == bool(told)


@pytest.mark.usefixtures("_shipped")
def test_each_counter_of_memory_has_the_band_of_its_framework() -> None:
    found = uncertainty(framework="room", stack="fast", arch="hopper")
    assert found.counted("allocated") == found.counted("active") == OWN.band
    assert found.memory == found.counted("device") == DEVICES.band.wider(UNSEEN)
    assert found.counted("unknown") == found.reserved
    assert found.counted("reserved") == found.reserved == WHOLE.band.wider(UNSEEN)


@pytest.mark.usefixtures("_shipped")
def test_borrowed_kernels_widen_the_time_alone() -> None:
    plain, found = (
        uncertainty(framework="room", stack="fast", arch="hopper", borrowed=borrowed)
        for borrowed in (False, True)
    )
    assert found.time == OWN.band.wider(BORROWED)
    assert found.memory == plain.memory
    assert "borrowed" in found.why


def test_without_measurements_the_default_is_stated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    none = Intervals(everything=Group(low=0.85, high=1.15, rows=0, sources=0))
    held = AllIntervals(date="", source="", time=none, memory=none)
    monkeypatch.setattr(module, "intervals", lambda: held)
    assert uncertainty(framework="room", stack="x", arch="hopper") == UNMEASURED


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


def test_what_is_shipped_names_groups_that_a_job_can_have() -> None:
    """A stack that was renamed since keeps its errors: they are its framework's too."""
    rooms = [room.name for room in FRAMEWORKS]
    times = {key.split(", ")[0] for key in intervals().time.groups}
    assert times <= set(rooms)
    groups = {key for one in rooms for c in COUNTERS for key in memory_keys(one, c)}
    assert intervals().memory.groups.keys() <= groups
    assert time_keys("a", "b") == ("a, b", "a")


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
