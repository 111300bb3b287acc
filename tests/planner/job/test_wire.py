"""Formats on the wire and compute formats, as a search may choose them."""

from dataclasses import replace
from typing import Any

import pytest
from strategies import small_job

from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.job.variants import variants, with_settings
from planner.planning.optimize import optimize
from planner.planning.prediction.predict import complete, predict
from planner.specs.layouts.formats import CommDtype
from planner.specs.layouts.layout import PartialLayout
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec
from planner.verify.legality import rule_violations

Pair = tuple[str, str]


def job(name: str = "megatron", precision: str = "bf16", **search: Any) -> Workload:
    workload = small_job(SearchSpec(**search), name=name)
    fields = workload.training.model_dump(exclude_unset=True)
    training = TrainingSpec.model_validate(fields | {"precision": precision})
    return replace(workload, training=training)


def pairs(*jobs: Workload) -> list[Pair]:
    """Formats of gradients and parameters of every variant, in order."""
    found = [variant.sends for variant in variants(list(jobs))]
    return [(formats.gradients, formats.parameters) for formats in found]


@pytest.mark.parametrize("name", ["megatron", "torchtitan", "accelerate", "deepspeed"])
def test_the_default_space_sends_in_the_frameworks_own_formats(name: str) -> None:
    (variant,) = variants([job(name)])
    assert variant.sends == variant.framework.own_formats
    assert variant.recipe == variant.framework.recipe
    assert variant.chosen == {}


@pytest.mark.parametrize(
    ("name", "precision", "expected"),
    [
        ("megatron", "bf16", [("fp32", "bf16"), ("bf16", "bf16")]),
        ("megatron", "fp8", [("fp32", "fp8"), ("bf16", "fp8")]),
        ("megatron", "fp16", [("fp32", "bf16")]),
        ("torchtitan", "bf16", [("fp32", "bf16")]),
        ("torchtitan", "fp8", [("fp32", "fp8")]),
        ("accelerate", "bf16", [("bf16", "bf16")]),
    ],
)
def test_the_full_space_has_every_format_of_the_framework(
    name: str, precision: str, expected: list[Pair]
) -> None:
    assert pairs(job(name, precision, space="full")) == expected


def test_a_list_is_tried_in_its_order_in_any_space() -> None:
    both = job(gradient_dtype=["bf16", "fp32"])
    assert pairs(both) == [("bf16", "bf16"), ("fp32", "bf16")]
    assert pairs(job(gradient_dtype="bf16")) == [("bf16", "bf16")]


@pytest.mark.parametrize("zero", [0, 1])
@pytest.mark.parametrize("moment", [{"tp": 1}, {"tp": 2, "pp": 2}, {"dp_shard": 2}])
def test_narrow_parameters_need_no_more_time_or_memory(
    zero: int, moment: dict[str, int]
) -> None:
    """Why the full space has the narrowest alone: here on a few layouts."""
    if zero == 0 and "dp_shard" in moment:
        return
    at = {"zero_stage": zero, "micro_batch": 1, **moment}
    wide, narrow = (
        predict(
            job(precision="fp8"),
            PartialLayout.model_validate(at | {"comm_dtype": {"parameters": word}}),
        ).estimate
        for word in ("bf16", "fp8")
    )
    assert narrow.step_time_s.value <= wide.step_time_s.value
    peaks = [[stage.device for stage in each.memory.stages] for each in (narrow, wide)]
    assert all(ours <= theirs for ours, theirs in zip(*peaks, strict=True))


def test_a_framework_without_a_listed_format_is_left_out() -> None:
    jobs = [job(name, gradient_dtype="bf16") for name in ("megatron", "torchtitan")]
    assert [v.framework.name for v in variants(jobs)] == ["megatron"]


@pytest.mark.parametrize(
    ("name", "precision", "search", "words"),
    [
        ("torchtitan", "bf16", {"gradient_dtype": "bf16"}, "torchtitan sends no grad"),
        ("megatron", "bf16", {"parameter_dtype": "fp8"}, "no parameters in this form"),
        ("megatron", "bf16", {"parameter_dtype": "fp32"}, "in this format under bf16"),
    ],
)
def test_a_listed_format_that_no_framework_has_is_refused(
    name: str, precision: str, search: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadInputError, match=words) as no:
        variants([job(name, precision, **search)])
    assert no.value.field == f"search.{next(iter(search))}"


