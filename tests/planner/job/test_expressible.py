"""Limits that a framework cannot express, or that no framework knows."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.frameworks import FRAMEWORKS
from planner.hardware.reading.files import SHIPPED
from planner.job.expressible import able, refuse_inexpressible, refuse_unknown_words
from planner.job.loading import from_spec
from planner.job.resolve import resolve
from planner.planning.optimize import optimize
from planner.planning.prediction.predict import predict
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout
from planner.specs.search import SearchSpec


def job(framework: str, **search: object) -> tuple[Workload, ...]:
    plain = {
        "model": "llama-3.2-1b",
        "cluster": "a100-pcie-4",
        "framework": framework,
        "training": {"seq_len": 2048, "global_batch": 64},
        "search": search,
    }
    return resolve(JobSpec.model_validate(plain), file="a test", base=Path())


@pytest.mark.parametrize(
    ("framework", "search", "words"),
    [
        ("accelerate", {"pp": {"min": 8}}, "pp >= 8: it has no pipeline"),
        ("accelerate", {"vpp": 2}, "vpp = 2: it has no schedule of several chunks"),
        ("accelerate", {"ep": [2, 4]}, "ep = 2 or 4: it has no expert parallelism"),
        ("accelerate", {"sp": True}, "sp = true: it has no sequence parallelism"),
        ("torchtitan", {"etp": 2}, "etp = 2: it has no expert tensor axis"),
        ("megatron", {"zero_stage": 3}, "its ZeRO stages are 0 and 1"),
        ("megatron", {"schedule": "gpipe"}, "cannot express schedule gpipe"),
        ("accelerate", {"recompute": "selective"}, "it has none, full"),
        ("torchtitan", {"cp_kind": "ulysses2+ring"}, "it has all-gather, ring"),
        ("accelerate", {"cp_kind": ["ulysses+ring"]}, "it has all-gather, ring"),
    ],
)
def test_a_limit_beyond_a_framework_names_those_that_can(
    framework: str, search: dict[str, object], words: str
) -> None:
    (axis,) = search
    with pytest.raises(BadInputError, match=re.escape(words)) as refused:
        optimize(job(framework, **search))
    assert refused.value.field == f"search.{axis}"
    names = str(refused.value).partition("frameworks that can: ")[2].split(", ")
    assert framework not in names
    assert names
    for name in names:
        refuse_inexpressible(job(name, **search))


def test_a_limit_that_one_of_several_frameworks_can_express_is_not_refused() -> None:
    refuse_inexpressible(job("any", pp=2, zero_stage=3))
    assert able("pp", SearchSpec(pp=2)) == (
        "megatron",
        "torchtitan",
        "deepspeed",
    )
    assert able("etp", SearchSpec(etp=1)) == tuple(
        framework.name for framework in FRAMEWORKS
    )


@pytest.mark.parametrize(
    ("axis", "word", "near"),
    [
        ("schedule", "interleafed", "did you mean interleaved?"),
        ("recompute", "selectiv", "did you mean selective?"),
        ("cp_kind", "rings", "did you mean ring?"),
        ("order", "tp-cp-ep-dp", "did you mean tp-cp-ep-pp-dp or tp-cp-ep-dp-pp?"),
    ],
)
def test_a_word_that_no_framework_has_is_refused_with_the_nearest(
    axis: str, word: str, near: str
) -> None:
    with pytest.raises(BadInputError, match=re.escape(near)) as refused:
        job("torchtitan", **{axis: word})
    assert refused.value.field == f"search.{axis}"


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"tp": 0}, "values are whole numbers from 1"),
        ({"dp": [2, -1]}, "values are whole numbers from 1"),
        ({"zero_stage": 4}, "the ZeRO stages are 0 to 3"),
        ({"pp": []}, "an empty list leaves nothing to choose from"),
        ({"sp": True, "tp": 1}, "sp = true and tp = 1 cannot hold together"),
        ({"sp": True, "tp": {"max": 1}}, "sp = true and tp = 1 cannot hold together"),
    ],
)
def test_limits_that_contradict_themselves_are_refused(
    limits: dict[str, object], words: str
) -> None:
    with pytest.raises(ValidationError, match=re.escape(words)):
        SearchSpec.model_validate(limits)


def test_sp_holds_beside_a_tp_that_may_be_more_than_one() -> None:
    assert SearchSpec.model_validate({"sp": True, "tp": [1, 2]}).sp
    assert SearchSpec.model_validate({"sp": False, "tp": 1}).sp is False


def test_a_stack_is_named_where_its_framework_alone_cannot() -> None:
    """torchtitan compiles by default, which no split of the backward allows."""
    words = "frameworks that can: torchtitan with stack.name torchtitan-eager"
    with pytest.raises(BadInputError, match=re.escape(words)):
        refuse_inexpressible(job("torchtitan", schedule="zb-v"))
    assert able("schedule", SearchSpec(schedule="1f1b")) == tuple(
        framework.name for framework in FRAMEWORKS
    )
    assert able("schedule", SearchSpec(schedule="dualpipe")) == (
        "megatron with stack.name deepseek-v3",
    )


def test_a_layout_names_the_stack_that_runs_its_schedule() -> None:
    layout = PartialLayout(pp=2, schedule="dualpipe-v")
    with pytest.raises(
        BadInputError, match=r"with stack.name torchtitan-eager"
    ) as told:
        predict(job("torchtitan")[0], layout)
    assert told.value.field == "layout.schedule"


def test_combinations_of_modules_are_words_too() -> None:
    refuse_inexpressible(job("megatron", recompute="layernorm+moe_act"))
    with pytest.raises(BadInputError, match="cannot express recompute"):
        refuse_inexpressible(job("torchtitan", recompute="layernorm+moe_act"))
    with pytest.raises(BadInputError, match="no framework has this"):
        job("megatron", recompute="moe_act+layernorm")


def test_combinations_of_recomputed_modules_are_words() -> None:
    refuse_unknown_words(SearchSpec(recompute=("none", "layernorm+moe_act")))
    with pytest.raises(BadInputError, match="did you mean") as refused:
        refuse_unknown_words(SearchSpec(recompute="layernorn+moe_act"))
    assert "layernorm+moe_act" in str(refused.value)
    assert "modules with + between them" in str(refused.value)


def test_a_job_without_a_plan_is_under_a_framework_that_can_run_it() -> None:
    """Not under Megatron, the first of all, where it lacks the model's blocks."""
    fields = {
        "model": "smollm3-3b",
        "cluster": "a100-pcie-4",
        "framework": "any",
        "training": {"seq_len": 2048, "global_batch": 64},
    }
    its = from_spec(
        JobSpec.model_validate(fields), file="a test", base=Path(), catalog=SHIPPED
    )
    assert its.workloads[0].framework.name == "megatron"
    assert its.workload_of(None).framework.name == "accelerate"
