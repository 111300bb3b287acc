"""Frozen parts: weights alone, and no backward below all that trains."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from strategies import framework, small_job

from planner.cost.estimate.estimate import flops_per_token
from planner.cost.meshes import Meshes
from planner.cost.parameters.rank_parameters import (
    Owned,
    embedding_owned,
    head_owned,
    layer_owned,
)
from planner.cost.parameters.states import state_bytes
from planner.cost.pricing import Pricing
from planner.job.methods import frozen_model
from planner.models import preset
from planner.planning.prediction.predict import predict
from planner.specs.answer.estimate import Estimate
from planner.specs.layouts.layout import PartialLayout
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec
from planner.verify.plan import violations

LAYERS = 32


def job(room: str = "torchtitan", **fields: object) -> Pricing:
    training = TrainingSpec.model_validate(
        {"seq_len": 2048, "global_batch": 16, **fields}
    )
    workload = replace(small_job(SearchSpec(), nodes=1), training=training)
    model = frozen_model(training, preset("llama-3-8b"))
    return replace(workload, model=model, framework=framework(room))


def priced(pricing: Pricing, **degrees: object) -> Estimate:
    layout = PartialLayout.model_validate({"recompute": "none", **degrees})
    plan = predict(pricing, layout)
    device = [stage.device for stage in plan.estimate.memory.stages]
    step = plan.estimate.step_time_s.value
    assert not violations(pricing, plan.layout, step_s=step, device_gib=device)
    return plan.estimate


def mesh(zero: int) -> Meshes:
    return Meshes.from_rows([(1, 0, 1, 1, 1, 1, 1, 8, 8, zero, 1, 1, 1, 0)])


@pytest.mark.parametrize(("room", "zero"), [("megatron", 1), ("torchtitan", 3)])
def test_a_frozen_layer_has_weights_alone(room: str, zero: int) -> None:
    workload = job(room, freeze={"layers": 8})
    frozen, trained = workload.kinds
    assert (frozen.role, trained.role) == ("passed", "trained")
    states = [
        state_bytes(workload, layer_owned(workload, kind, mesh(zero)), mesh(zero))
        for kind in (frozen, trained)
    ]
    assert states[0].weights[0] == pytest.approx(states[1].weights[0])
    assert states[0].gradients[0] == states[0].optimizer[0] == 0
    assert states[1].gradients[0] > 0


@pytest.mark.parametrize(
    ("part", "owned"), [("embedding", embedding_owned), ("head", head_owned)]
)
def test_a_frozen_table_has_weights_alone(
    part: str, owned: Callable[[Pricing, Meshes], Owned]
) -> None:
    kept, frozen = job(), job(freeze={part: True})
    before, after = (state_bytes(w, owned(w, mesh(3)), mesh(3)) for w in (kept, frozen))
    assert after.weights[0] == pytest.approx(before.weights[0])
    assert after.optimizer[0] == 0 < before.optimizer[0]


@pytest.mark.parametrize("room", ["megatron", "torchtitan"])
def test_layers_below_all_that_trains_cost_a_forward(room: str) -> None:
    """All but one of 32 blocks below: a third of their work, none of their bytes."""
    full = priced(job(room))
    passed = priced(job(room, freeze={"layers": LAYERS - 1}))
    below = priced(job(room, freeze={"layers": LAYERS - 1, "embedding": True}))
    times = [e.step_time_s.value for e in (below, passed, full)]
    assert times == sorted(times)
    assert 0.3 < times[0] / times[2] < 0.6
    activations = [e.memory.stages[0].activations for e in (below, passed, full)]
    assert activations[0] < 0.1 * activations[2]
    assert activations[1] < activations[2]


def test_work_of_frozen_parts() -> None:
    """2 N a token less for each frozen weight, and nothing but 2 N below."""
    model = preset("llama-3-8b")
    layer = model.kinds[0].matmul_parameters
    counted = [
        flops_per_token(w, "full")
        for w in (
            job(),
            job(freeze={"layers": 4}),
            job(freeze={"layers": 4, "embedding": True}),
            job(freeze={"head": True}),
        )
    ]
    core = model.kinds[0].attention.core_flops(2048)
    assert counted[0] - counted[1] == pytest.approx(4 * 2 * layer)
    assert counted[0] - counted[2] == pytest.approx(4 * (4 * layer + 2 * core))
    assert counted[0] - counted[3] == pytest.approx(2 * model.vocab * model.hidden)


METHODS: dict[str, dict[str, object]] = {
    "full": {},
    "lora": {"method": "lora", "lora": {"targets": "all-linear", "dropout": 0.1}},
    "qlora": {"method": "qlora", "lora": {"precision": "fp32"}},
    "last layers": {"freeze": {"layers": 20, "embedding": True}},
    "upper adapters": {"method": "lora", "freeze": {"layers": 20}},
}


@cache
def states(room: str, optimizer: str, method: str, degrees: str) -> float:
    """Most that a stage has of gradients and moments, as verified. [GiB]."""
    own = json.loads(degrees)
    its = priced(job(room, optimizer=optimizer, **METHODS[method]), **own)
    return max(s.gradients + s.optimizer for s in its.memory.stages)


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "optimizer",
    [
        "adamw",
        "muon",
        *(pytest.param(n, marks=SLOW) for n in ("adamw-8bit", "adafactor")),
    ],
)
@pytest.mark.parametrize("method", [name for name in METHODS if name != "full"])
@pytest.mark.parametrize(
    ("room", "degrees"),
    [
        pytest.param("torchtitan", {"zero_stage": 3}, marks=SLOW),
        pytest.param("megatron", {"tp": 4}, marks=SLOW),
        ("megatron", {"pp": 4}),
        ("torchtitan", {"pp": 2, "tp": 2, "zero_stage": 3}),
    ],
)
def test_every_method_on_every_layout(
    room: str, degrees: dict[str, object], method: str, optimizer: str
) -> None:
    """Prices agree with the verifier's, and no frozen job needs more than a full."""
    own = json.dumps({"stages": "even", **degrees})
    frozen, full = (states(room, optimizer, each, own) for each in (method, "full"))
    assert frozen <= full
