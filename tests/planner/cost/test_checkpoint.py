"""Checkpoints: bytes a parameter by framework, shares of ranks, adapters alone."""

from pathlib import Path

import pytest

from planner.cost.checkpoint import checkpoint, saved_bytes
from planner.cost.workload import Workload
from planner.models import preset
from planner.predict import complete
from planner.resolve import resolve
from planner.specs.job import JobSpec
from planner.specs.read import read_layout

GIB = 2.0**30


def job(framework: str = "torchtitan", **training: object) -> Workload:
    spec = {
        "model": "llama-2-70b",
        "cluster": "dgx-h100-8-nodes",
        "framework": framework,
        "training": {"seq_len": 4096, "global_batch": 256, **training},
    }
    (workload,) = resolve(JobSpec.model_validate(spec), file="a test", base=Path())
    return workload


@pytest.mark.parametrize(
    ("framework", "optimizer", "each"),
    [
        ("torchtitan", "adamw", 12),
        ("megatron", "adamw", 14),
        ("megatron", "sgd-momentum", 10),
        ("megatron", "adamw-8bit", 8),
    ],
)
def test_a_framework_saves_its_bytes_of_every_parameter(
    framework: str, optimizer: str, each: float
) -> None:
    """Megatron-LM dist_optimizer.md: bf16 2, fp32 master 4, moments 8; FSDP2 4 + 8."""
    saved = saved_bytes(job(framework, optimizer=optimizer))
    assert saved.parameters == preset("llama-2-70b").parameters
    assert saved.total / saved.parameters == pytest.approx(each, rel=0.02)


def test_weights_and_optimizer_add_up() -> None:
    workload = job("megatron")
    layout = complete(workload, read_layout("tp=8,pp=4,stages=even,recompute=full"))
    found = checkpoint(workload, layout)
    assert found.total_gib == pytest.approx(found.weights_gib + found.optimizer_gib)
    assert found.weights_gib * GIB == 2 * preset("llama-2-70b").parameters
    assert found.bytes_per_parameter == pytest.approx(14)
    assert not found.adapters_only


@pytest.mark.parametrize(
    ("layout", "weights", "optimizer"),
    [
        ("tp=8,pp=1,zero_stage=0", 8, 8),
        ("tp=8,pp=1,zero_stage=1", 8, 64),
        ("tp=4,pp=2,zero_stage=1", 8, 64),
    ],
)
def test_a_rank_writes_its_share(layout: str, weights: int, optimizer: int) -> None:
    """Weights whole below ZeRO-3, the optimizer divided from ZeRO-1 on."""
    workload = job("megatron")
    whole = complete(workload, read_layout(f"{layout},stages=even,recompute=full"))
    found = checkpoint(workload, whole)
    share = found.weights_gib / weights + found.optimizer_gib / optimizer
    assert found.per_rank_gib == pytest.approx(share, rel=0.01)


def test_fsdp_writes_shards_whatever_stays_gathered() -> None:
    workload = job("torchtitan")
    shares = {
        zero: checkpoint(
            workload,
            complete(
                workload,
                read_layout(f"tp=8,zero_stage={zero},stages=even,recompute=full"),
            ),
        )
        for zero in (2, 3)
    }
    assert shares[2].per_rank_gib == pytest.approx(shares[3].per_rank_gib)
    assert shares[3].per_rank_gib == pytest.approx(shares[3].total_gib / 64, rel=0.01)


def test_adapters_alone_are_saved_of_a_frozen_model() -> None:
    """Rank 16 on every linear of 80 layers, by hand."""
    h, kv, f = 8192, 1024, 28672
    shapes = [(h, h + 2 * kv), (h, h), (h, 2 * f), (f, h)]
    adapters = 80 * 16 * sum(i + o for i, o in shapes)
    workload = job("torchtitan", method="lora")
    saved = saved_bytes(workload)
    assert saved.parameters == pytest.approx(adapters)
    layout = complete(workload, read_layout("tp=1,stages=even,recompute=full"))
    found = checkpoint(workload, layout)
    assert found.adapters_only
    assert found.total_gib < 0.02 * saved_bytes(job()).total / GIB


def test_offloaded_states_are_saved_all_the_same() -> None:
    workload = job("torchtitan")
    away = read_layout("zero_stage=3,stages=even,recompute=full,offload={optimizer: 1}")
    layout = complete(workload, away)
    assert layout.offload.optimizer == 1
    bare = layout.model_copy(update={"offload": type(layout.offload)()})
    assert checkpoint(workload.under(layout), layout) == checkpoint(workload, bare)
