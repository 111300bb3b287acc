"""A search offers only what a writer of the framework has words for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from strategies import small_job

from planner.cost.estimate.estimate import estimate
from planner.cost.pricing import Pricing
from planner.errors import BadInputError
from planner.frameworks import FRAMEWORKS
from planner.frameworks.stacks import read_stack, stack_names
from planner.hardware.reading.files import SHIPPED
from planner.job.case import Case
from planner.job.expressible import unwritable
from planner.job.loading import from_spec
from planner.job.variants import variants
from planner.launch.registry import TARGETS
from planner.planning.explanation import explain
from planner.planning.prediction.predict import complete
from planner.search.space.space import enumerate_space
from planner.specs.job import JobSpec
from planner.specs.layouts.context import CP_KINDS
from planner.specs.layouts.layout import PartialLayout
from planner.specs.search import SearchSpec
from planner.specs.training import LoraSpec
from planner.verify.legality import rule_violations

SAMPLE = 20
"""Layouts of a space that are looked at one by one. [1]"""


def job(framework: str, **fields: Any) -> JobSpec:
    training = {"seq_len": 512, "global_batch": 16} | fields.pop("training", {})
    given = {"model": "llama-3.2-1b", "cluster": "dgx-a100-1-node"} | fields
    return JobSpec.model_validate(
        {"framework": framework, "training": training, **given}
    )


@pytest.mark.parametrize(
    ("framework", "fields", "field"),
    [
        ("deepspeed", {"training": {"method": "lora"}}, "training.method"),
        ("torchtitan", {"training": {"method": "lora"}}, "training.method"),
        ("torchtitan", {"training": {"precision": "fp16"}}, "training.precision"),
        ("torchtitan", {"training": {"optimizer": "lion"}}, "training.optimizer"),
        ("megatron", {"training": {"method": "qlora"}}, "training.method"),
        ("megatron", {"training": {"optimizer": "adamw-8bit"}}, "training.optimizer"),
        ("megatron", {"model": "opt-1.3b"}, "model"),
        ("torchtitan", {"model": "gpt2"}, "model"),
        ("any", {"training": {"optimizer": "lamb"}}, "training.optimizer"),
    ],
)
def test_a_job_that_a_framework_cannot_run_is_bad_input(
    framework: str, fields: dict[str, Any], field: str
) -> None:
    its = from_spec(job(framework, **fields), "", Path(), catalog=SHIPPED)
    with pytest.raises(BadInputError, match="cannot run this job") as refused:
        variants(its.workloads)
    assert refused.value.field == field
    assert "frameworks that can: " in str(refused.value)


@pytest.mark.parametrize(
    ("fields", "able"),
    [
        ({"training": {"method": "qlora"}}, {"accelerate"}),
        ({"model": "opt-1.3b"}, {"accelerate", "deepspeed"}),
        ({"training": {"precision": "fp16"}}, {"megatron", "accelerate", "deepspeed"}),
    ],
)
def test_any_considers_only_frameworks_that_can_train_the_job(
    fields: dict[str, Any], able: set[str]
) -> None:
    its = from_spec(job("any", **fields), "", Path(), catalog=SHIPPED)
    assert {v.framework.name for v in variants(its.workloads)} == able


def test_adapters_have_no_tensor_ranks_under_accelerate() -> None:
    lora = from_spec(
        job("accelerate", training={"method": "lora"}), "", Path(), catalog=SHIPPED
    )
    pricing = Pricing.candidate(lora.workloads[0])
    space = enumerate_space(pricing)
    assert set(space.meshes.tp[space.mesh].tolist()) == {1}
    everything = enumerate_space(pricing.unwritten())
    assert everything.meshes.tp.max() > 1


LONG = ("megatron", "deepspeed")
"""Frameworks of which the gate asks; the first line asks the other two. [text]"""


@pytest.mark.parametrize(
    "framework",
    [
        pytest.param(f.name, marks=[pytest.mark.slow] * (f.name in LONG))
        for f in FRAMEWORKS
    ],
)
def test_search_and_verifier_remove_alike(framework: str) -> None:
    """What the space drops for want of words is what the verifier objects to."""
    search = SearchSpec(micro_batch=1, pp=1, recompute="none")
    workload = small_job(search, name=framework, config={"num_key_value_heads": 2})
    room = next(f for f in FRAMEWORKS if f.name == framework)
    workload = replace(workload, framework=room)
    if framework == "accelerate":
        its = workload.training.model_copy(
            update={"method": "lora", "lora": LoraSpec(targets="all-linear")}
        )
        workload = replace(workload, training=its)
    kept, free = set(_rows(workload)), set(_rows(workload.unwritten()))
    assert kept <= free
    for row in sorted(free)[:: max(len(free) // SAMPLE, 1)]:
        assert _objects(workload, row) is (row not in kept), row


Row = tuple[int, ...]
FIELDS = ("tp", "pp", "cp", "ep", "dp", "dp_shard", "zero", "micro_batch")


def _rows(workload: Any) -> list[Row]:
    space = enumerate_space(workload)
    used = space.meshes.take(space.mesh)
    kind = CP_KINDS.index(_kind(workload))
    one_kind = (used.cp == 1) | (used.cp_kind == kind)
    kept = one_kind & (used.pp == 1) & (used.sp == 0)
    columns = [getattr(used, name)[kept].tolist() for name in FIELDS]
    return list(zip(*columns, strict=True))


def _objects(workload: Any, row: Row) -> bool:
    names = {"zero": "zero_stage"}
    fields = {names.get(n, n): v for n, v in zip(FIELDS, row, strict=True)}
    partial = PartialLayout.model_validate(
        fields | {"sp": False, "recompute": "none", "cp_kind": _kind(workload)}
    )
    layout = complete(workload, partial)
    broken = rule_violations(workload, layout)
    return any("no words for" in breach.sentence for breach in broken)


def _kind(workload: Any) -> str:
    return str(workload.framework.limits.cp_kinds[0])


def test_a_stack_without_files_names_a_target_that_there_is() -> None:
    known = {target.name for target in TARGETS}
    for framework in FRAMEWORKS:
        assert {writer.target for writer in framework.writers} <= known
        for name in stack_names(framework.name):
            nearest = read_stack(framework.name, name).nearest_target
            assert nearest == "" or nearest in known, name


def test_every_target_is_a_writer_of_its_room() -> None:
    rooms = {f.name: {w.target for w in f.writers} for f in FRAMEWORKS}
    for target in TARGETS:
        assert target.name in rooms[target.framework]


@pytest.mark.slow
def test_what_is_advised_can_be_planned() -> None:
    spec = job(
        "torchtitan",
        model="llama-3.1-8b",
        cluster="rtx-4090-4",
        training={"seq_len": 4096},
    )
    case = Case(spec, "job", Path(), catalog=SHIPPED)
    told = explain(case, PartialLayout(), time_limit=10.0)
    assert told.relaxations
    for each in told.relaxations:
        assert "qlora" not in " ".join(each.assignments)
        there = case.assigned(each.assignments)
        assert any(not unwritable(workload) for workload in there.workloads)


def test_fp16_without_shards_is_priced_as_what_trainer_runs() -> None:
    """fp32 weights under autocast: the memory of the stack that says so in bf16."""

    def held(**fields: Any) -> float:
        spec = job("accelerate", cluster="rtx-4090-1", **fields)
        (workload,) = from_spec(spec, "", Path(), catalog=SHIPPED).workloads
        layout = complete(workload, PartialLayout(micro_batch=1, recompute="none"))
        return estimate(workload, layout).memory.peak_device_gib.value

    autocast = held(stack={"name": "hf-amp"})
    assert held(training={"precision": "fp16"}) == pytest.approx(autocast)
    assert held() < 0.75 * autocast
