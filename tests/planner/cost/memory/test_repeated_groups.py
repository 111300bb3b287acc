"""Mamba's groups of keys are repeated where context ranks are more than groups."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import framework, small_job

from planner.cost.memory.context_buffers import repeated_width
from planner.cost.meshes import Meshes
from planner.models import preset
from planner.models.layers.blocks import StateSpace
from planner.planning.prediction.predict import predict
from planner.specs.layouts.layout import PartialLayout
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec

SUPER = "nemotron-3-super-120b-a12b"


def scan() -> StateSpace:
    return next(
        kind.attention
        for kind in preset(SUPER).kinds
        if isinstance(kind.attention, StateSpace)
    )


def test_what_the_maintainers_of_nemotron_3_super_recommend_is_priced() -> None:
    """TP 2, CP 64, EP 64 at 256k tokens: 8 groups over 128 ranks."""
    workload = replace(
        small_job(SearchSpec(), nodes=16, node="dgx-b200"),
        model=preset(SUPER),
        framework=framework("megatron"),
        training=TrainingSpec.model_validate({"seq_len": 262_144, "global_batch": 4}),
    )
    partial = PartialLayout.model_validate(
        {"tp": 2, "sp": True, "cp": 64, "ep": 64, "micro_batch": 1}
        | {"zero_stage": 1, "recompute": "full"}
    )
    plan = predict(workload, partial)
    assert (plan.layout.tp, plan.layout.cp, plan.layout.ep) == (2, 64, 64)


@pytest.mark.parametrize(
    ("tp", "cp", "legal"),
    [(2, 64, True), (8, 1, True), (8, 16, True), (16, 1, False), (2, 128, False)],
)
def test_groups_divide_or_are_repeated(tp: int, cp: int, *, legal: bool) -> None:
    """8 groups of 16 heads: tensor ranks divide groups, all ranks divide heads."""
    assert scan().shared_out(tp, cp) is legal


def test_three_ranks_share_no_two_groups() -> None:
    block = replace(scan(), groups=2, state_heads=12)
    assert not block.shared_out(1, 3)
    assert block.shared_out(1, 6)


@given(tp=st.sampled_from([1, 2, 4, 8]), cp=st.sampled_from([1, 2, 4, 8, 16]))
def test_every_rank_holds_one_group_at_the_least(tp: int, cp: int) -> None:
    """Keys and queries of max(g / (t c), 1) groups on a rank."""
    kind = next(k for k in preset(SUPER).kinds if isinstance(k.attention, StateSpace))
    meshes = Meshes.from_rows([(tp, 0, 1, cp, 0, 1, 1, 1, cp, 1, 1, 1, 8, 0)])
    block = scan()
    extra = float(np.asarray(repeated_width(kind, meshes))[0])
    held = (2 * block.groups * block.state + extra) / (tp * cp)
    assert held == 2 * block.state * max(block.groups / (tp * cp), 1)
