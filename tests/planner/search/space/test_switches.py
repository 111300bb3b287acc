"""Switches that a framework refuses with some plans: priced only where they are on."""

from dataclasses import replace
from typing import Any

import pytest
from against_every_plan import check_answer, check_space
from axes_of_jobs import cluster
from brute_force import best_plans
from every_plan import choices
from strategies import framework, small_job

from planner.cost.estimate.estimate import estimate
from planner.cost.pricing import Pricing
from planner.frameworks.stacks import with_stack
from planner.hardware.calibration import calibration
from planner.hardware.reading.files import SHIPPED
from planner.job.variants import variants
from planner.models import from_config
from planner.planning.optimize import optimize
from planner.planning.prediction.predict import predict
from planner.search.space.switches import with_and_without
from planner.specs.layouts.layout import PartialLayout
from planner.specs.search import SearchSpec

MOE = {
    "model_type": "mixtral",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "vocab_size": 512,
    "tie_word_embeddings": False,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 4096,
}
STACKS = ("nemo-2026", "deepseek-v3")


def spread(stack: str = "nemo-2026", **limits: Any) -> Pricing:
    """Experts over nodes of one GPU each, whose exchanges another batch can hide."""
    its = with_stack(framework("megatron"), stack)
    quick = {"host_forward": 0.0, "host_backward": 0.0, "host_experts": 0.0}
    plain = replace(
        its,
        limits=replace(its.limits, recompute_modules=()),
        profile=its.profile.model_copy(update=quick),
    )
    topology = cluster("gh200-1", 4, (), 1.0, ())
    job = small_job(SearchSpec(**({"tp": 1, "cp": 1} | limits)))
    return replace(
        job,
        model=from_config(MOE, source="test", name="experts"),
        framework=plain,
        topology=topology,
        calibration=calibration(topology.cluster.gpu.name, SHIPPED),
        training=job.training.model_copy(update={"global_batch": 8, "seq_len": 1024}),
    )


def with_scope(job: Pricing, scope: str) -> Pricing:
    limits = replace(job.framework.limits, recompute_scope=scope)
    return replace(job, framework=replace(job.framework, limits=limits))


@pytest.mark.parametrize(
    ("space", "scope"),
    [
        ("default", "plan"),
        ("full", "virtual-stage"),
        pytest.param("default", "virtual-stage", marks=pytest.mark.slow),
        pytest.param("full", "plan", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("stack", STACKS)
def test_every_plan_is_searched_with_the_switches_that_it_has(
    stack: str, space: str, scope: str
) -> None:
    """The best of all plans, each once, whichever way the switch is."""
    limits = {"ep": (1, 4), "pp": (1, 2), "zero_stage": 1, "micro_batch": (1, 2)}
    kinds = ("none", "full") if scope == "plan" else ("none", "full", "selective")
    job = with_scope(
        spread(stack, **limits, space=space, recompute=kinds, dp_shard=(2, 4)), scope
    )
    check_space(job)
    check_answer(job)


@pytest.mark.parametrize(
    ("layout", "on"),
    [
        ({"ep": 4, "recompute": "none"}, True),
        ({"ep": 1, "recompute": "none"}, False),
        ({"ep": 4, "recompute": "full"}, False),
        ({"ep": 4, "recompute": "full:1"}, False),
        ({"ep": 4, "recompute": "selective"}, True),
        ({"ep": 4, "micro_batch": 2}, False),
        ({"ep": 2, "pp": 2, "recompute": "none"}, False),
        ({"ep": 2, "pp": 2, "vpp": 2, "recompute": "none"}, True),
        ({"ep": 2, "pp": 2, "vpp": 2, "recompute": "full"}, False),
    ],
)
def test_a_layout_is_priced_with_what_megatron_takes(
    layout: dict[str, Any], *, on: bool
) -> None:
    """The flag's conditions one by one, against the stack without the switch."""
    job = spread()
    bare = job.framework.profile.model_copy(update={"ep_overlap": False})
    without = replace(job, framework=replace(job.framework, profile=bare))
    asked = PartialLayout.model_validate(layout)
    one, other = (predict(its, asked).estimate for its in (job, without))
    assert one.stack["ep_overlap"] is on
    assert (one.step_time_s.value < other.step_time_s.value) is on


def test_what_is_listed_is_priced_as_it_was_found() -> None:
    """Plans of both variants stand in one list, each at its own price."""
    job = spread(ep=4, zero_stage=1, recompute=("none", "full"))
    result = optimize([job], top=8)
    assert {plan.estimate.stack["ep_overlap"] for plan in result.plans} == {True, False}
    (best,) = {tied.step_s for tied in best_plans(variants([job]))}
    assert result.plans[0].estimate.step_time_s.value == best
    for plan in result.plans:
        again = estimate(job, plan.layout).step_time_s.value
        assert plan.estimate.step_time_s.value == again


def test_variants_share_no_plan_and_leave_none_out() -> None:
    job = spread(space="full", recompute=("none", "full"))
    parts = [set(choices(one)) for one in with_and_without(job)]
    whole = set(choices(job))
    assert set().union(*parts) == whole
    assert sum(map(len, parts)) == len(whole)
