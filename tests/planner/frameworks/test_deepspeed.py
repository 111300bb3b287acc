"""The room of DeepSpeed: what goes together, and whose constants price it."""

from dataclasses import replace

import numpy as np
import pytest
from strategies import framework, small_job
from tiny_models import TINY_MIXTRAL

from planner.cost.pricing import Pricing
from planner.frameworks.stacks import with_stack
from planner.search.space.space import enumerate_space
from planner.specs.frameworks.limits import chosen
from planner.specs.layouts.layout import Offload
from planner.specs.search import SearchSpec

ROOM = framework("deepspeed")


def test_it_is_priced_as_trainer_with_its_plugin() -> None:
    """One engine around the same blocks: profile and recipe are those of hf-trainer."""
    theirs = with_stack(framework("accelerate"), "hf-trainer")
    own = {"name", "version", "source"}
    assert ROOM.profile.name == theirs.profile.name
    assert ROOM.profile.model_dump(exclude=own) == theirs.profile.model_dump(
        exclude=own
    )
    # Trainer of transformers 5 checkpoints without reentrance, before with it.
    assert ROOM.recipe == replace(theirs.recipe, stops_early=True)


@pytest.mark.parametrize(
    ("choices", "clash"),
    [
        ({"pp", "ZeRO 1"}, None),
        ({"pp", "ZeRO 2"}, "pp with ZeRO 2"),
        ({"pp", "ZeRO 3"}, "pp with ZeRO 3"),
        ({"tp", "ZeRO 3"}, None),
        ({"tp", "pp"}, "pp with tp"),
        ({"tp", "cp"}, "tp with cp"),
        ({"cp", "ZeRO 3"}, None),
        ({"cp", "ZeRO 1"}, "cp with ZeRO 1"),
        ({"cp", "hpz", "ZeRO 3"}, None),
        ({"tp", "hpz", "ZeRO 3"}, "tp with hpz"),
        ({"ep", "hpz", "ZeRO 3"}, "ep with hpz"),
        ({"ep", "tp"}, None),
        ({"ep", "offload"}, "ep with offload"),
        ({"offload", "ZeRO 2"}, None),
        ({"offload", "pp"}, "pp with offload"),
    ],
)
def test_what_goes_together(choices: set[str], clash: str | None) -> None:
    expected = clash and f"the framework has no {clash}"
    assert ROOM.limits.clash(choices) == expected


def test_choices_are_named_once() -> None:
    """Axes above 1, the ZeRO stage, and what is said of the host."""
    degrees = {"tp": 2, "pp": 1, "cp": 4, "hpz": 8}
    its = chosen(degrees=degrees, zero=2, offload=True)
    assert its == {"tp", "cp", "hpz", "ZeRO 2", "offload"}
    assert chosen(degrees={"tp": 2, "hpz": 1}) == {"tp"}


def meshes_of(pricing: Pricing) -> set[tuple[int, ...]]:
    its = enumerate_space(pricing).meshes
    columns = (its.tp, its.pp, its.cp, its.ep, its.hpz, its.zero)
    return {tuple(map(int, row)) for row in np.stack(columns, axis=1)}


def clashes(pricing: Pricing, row: tuple[int, ...]) -> bool:
    tp, pp, cp, ep, hpz, zero = row
    words = chosen(
        degrees={"tp": tp, "pp": pp, "cp": cp, "ep": ep, "hpz": hpz},
        zero=zero,
        offload=pricing.offload.optimizer > 0,
    )
    return pricing.framework.limits.clash(words) is not None


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("config", [{}, TINY_MIXTRAL], ids=["dense", "moe"])
def test_the_space_loses_what_clashes_and_nothing_else(
    config: dict[str, object], share: float
) -> None:
    """The rule takes out exactly the meshes that DeepSpeed refuses."""
    job = small_job(SearchSpec(space="full"), name="deepspeed", config=config)
    job = replace(job, offload=Offload(optimizer=share))
    limits = replace(job.framework.limits, apart=())
    free = replace(job, framework=replace(job.framework, limits=limits))
    every, kept = meshes_of(free), meshes_of(job)
    assert kept == {row for row in every if not clashes(job, row)}
    assert 0 < len(kept) < len(every)