def test_narrow_gradients_are_kept_and_sent_in_two_bytes() -> None:
    """2 + 2 + 12 / S in place of 2 + 4 + 12 / S, and a 4 B copy of the shard."""
    wide, narrow = variants([job(gradient_dtype=["fp32", "bf16"])])
    assert (wide.recipe.gradient_bytes, narrow.recipe.gradient_bytes) == (4, 2)
    assert [w.recipe.states[1].gradients for w in (wide, narrow)] == [4, 2]
    assert [w.recipe.states[1].weights for w in (wide, narrow)] == [2, 2]
    steps = [w.recipe.step_gradient_bytes for w in (wide, narrow)]
    assert steps == [0, 4]


def test_gathers_in_fp8_keep_the_weights_so_under_megatron_alone() -> None:
    """torchtitan casts each shard of fp32 as it is gathered."""
    for name, primary in (("megatron", True), ("torchtitan", False)):
        (variant,) = variants([job(name, "fp8", parameter_dtype="fp8")])
        assert variant.recipe.gather_bytes == 1
        assert variant.recipe.fp8_primary is primary


def test_a_plan_says_what_it_sends_in_and_leads_back_to_its_workload() -> None:
    open_to = job(gradient_dtype=["fp32", "bf16"], tp=1, pp=1, zero_stage=1)
    best = optimize([open_to], top=2).plans[0]
    chosen = best.settings["gradient_dtype"]
    assert best.layout.comm_dtype.gradients == chosen
    assert f"gradient_dtype {chosen}" in best.chosen
    under = Pricing.of(with_settings(open_to, best.settings), best.layout)
    assert under.sends == best.layout.comm_dtype
    again = predict(open_to, PartialLayout.model_validate(best.layout.model_dump()))
    assert again.estimate.step_time_s == best.estimate.step_time_s
    assert again.estimate.memory == best.estimate.memory


def test_half_the_bytes_are_never_slower() -> None:
    at = {"tp": 1, "pp": 2, "micro_batch": 1}
    layouts = [
        PartialLayout.model_validate(at | {"comm_dtype": {"gradients": word}})
        for word in ("fp32", "bf16")
    ]
    wide, narrow = (predict(job(), layout).estimate for layout in layouts)
    assert narrow.step_time_s.value <= wide.step_time_s.value
    grads = [e.memory.stages[0].gradients for e in (wide, narrow)]
    assert grads[0] == pytest.approx(2 * grads[1], rel=1e-3)


def test_a_given_layout_keeps_the_formats_that_the_framework_has() -> None:
    narrow = {"comm_dtype": {"gradients": "bf16", "parameters": "fp8"}}
    with pytest.raises(BadInputError, match="no parameters in fp8 under bf16") as no:
        complete(job(), PartialLayout.model_validate(narrow))
    assert no.value.field == "layout.comm_dtype.parameters"
    assert no.value.allowed == "bf16"
    kept = complete(job(precision="fp8"), PartialLayout.model_validate(narrow))
    assert kept.comm_dtype == CommDtype(gradients="bf16", parameters="fp8")


def test_the_verifier_knows_what_a_framework_sends_in() -> None:
    workload = job(gradient_dtype="fp32")
    layout = complete(workload, PartialLayout())
    sent = CommDtype(gradients="bf16", parameters="fp8")
    assert rule_violations(workload, layout) == []
    broken = rule_violations(workload, layout.model_copy(update={"comm_dtype": sent}))
    assert [breach.sentence for breach in broken] == [
        "the search block limits gradient_dtype to fp32: bf16",
        "megatron sends no parameters in fp8 at bf16",
    ]


def test_precisions_multiply_and_are_said() -> None:
    open_to = job(precision="bf16")
    open_to = replace(open_to, search=SearchSpec(precision=["fp8", "bf16"]))
    found = variants([open_to])
    assert [v.training.precision for v in found] == ["fp8", "bf16"]
    assert found[0].chosen == {"precision": "fp8"}


def test_a_precision_is_tried_where_a_framework_has_it() -> None:
    jobs = [job(name) for name in ("torchtitan", "megatron", "accelerate")]
    listed = SearchSpec(precision=["mxfp8", "nvfp4"])
    found = variants([replace(each, search=listed) for each in jobs])
    assert [(v.framework.name, v.training.precision) for v in found] == [
        ("torchtitan", "mxfp8"),
        ("megatron", "mxfp8"),
        ("megatron", "nvfp4"),
    ]


def test_a_precision_that_no_framework_has_names_those_that_do() -> None:
    words = "torchtitan cannot compute in this format; megatron can"
    with pytest.raises(BadInputError, match=words) as no:
        variants([replace(job("torchtitan"), search=SearchSpec(precision="nvfp4"))])
    assert no.value.field == "search.precision"
    assert no.value.allowed == "bf16, fp8, mxfp8"


def test_the_precision_of_the_training_block_is_taken_at_its_word() -> None:
    (variant,) = variants([job("torchtitan", "nvfp4")])
    assert variant.training.precision == "nvfp4"
