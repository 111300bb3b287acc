"""The variants of a job: what the user allows and the framework can, each once."""

from dataclasses import replace
from typing import Any

import pytest
from strategies import framework, small_job

from planner.cost.pricing import Pricing
from planner.errors import BadInputError
from planner.frameworks.stacks import with_stack
from planner.job.methods import frozen_model
from planner.job.variants import trainings, variants, with_settings
from planner.specs.layouts.offload import CATEGORIES
from planner.specs.search import SearchSpec
from planner.specs.training import FreezeSpec, LoraSpec

Shares = dict[str, float]
ALL_BUT_ONE = 5 / 6
"""Megatron offloads whole layers, and keeps the last of six. [1]"""


def job(name: str = "megatron", **search: Any) -> Pricing:
    return small_job(SearchSpec(**search), name=name)


def shares(pricing: Pricing) -> Shares:
    """What lies in host memory, by category."""
    held = {name: getattr(pricing.offload, name) for name in CATEGORIES}
    return {name: share for name, share in held.items() if share}


def offloads(name: str = "megatron", **search: Any) -> list[Shares]:
    return [shares(variant) for variant in variants([job(name, **search)])]


def test_a_job_that_allows_nothing_has_one_variant() -> None:
    for search in ({}, {"offload": False}, {"offload": "none"}):
        (variant,) = variants([job(**search)])
        assert shares(variant) == {}
        assert variant.training == job().training


def test_true_is_every_union_of_what_the_framework_moves_together() -> None:
    assert offloads(offload=True) == [
        {},
        {"activations": ALL_BUT_ONE},
        {"optimizer": 1.0},
        {"optimizer": 1.0, "activations": ALL_BUT_ONE},
    ]
    together = {"optimizer": 1.0, "parameters": 1.0, "gradients": 1.0}
    assert offloads("torchtitan", offload=True) == [{}, together]


def test_the_full_space_also_has_quarters_of_what_has_parts() -> None:
    """Megatron: none and four shares of two things; others move all or nothing."""
    found = offloads(offload=True, space="full", gradient_dtype="fp32")
    assert len(found) == 5 * 5
    assert {"optimizer": 0.25, "activations": 4 / 6} in found
    totals = [sum(each.values()) for each in found]
    assert totals == sorted(totals)
    assert len(offloads("torchtitan", offload=True, space="full")) == 2
    assert len(offloads("accelerate", offload="activations", space="full")) == 1


@pytest.mark.parametrize("layers", [1, 2, 3, 5, 6])
def test_every_setting_is_there_once_however_few_the_layers(layers: int) -> None:
    """A quarter of two layers is no layer: that is not another way to offload none."""
    plain = small_job(SearchSpec()).model
    model = replace(plain, runs=((plain.kinds[0], layers),))
    its = replace(job(offload=True, space="full", gradient_dtype="fp32"), model=model)
    found = [shares(variant) for variant in variants([its])]
    assert len(found) == len({str(each) for each in found})
    limits = its.search.model_copy(update={"offload": "activations"})
    named = replace(its, search=limits)
    held = [shares(variant) for variant in variants([named])]
    assert all("activations" in each for each in held)
    assert bool(held) == (layers > 1)


def test_a_share_needs_the_zero_stage_that_the_framework_says() -> None:
    """DeepSpeed's ratio is for stage 3; all of the optimizer for stage 1 and on."""
    limits = with_stack(framework("accelerate"), "hf-trainer").limits
    least = [limits.offload_least("optimizer", share) for share in (1.0, 0.5)]
    assert least == [1, 3]
    assert limits.offload_least("activations", 1.0) == 0


def test_a_list_is_tried_as_it_stands() -> None:
    listed = ["activations", "optimizer"]
    assert offloads(offload=listed) == [{"activations": ALL_BUT_ONE}, {"optimizer": 1}]
    assert offloads(offload=["optimizer", "none"]) == [{}, {"optimizer": 1.0}]


