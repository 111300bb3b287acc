"""States of every optimizer, against the papers' and libraries' own counts."""

from dataclasses import replace

import numpy as np
import pytest
from strategies import framework, small_job

from planner.cost.memory.optimizer_step_bytes import step_working
from planner.cost.meshes import Meshes
from planner.cost.parameters.adapters import adapter_sums
from planner.cost.parameters.optimizers import moment_bytes, rank_moments, shard_traffic
from planner.cost.parameters.rank_parameters import (
    embedding_owned,
    head_owned,
    layer_owned,
)
from planner.cost.parameters.states import optimizer_time, state_bytes
from planner.cost.pricing import Pricing
from planner.models import preset
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec

H, F, KV = 4096, 14336, 1024
"""Widths of Llama-3-8B. [1]"""


def job(optimizer: str = "adamw", **fields: object) -> Pricing:
    training = TrainingSpec.model_validate(
        {"seq_len": 2048, "global_batch": 8, "optimizer": optimizer, **fields}
    )
    workload = replace(small_job(SearchSpec(), nodes=1), training=training)
    return replace(
        workload, model=preset("llama-3-8b"), framework=framework("torchtitan")
    )


def mesh(*, zero: int = 0, tp: int = 1, dp: int = 1) -> Meshes:
    return Meshes.from_rows([(tp, 0, 1, 1, 1, 1, 1, dp, dp, zero, 1, 1, 1, 0)])


@pytest.mark.parametrize(
    ("optimizer", "each"),
    [
        ("adamw", 4 + 8),
        ("adamw-8bit", 4 + 2 + 2 * 4 / 256),
        ("sgd-momentum", 4 + 4),
        ("lion", 4 + 4),
        ("sgd", 4),
    ],
)
def test_fp32_weights_and_moments_a_parameter(optimizer: str, each: float) -> None:
    """The usual count beside fp32 weights: Adam 12, in 8 bits 6, with momentum 8."""
    workload, meshes = job(optimizer), mesh(zero=3)
    owned = layer_owned(workload, workload.kinds[0], meshes)
    states = state_bytes(workload, owned, meshes)
    held = states.weights[0] + states.optimizer[0]
    assert held / workload.kinds[0].parameters == pytest.approx(each)


def test_adafactor_keeps_rows_and_columns() -> None:
    """4 B for r + c of seven matrices and for every weight of two norms."""
    workload = job("adafactor")
    owned = layer_owned(workload, workload.kinds[0], mesh())
    sums = 2 * (H + H) + 2 * (H + KV) + 3 * (H + F)
    assert rank_moments(workload, owned, mesh())[0] == 4 * (sums + 2 * H)


def test_adafactor_beside_the_layers() -> None:
    """The tables are matrices of V x h, the last norm is a vector."""
    workload = job("adafactor")
    tables = [
        float(rank_moments(workload, owned(workload, mesh()), mesh())[0])
        for owned in (embedding_owned, head_owned)
    ]
    vocab = workload.model.vocab
    assert tables == [4 * (vocab + H), 4 * (vocab + H + H)]


@pytest.mark.parametrize("optimizer", ["galore-adamw", "apollo-adamw"])
@pytest.mark.parametrize("rank", [128, 8192])
def test_a_projected_gradient_has_narrow_moments(optimizer: str, rank: int) -> None:
    """GaLore's table 1: 2 n r + m r elements of a matrix m x n; norms have Adam's."""
    workload = job(optimizer, projection_rank=rank)
    owned = layer_owned(workload, workload.kinds[0], mesh())
    sides = 2 * [(H, H)] + 2 * [(KV, H)] + 3 * [(H, F)]
    each = [min(rank, q) * (2 * c + q) for q, c in sides]
    assert rank_moments(workload, owned, mesh())[0] == 4 * (sum(each) + 2 * 2 * H)


def test_tables_are_left_to_adam_beside_projected_gradients() -> None:
    workload, adam = job("galore-adamw"), job("adamw")
    for owned in (embedding_owned, head_owned):
        kept, whole = (
            rank_moments(it, owned(it, mesh()), mesh())[0] for it in (workload, adam)
        )
        assert kept == whole


def test_a_projection_needs_room_of_the_largest_matrix() -> None:
    """SVD: gate and up in fp32, a copy, two factors; APOLLO scales one copy."""
    found = {}
    for name in ("galore-adamw", "apollo-adamw"):
        workload = job(name)
        owned = layer_owned(workload, workload.kinds[0], mesh())
        found[name] = float(step_working(workload, owned, mesh())[0])
    assert found == {
        "galore-adamw": 4 * (3 * H * 2 * F + H * H),
        "apollo-adamw": 2 * H * 2 * F,
    }


def test_adafactor_of_adapters() -> None:
    """Factors of r x i and o x r."""
    workload = job("adafactor", method="lora", lora={"rank": 8, "targets": ["o_proj"]})
    sums = adapter_sums(workload, workload.kinds[0], mesh())
    assert sums[0][0] == (8 + H) + (H + 8)


@pytest.mark.parametrize("optimizer", ["adafactor", "adamw-8bit", "lion"])
def test_moments_are_divided_over_the_shards(optimizer: str) -> None:
    workload = job(optimizer)
    whole, shared = (
        float(rank_moments(workload, layer_owned(workload, k, m), m)[0])
        for k, m in (
            (workload.kinds[0], mesh()),
            (workload.kinds[0], mesh(zero=3, dp=8)),
        )
    )
    assert shared == pytest.approx(whole / 8)


@pytest.mark.parametrize("optimizer", ["paged-adamw", "paged-adamw-8bit"])
def test_paged_moments_leave_the_gpu_and_cross_its_link(optimizer: str) -> None:
    paged, plain = job(optimizer), job(optimizer.removeprefix("paged-"))
    owned = layer_owned(paged, paged.kinds[0], mesh())
    states = [state_bytes(w, owned, mesh()).optimizer[0] for w in (paged, plain)]
    moments = rank_moments(paged, owned, mesh())[0]
    assert states[1] - states[0] == pytest.approx(moments)
    times = [float(optimizer_time(w, owned, mesh())[0]) for w in (paged, plain)]
    assert times[0] > times[1]


def test_fewer_moments_move_fewer_bytes() -> None:
    """26 B a parameter, and each moment read and written: Adam's 42."""
    moved = [
        float(np.sum(shard_traffic(w, layer_owned(w, w.kinds[0], mesh()), np.ones(1))))
        for w in (job("adamw"), job("sgd-momentum"), job("sgd"))
    ]
    assert moved == [42, 34, 26]


def test_muon_keeps_one_moment_of_matrices_and_two_of_tables() -> None:
    workload = job("muon")
    layer = layer_owned(workload, workload.kinds[0], mesh())
    table = embedding_owned(workload, mesh())
    assert (moment_bytes(workload, layer), moment_bytes(workload, table)) == (4, 8)
