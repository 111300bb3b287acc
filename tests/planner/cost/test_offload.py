"""States and activations in host memory: what leaves the GPU, and what it costs."""

from dataclasses import replace

import pytest
from strategies import framework, small_job

from planner.cost.network.offload_copies import host_update_time
from planner.cost.pricing import Pricing
from planner.errors import BadInputError
from planner.frameworks.stacks import with_stack
from planner.planning.prediction.predict import predict
from planner.specs.answer.estimate import Estimate, StageMemory
from planner.specs.layouts.layout import Offload, PartialLayout
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec
from planner.verify.plan import violations

LAYOUT = PartialLayout(tp=1, pp=1, micro_batch=1, stages="even", recompute="none")


def job(room: str = "megatron") -> Pricing:
    workload = small_job(SearchSpec(), nodes=1)
    return replace(workload, framework=framework(room))


def priced(pricing: Pricing, **fractions: float) -> Estimate:
    layout = LAYOUT.model_copy(update={"offload": Offload(**fractions)})
    plan = predict(pricing, layout)
    device = [stage.device for stage in plan.estimate.memory.stages]
    step = plan.estimate.step_time_s.value
    assert not violations(pricing, plan.layout, step_s=step, device_gib=device)
    assert plan.layout.offload == Offload(**fractions)
    return plan.estimate


def only(estimate: Estimate) -> StageMemory:
    (stage,) = estimate.memory.stages
    return stage


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_an_offloaded_optimizer_leaves_its_memory_and_costs_time(share: float) -> None:
    here, there = priced(job()), priced(job(), optimizer=share)
    left = (1 - share) * only(here).optimizer
    assert only(there).optimizer == pytest.approx(left)
    assert there.step_time_s.value > here.step_time_s.value


def test_the_hosts_update_takes_its_copies_and_its_memory() -> None:
    """1 B parameters a rank: (4 + 2) / (63 x 0.88) + 28 / 76.8 ns each: 473 ms."""
    workload = replace(job(), offload=Offload(optimizer=1.0))
    time = host_update_time(workload, 1e9)
    assert time == pytest.approx(0.4728, rel=1e-3)


def test_sharded_parameters_and_gradients_may_lie_on_the_host() -> None:
    workload = job("torchtitan")
    here = priced(workload)
    there = priced(workload, parameters=1.0, gradients=1.0)
    assert only(there).gradients == 0
    assert only(there).weights < only(here).weights
    assert there.step_time_s.value > here.step_time_s.value


def test_whole_parameters_may_not() -> None:
    with pytest.raises(BadInputError, match="does not shard parameters"):
        priced(job(), parameters=0.5)


def test_activations_on_the_host_leave_two_layers() -> None:
    here, there = priced(job()), priced(job(), activations=1.0)
    assert only(there).activations < 0.2 * only(here).activations
    assert only(there).transient >= only(here).transient
    assert there.step_time_s.value >= here.step_time_s.value


@pytest.mark.parametrize(("sequences", "late"), [(8, True), (16, False)])
def test_gradients_that_torch_frees_take_the_room_of_activations(
    sequences: int, *, late: bool
) -> None:
    """In the only backward of a step they appear as activations go."""
    room = with_stack(framework("torchtitan"), "torchtune")
    limits = replace(room.limits, zero_stages=(0, 1, 2, 3))
    training = TrainingSpec(seq_len=2048, global_batch=sequences)
    workload = replace(job(), training=training, framework=replace(room, limits=limits))
    plan = predict(workload, LAYOUT.model_copy(update={"zero_stage": 0}))
    stages = plan.estimate.memory.stages
    assert (stages[0].gradients == 0) == late
    device = [stage.device for stage in stages]
    step = plan.estimate.step_time_s.value
    assert not violations(workload, plan.layout, step_s=step, device_gib=device)