def test_methods_and_optimizers_multiply_in_the_order_listed() -> None:
    open_to = job(method=["lora", "full"], optimizer=["adamw-8bit", "adamw"])
    pairs = [(v.training.method, v.training.optimizer) for v in variants([open_to])]
    assert pairs == [
        ("lora", "adamw-8bit"),
        ("lora", "adamw"),
        ("full", "adamw-8bit"),
        ("full", "adamw"),
    ]


def test_fewer_offloads_come_before_the_order_listed() -> None:
    open_to = job(method=["lora", "full"], offload=["optimizer", "none"])
    order = [(v.training.method, shares(v)) for v in variants([open_to])]
    whole = {"optimizer": 1.0}
    assert order == [("lora", {}), ("full", {}), ("lora", whole), ("full", whole)]


def test_only_the_gpu_updates_8_bit_states() -> None:
    """The optimizer is offloaded under adamw and never under adamw-8bit."""
    open_to = job(optimizer=["adamw", "adamw-8bit"], offload=True)
    held = [v.training.optimizer for v in variants([open_to]) if v.offload.optimizer]
    assert held == ["adamw", "adamw"]


@pytest.mark.parametrize(
    ("name", "search"),
    [
        ("torchtitan", {"offload": "optimizer"}),
        ("megatron", {"offload": ["none", "parameters"]}),
        ("megatron", {"offload": "optimizer", "optimizer": "adamw-8bit"}),
    ],
)
def test_a_listed_offload_that_nothing_can_do_is_refused(
    name: str, search: dict[str, Any]
) -> None:
    with pytest.raises(BadInputError, match="offload this") as refused:
        variants([job(name, **search)])
    assert refused.value.field == "search.offload"
    assert "none" in str(refused.value.allowed)


def test_a_paged_optimizer_is_not_offloaded_as_well() -> None:
    open_to = job(optimizer=["paged-adamw-8bit"], offload=True)
    assert all(not v.offload.optimizer for v in variants([open_to]))


def test_under_any_a_listed_offload_needs_one_framework_that_can() -> None:
    limits = SearchSpec(offload=["none", "optimizer"])
    both = [small_job(limits, name=name) for name in ("megatron", "torchtitan")]
    found = [(v.framework.name, shares(v)) for v in variants(both)]
    assert found == [
        ("megatron", {}),
        ("torchtitan", {}),
        ("megatron", {"optimizer": 1.0}),
    ]


def test_a_framework_that_offloads_nothing_has_one_variant() -> None:
    room = framework("megatron")
    rigid = replace(room, limits=replace(room.limits, offload=frozenset()))
    (variant,) = variants([replace(job(offload=True), framework=rigid)])
    assert shares(variant) == {}


def test_full_training_reads_no_block_of_adapters() -> None:
    """The rank stays with lora and is dropped with full."""
    adapted = job().training.model_copy(
        update={"method": "lora", "lora": LoraSpec(rank=64)}
    )
    search = SearchSpec(method=["full", "lora"])
    ranks = {t.method: t.lora.rank for t in trainings(adapted, search)}
    assert ranks == {"full": LoraSpec().rank, "lora": 64}


def test_every_method_gets_the_layers_that_it_freezes() -> None:
    """Frozen layers pass the gradient on under full, and have none under lora."""
    given = job(method=["full", "lora"])
    training = given.training.model_copy(update={"freeze": FreezeSpec(layers=2)})
    frozen = frozen_model(training, given.model)
    start = replace(given, training=training, model=frozen)
    roles = {v.training.method: v.model.runs[0] for v in variants([start])}
    assert {name: (kind.role, n) for name, (kind, n) in roles.items()} == {
        "full": ("passed", 2),
        "lora": ("below", 2),
    }
    assert frozen.thawed() == given.model


def test_a_plans_settings_lead_back_to_its_workload() -> None:
    open_to = job(method=["full", "lora"], optimizer=["adamw", "adamw-8bit"])
    for variant in variants([open_to]):
        chosen = open_to.search.settings_of(variant.training)
        assert with_settings(open_to, chosen).training == variant.training
