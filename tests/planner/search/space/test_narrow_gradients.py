"""Wide gradients are left out where the same mesh with narrow ones is as good."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from every_split import best_of_space
from strategies import framework, small_job
from tiny_models import TINY_MIXTRAL

from planner.cost.pipeline.memory_rows import rank_blocks
from planner.cost.pipeline.splits import step_ns
from planner.cost.pricing import Pricing
from planner.cost.table.table import fill_table
from planner.job.variants import variants
from planner.search.bounds.paths import even_counts
from planner.search.space import formats
from planner.search.space.formats import BY_NARROWER
from planner.search.space.space import Space, enumerate_space
from planner.specs.layouts.layout import Offload
from planner.specs.search import SearchSpec

FEW: dict[str, Any] = {
    "space": "full",
    "recompute": "none",
    "schedule": "1f1b",
    "cp": 1,
    "tp": (1, 2),
    "etp": 1,
    "pp": (1, 2),
    "micro_batch": (1, 2),
}
BIG = {"hidden_size": 1024, "num_hidden_layers": 4, "vocab_size": 4096}


def pair(*, routed: bool = False, **search: Any) -> tuple[Pricing, ...]:
    """The variants of a job with wide gradients and with narrow ones."""
    config = (TINY_MIXTRAL if routed else {}) | BIG
    job = small_job(SearchSpec(**(FEW | search)), config=config)
    return variants([job])


def left_out(pricing: Pricing) -> int:
    return enumerate_space(pricing).removed.get(BY_NARROWER, 0)


def every(pricing: Pricing, monkeypatch: pytest.MonkeyPatch) -> Space:
    """The space without the rule."""
    with monkeypatch.context() as here:
        here.setattr(formats.NarrowGradients, "worth", lambda _, shards, *__: shards)
        return enumerate_space(pricing)


@pytest.mark.parametrize("routed", [False, True])
def test_what_is_left_out_is_no_faster_and_needs_no_less(
    routed: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every mesh that the rule removes, against the same with narrow gradients."""
    wide, narrow = pair(routed=routed)
    kept = {
        tuple(row)
        for row in np.stack(list(vars(enumerate_space(wide).meshes).values()), 1)
    }
    whole = every(wide, monkeypatch)
    rows = np.stack(list(vars(whole.meshes).values()), 1)  # before columns are cached
    tables = [
        fill_table(each, whole.meshes, whole.recompute) for each in (wide, narrow)
    ]
    compared = 0
    for candidate, mesh in enumerate(whole.mesh):
        if tuple(rows[mesh]) in kept:
            continue
        ours, theirs = (
            table.stage_costs(
                int(mesh),
                schedule=whole.schedule(candidate),
                vpp=int(whole.vpp[candidate]),
                menu=whole.choices(candidate),
            )
            for table in tables
        )
        counts = even_counts(ours)
        assert (rank_blocks(theirs, counts) <= rank_blocks(ours, counts)).all()
        assert step_ns(theirs, counts) <= step_ns(ours, counts)
        compared += 1
    assert compared > 0


@pytest.mark.parametrize("routed", [False, True])
def test_the_best_of_both_formats_stays(
    routed: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = {"pp": 1, "tp": 1, "zero_stage": (0, 1), "micro_batch": 1}
    best = []
    for keep in (False, True):
        found = []
        for each in pair(routed=routed, **limits):
            space = every(each, monkeypatch) if keep else enumerate_space(each)
            table = fill_table(each, space.meshes, space.recompute)
            found.append(best_of_space(table, space))
        best.append(min(one.step_s for one in found if one is not None))
    assert best[0] == best[1]


def test_one_rank_needs_its_wide_copy_in_the_step() -> None:
    """2 + 4 B beside 4: what no rank shares, or few do, stays in the space."""
    wide, narrow = pair(zero_stage=1)
    assert left_out(wide) > 0
    assert left_out(narrow) == 0
    meshes = enumerate_space(wide).meshes
    assert set(meshes.dp_shard.tolist()) == {1, 2}
    assert left_out(pair(zero_stage=0)[0]) == 0


def test_the_rule_is_for_two_formats_of_one_search() -> None:
    wide, _ = pair()
    assert left_out(replace(wide, comm_dtype=None)) == 0
    assert left_out(replace(wide, offload=Offload(optimizer=1.0))) == 0
    assert all(left_out(each) == 0 for each in pair(gradient_dtype=["fp32", "bf16"]))
    assert all(left_out(each) == 0 for each in pair(space="default"))
    (titan,) = variants([small_job(SearchSpec(space="full"), name="torchtitan")])
    assert left_out(titan) == 0
    assert "bf16" not in framework("torchtitan").formats.gradients
