"""A split backward priced or held wrongly is objected to."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.cost.pipeline import memory_rows
from planner.cost.table import table, units
from planner.frameworks import FRAMEWORKS
from planner.frameworks.stacks import with_stack

(TORCHTITAN,) = (room for room in FRAMEWORKS if room.name == "torchtitan")
EAGER = with_stack(TORCHTITAN, "torchtitan-eager")
JOB = {
    "framework": "torchtitan",
    "tp": 1,
    "pp": 4,
    "cp": 1,
    "zero_stage": 2,
    "micro_batch": 1,
    "layers": 14,
    "batch": 128,
    "limits": {"schedules": (*EAGER.limits.schedules, "dualpipe")},
}
Break = Callable[[Any], Any]


def half(true: Any) -> Any:
    return lambda *args: true(*args) / 2


def nothing(true: Any) -> Any:
    return lambda *args: 0.0 * true(*args)


def copies_apart(_: Any) -> Any:
    """Copies of a stage whose gradients are never added up."""
    return lambda _, owned: 0.0 * owned.dense


def one_late(true: Any) -> Any:
    """One micro-batch fewer waits for its weight gradients."""

    def broken(*shape: Any) -> Any:
        at = true(*shape)
        return replace(at, pending=np.maximum(at.pending - 1, 0))

    return broken


MISTAKES: dict[str, tuple[Any, str, Break, str]] = {
    "half the weight gradient": (table, "layer_weight_time", half, "by the clocks"),
    "no weight gradient": (table, "layer_weight_time", nothing, "by the clocks"),
    "nothing waits for W": (table, "layer_pending_bytes", nothing, "were claimed"),
    "one less waits for W": (memory_rows, "peak_columns", one_late, "were claimed"),
}
CASES = [(name, schedule) for name in MISTAKES for schedule in ("zb-v", "dualpipe-v")]
TWICE = (units, "twin_time", copies_apart, "by the clocks")


@pytest.mark.parametrize(
    ("name", "schedule"), [*CASES, ("no weight gradient", "dualpipe")]
)
def test_a_mistake_is_objected_to(
    name: str,
    schedule: str,
    workload_of: Callable[..., Any],
    claims_of: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check(MISTAKES[name], schedule, workload_of, claims_of, monkeypatch)


def check(
    mistake: tuple[Any, str, Break, str],
    schedule: str,
    workload_of: Callable[..., Any],
    claims_of: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The plan of a broken planner is objected to, in these words."""
    place, attribute, breaks, objection = mistake
    monkeypatch.setattr(place, attribute, breaks(getattr(place, attribute)))
    (claim, *_) = claims_of(workload_of(**JOB, schedule=schedule), top=1)
    assert claim.layout.schedule == schedule
    assert any(objection in sentence for sentence in claim.objections())


def test_copies_that_are_never_added_up_are_objected_to(
    workload_of: Callable[..., Any],
    claims_of: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check(TWICE, "dualpipe", workload_of, claims_of, monkeypatch)


@pytest.mark.parametrize("schedule", ["zb-v", "dualpipe-v", "dualpipe"])
def test_the_same_plans_are_sound_unbroken(
    schedule: str, workload_of: Callable[..., Any], claims_of: Callable[..., Any]
) -> None:
    claims = claims_of(workload_of(**JOB, schedule=schedule), top=3)
    assert claims
    assert [claim.objections() for claim in claims] == [[]] * len(claims)
