"""Checkpoints: bytes a parameter by framework, shares of ranks, adapters alone."""

from pathlib import Path

import pytest
from each import each

from planner.cost.estimate.checkpoint import checkpoint, saved_bytes
from planner.cost.meshes import Meshes
from planner.cost.parameters.rank_parameters import layer_owned
from planner.cost.parameters.states import state_bytes
from planner.cost.pricing import Pricing
from planner.frameworks import FRAMEWORKS
from planner.frameworks.stacks import stack_names
from planner.job.resolve import resolve
from planner.models import preset
from planner.planning.prediction.predict import complete
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import Layout
from planner.specs.reading.layout_line import read_layout

GIB = 2.0**30


def job(
    framework: str = "torchtitan", stack: str | None = None, **training: object
) -> Pricing:
    spec = {
        "stack": {"name": stack} if stack else {},
        "model": "llama-2-70b",
        "cluster": "dgx-h100-8-nodes",
        "framework": framework,
        "training": {"seq_len": 4096, "global_batch": 256, **training},
    }
    (workload,) = resolve(JobSpec.model_validate(spec), file="a test", base=Path())
    return Pricing.candidate(workload)


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
    workload = job(framework, optimizer=optimizer)
    saved = saved_bytes(workload, workload.framework.limits.default_zero_stage)
    assert saved.parameters == preset("llama-2-70b").parameters
    assert saved.total / saved.parameters == pytest.approx(each, rel=0.02)


BY_HAND = {
    ("accelerate", None): {0: (2, 4), 2: (4, 8), 3: (4, 8)},
    ("accelerate", "hf-amp"): {0: (4, 8), 2: (4, 8), 3: (4, 8)},
    ("accelerate", "hf-bf16"): {0: (2, 4), 2: (2, 4), 3: (2, 4)},
    ("accelerate", "hf-trainer"): dict.fromkeys(range(4), (2, 12)),
    ("deepspeed", None): dict.fromkeys(range(4), (2, 12)),
    ("megatron", None): {0: (2, 12), 1: (2, 12)},
    ("megatron", "oneflow"): {0: (2, 12), 1: (2, 12)},
    ("torchtitan", None): {2: (4, 8), 3: (4, 8)},
    ("torchtitan", "torchtune"): {2: (2, 4), 3: (2, 4)},
}
"""Weights and optimizer of a parameter by room, stack and ZeRO stage. [B]"""
CASES = [
    (room, stack, zero, each)
    for (room, stack), stages in BY_HAND.items()
    for zero, each in stages.items()
]


@pytest.mark.parametrize(("room", "stack", "zero", "each"), CASES)
def test_a_checkpoint_is_of_the_stage_of_its_layout(
    room: str, stack: str | None, zero: int, each: tuple[float, float]
) -> None:
    """A model under DDP is saved as it was loaded, FSDP2's shards in fp32."""
    workload = job(room, stack=stack)
    layout = complete(
        workload, read_layout(f"tp=1,zero_stage={zero},stages=even,recompute=full")
    )
    found = checkpoint(workload, layout)
    parameters = preset("llama-2-70b").parameters / GIB
    assert found.weights_gib / parameters == pytest.approx(each[0])
    assert found.optimizer_gib / parameters == pytest.approx(each[1])


@each(
    ("room", "stack"),
    [(room.name, stack) for room in FRAMEWORKS for stack in stack_names(room.name)],
)
@each("precision", ["bf16", "fp16"])
def test_no_checkpoint_is_larger_than_what_is_held(
    room: str, stack: str, precision: str
) -> None:
    """Every stage of every stack: one rank alone holds all that it saves."""
    workload = job(room, stack=stack, precision=precision)
    for zero in workload.framework.limits.zero_stages:
        saved = saved_bytes(workload, zero)
        alone = Meshes.of_layout(Layout(zero_stage=zero, grad_accum=2))
        kind = workload.kinds[0]
        owned = layer_owned(workload, kind, alone)
        held = state_bytes(workload, owned, alone)
        each = float(((held.weights + held.optimizer) / owned.dense)[0])
        least = workload.recipe.states[zero].computing
        assert 0 < saved.total / saved.parameters <= each - least + 1e-9


@pytest.mark.parametrize("zero", [0, 1])
def test_gradients_of_the_step_are_not_saved(zero: int) -> None:
    """Megatron in fp16: 2 + 4 + 8 B, without the fp32 copy of its gradients."""
    saved = saved_bytes(job("megatron", precision="fp16"), zero)
    assert saved.weights / saved.parameters == pytest.approx(2)
    assert saved.optimizer / saved.parameters == pytest.approx(12)


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
    saved = saved_bytes(workload, 3)
    assert saved.parameters == pytest.approx(adapters)
    layout = complete(workload, read_layout("tp=1,stages=even,recompute=full"))
    found = checkpoint(workload, layout)
    assert found.adapters_only
    assert found.total_gib < 0.02 * saved_bytes(job(), 3).total / GIB


def test_offloaded_states_are_saved_all_the_same() -> None:
    workload = job("torchtitan")
    away = read_layout("zero_stage=3,stages=even,recompute=full,offload={optimizer: 1}")
    layout = complete(workload, away)
    assert layout.offload.optimizer == 1
    bare = layout.model_copy(update={"offload": type(layout.offload)()})
    assert checkpoint(Pricing.of(workload, layout), layout) == checkpoint(
        workload, bare
    )
