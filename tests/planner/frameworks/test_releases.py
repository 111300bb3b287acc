"""Older releases of a framework: their habits, for jobs and for measured rows."""

from datetime import date
from pathlib import Path

import pytest

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.frameworks import FRAMEWORKS
from planner.frameworks.releases import day_of, releases, with_facts
from planner.frameworks.stacks import stack_names, with_stack
from planner.job.resolve import resolve
from planner.planning.prediction.predict import predict
from planner.specs.frameworks.framework import Framework
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout

ROOMS = [room for room in FRAMEWORKS if releases(room.name)]
TITAN = next(room for room in FRAMEWORKS if room.name == "torchtitan")


def on_stack(room: str = "torchtitan", **stack: object) -> Workload:
    """Llama 3 8B on a DGX H100 under a stack block."""
    spec = {
        "model": "llama-3-8b",
        "cluster": {"node": "dgx-h100", "nodes": 1},
        "training": {"seq_len": 8192, "global_batch": 8},
        "framework": room,
        "stack": stack,
    }
    (found,) = resolve(JobSpec.model_validate(spec), file="job.yaml", base=Path())
    return found


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_the_newest_release_is_the_room_itself(room: Framework) -> None:
    known = releases(room.name)
    assert known is not None
    (newest,) = [name for name, day in known.versions.items() if day is None]
    assert (newest, known.stacks[0]) == (room.profile.version, room.profile.name)
    stacks = {*known.stacks, *(each.stack for each in known.dated)}
    assert stacks <= set(stack_names(room.name))
    days = [each.until for each in known.dated]
    assert days == sorted(days)
    assert on_stack(room.name, version=newest).framework.recipe == (
        on_stack(room.name).framework.recipe
    )


@pytest.mark.parametrize(
    ("stack", "logits", "repeats"),
    [
        ({}, 1.5, False),
        ({"version": "0.2.2"}, 4, False),
        ({"version": "0.2"}, 4, True),
        ({"version": 0.2}, 4, True),
        ({"version": "2025-04-01"}, 12, True),
        ({"version": date(2026, 4, 27)}, 1.5, False),
        ({"version": "0.2", "loss": "chunked"}, 1.5, True),
        ({"version": "0.2", "compile": False}, 14, True),
    ],
)
def test_a_release_has_the_loss_and_the_ring_of_its_day(
    stack: dict[str, object], logits: float, *, repeats: bool
) -> None:
    """Commits bbb1b616e and 786e26f8e changed the loss, ff0829c10 the ring."""
    recipe = on_stack(**stack).framework.recipe
    assert (recipe.logits_bytes, recipe.cp_repeats_kv) == (logits, repeats)


@pytest.mark.parametrize(
    ("version", "stack"),
    [
        ("2.6", "megatron-2021"),
        (date(2022, 3, 15), "megatron-2022"),
        ("core-0.11", "megatron-2024"),
        ("core-0.12", "megatron-2026"),
    ],
)
def test_a_release_of_megatron_has_the_stack_of_its_years(
    version: object, stack: str
) -> None:
    found = on_stack("megatron", version=version).framework
    assert (found.profile.name, found.profile.version) == (stack, str(version))
    own = with_stack(next(r for r in FRAMEWORKS if r.name == "megatron"), stack)
    assert (found.recipe, found.limits) == (own.recipe, own.limits)


def test_an_older_trainer_steps_over_lists_of_tensors() -> None:
    """8.03e9 roots of second moments in bf16 on every GPU."""
    layout = PartialLayout(tp=1, micro_batch=1, zero_stage=0, recompute="full")
    held = {}
    for day in ("2025-08-06", "2025-08-05"):
        job = on_stack("accelerate", version=day)
        (stage,) = predict(job, layout).estimate.memory.stages
        (step,) = [m for m in stage.moments if m.moment == "optimizer step"]
        held[job.framework.recipe.optimizer_kernel] = step.transient
    roots = 2 * 8.03e9 / 2**30
    assert held["foreach"] - held["fused"] == pytest.approx(roots, rel=0.001)


def test_no_files_are_written_for_an_older_release() -> None:
    assert not on_stack(version="0.2").framework.writers
    assert on_stack(version="0.3").framework.writers


def test_a_release_is_said_to_be_the_jobs() -> None:
    assert on_stack(version="0.2").framework.by_hand == ("version 0.2 (0.3)",)
    assert on_stack(version="0.3").framework.by_hand == ()


@pytest.mark.parametrize(
    ("room", "stack", "said"),
    [
        ("torchtitan", {"version": "0.9"}, r"no such release.*0\.1, 0\.2, 0\.2\.1"),
        ("torchtitan", {"version": "0.2", "name": "pax"}, "pax of torchtitan has no"),
        ("deepspeed", {"version": "0.10"}, "hf-trainer of deepspeed has no releases"),
        ("megatron", {"version": "0.8"}, r"no such release.*core-0\.8"),
    ],
)
def test_a_release_that_is_not_known_is_refused(
    room: str, stack: dict[str, object], said: str
) -> None:
    with pytest.raises(BadInputError, match=said):
        on_stack(room, **stack)


def test_a_row_has_the_habits_of_its_day() -> None:
    stacked = with_stack(TITAN, "torchtitan-eager")
    days = (day_of(2026 + month / 12) for month in (0, 1))
    repeats = [with_facts(stacked, day).recipe.cp_repeats_kv for day in days]
    assert repeats == [True, False]
