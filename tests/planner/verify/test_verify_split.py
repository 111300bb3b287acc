"""A split backward priced or held wrongly is objected to."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.cost import pipeline, table
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
    "limits": {"schedules": EAGER.limits.schedules},
}
Break = Callable[[Any], Any]


def half(true: Any) -> Any:
    return lambda *args: true(*args) / 2


def nothing(true: Any) -> Any:
    return lambda *args: 0.0 * true(*args)


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
    "one less waits for W": (pipeline, "peak_columns", one_late, "were claimed"),
}


@pytest.mark.parametrize("schedule", ["zb-v", "dualpipe-v"])
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_objected_to(
    name: str,
    schedule: str,
    workload_of: Callable[..., Any],
    claims_of: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place, attribute, breaks, objection = MISTAKES[name]
    monkeypatch.setattr(place, attribute, breaks(getattr(place, attribute)))
    (claim, *_) = claims_of(workload_of(**JOB, schedule=schedule), top=1)
    assert claim.layout.schedule == schedule
    assert any(objection in sentence for sentence in claim.objections())


@pytest.mark.parametrize("schedule", ["zb-v", "dualpipe-v"])
def test_the_same_plans_are_sound_unbroken(
    schedule: str, workload_of: Callable[..., Any], claims_of: Callable[..., Any]
) -> None:
    claims = claims_of(workload_of(**JOB, schedule=schedule), top=3)
    assert claims
    assert [claim.objections() for claim in claims] == [[]] * len(claims)
