"""Names of a job are looked up, overrides land where they belong."""

import json
from pathlib import Path
from typing import Any

import pytest

from planner.cost.estimate.stack import stack_in_force
from planner.cost.kernels import attention_kernel
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.frameworks import FRAMEWORKS
from planner.job.resolve import cautions, resolve, resolved_spec
from planner.models import read_preset
from planner.specs.frameworks.profile import Profile
from planner.specs.job import JobSpec
from planner.specs.reading.read import read_spec

JOBS = sorted((Path(__file__).resolve().parents[3] / "configs/jobs").glob("*.yaml"))
GPUS = {
    "bloom-176b-384-a100": 384,
    "deepseek-v3-2048-h800": 2048,
    "gpt-oss-120b-64-h200": 64,
    "llama-2-7b-4-rtx-4090": 4,
    "llama-3.1-405b-4608-gb200": 4608,
    "mixtral-8x22b-64-mi300x": 64,
    "qwen3-235b-a22b-256-b200": 256,
    "deepseek-v3-2048-h100": 2048,
    "gpt3-175b-512-a100": 512,
    "gpt3-175b-1536-a100": 1536,
    "megatron-1t-3072-a100": 3072,
    "mt-nlg-530b-2240-a100": 2240,
    "llama-3-8b-8-a100": 8,
    "llama-3.1-405b-128k-16k-h100": 16384,
    "llama-3.1-405b-16k-h100": 16384,
    "llama-3.1-405b-8k-h100": 8192,
    "llama-3.1-405b-1013-of-1024-nodes": 8104,
    "llama-3.1-405b-two-phases": 16384,
    "tiny-llama-2-a6000": 2,
    "llama-3.1-70b-1000-h100": 1000,
    "llama-3.1-70b-32-h100": 32,
    "llama-3.1-70b-512-h100-256-a100": 768,
    "llama-3.1-70b-full-a100": 32,
    "llama-3.1-70b-qlora-2-a6000": 2,
    "llama-3.1-8b-lora-rtx-4090": 1,
    "mixtral-8x7b-64-h100": 64,
}


def job(**fields: Any) -> JobSpec:
    training = {"seq_len": 2048, "global_batch": 64}
    plain = {"model": "llama-3-8b", "cluster": "dgx-h100-8-nodes", "training": training}
    return JobSpec.model_validate(plain | fields)


def resolved(spec: JobSpec, base: Path = Path()) -> Workload:
    (workload,) = resolve(spec, file="job.yaml", base=base)
    return workload


def test_every_job_file_is_known_here() -> None:
    assert [path.stem for path in JOBS] == sorted(GPUS)


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_a_job_file_resolves_and_says_what_it_is(path: Path) -> None:
    schema, comment, *_ = path.read_text().splitlines()
    assert schema == "# yaml-language-server: $schema=../schema/job.json"
    assert comment.startswith("# ")
    spec = read_spec(path)
    workload = resolved(spec, path.parent)
    assert workload.gpus == GPUS[path.stem]
    assert cautions(workload) == ()
    degrees = spec.layout.given()
    if degrees:
        ranks = [int(str(degrees.get(axis, 1))) for axis in ("tp", "pp", "cp", "dp")]
        assert ranks[0] * ranks[1] * ranks[2] * ranks[3] == workload.gpus


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_a_resolved_spec_stands_on_its_own(path: Path) -> None:
    spec = read_spec(path)
    before = resolved(spec, path.parent)
    plain = json.loads(json.dumps(resolved_spec(spec, before, base=path.parent)))
    after = resolved(JobSpec.model_validate(plain), Path("/nowhere"))
    assert after.model.runs == before.model.runs
    assert after.model.name == before.model.name
    assert after.topology.cluster == before.topology.cluster
    assert (after.framework, after.training) == (before.framework, before.training)


def test_any_is_every_framework() -> None:
    workloads = resolve(job(framework="any"), file="job.yaml", base=Path())
    assert [w.framework.name for w in workloads] == [f.name for f in FRAMEWORKS]


def test_a_model_is_the_same_by_name_by_path_by_folder_and_inline(
    tmp_path: Path,
) -> None:
    config = read_preset("llama-3-8b").config
    (tmp_path / "config.json").write_text(json.dumps(config))
    named = resolved(job()).model
    for model in ("config.json", ".", config):
        found = resolved(job(model=model), tmp_path).model
        assert found.runs == named.runs
        assert found.parameters == named.parameters


def test_a_model_folder_is_inlined_in_the_resolved_spec(tmp_path: Path) -> None:
    config = read_preset("llama-3-8b").config
    (tmp_path / "config.json").write_text(json.dumps(config))
    spec = job(model=".")
    plain = resolved_spec(spec, resolved(spec, tmp_path), base=tmp_path)
    assert plain["model"]["hidden_size"] == 4096


def test_a_stack_override_replaces_one_field_and_no_other() -> None:
    plain = resolved(job()).framework.profile
    changed = resolved(job(stack={"memory_traffic": 1.7})).framework.profile
    assert changed == plain.model_copy(update={"memory_traffic": 1.7})


def test_attention_is_short_for_attention_kernel() -> None:
    workload = resolved(job(stack={"attention": "fa2"}))
    assert attention_kernel(workload) == "fa2"
    assert stack_in_force(Pricing.candidate(workload))["attention_kernel"] == "fa2"


@pytest.mark.parametrize(
    ("framework", "word", "dispatch"),
    [
        ("megatron", "alltoall", "all-to-all"),
        ("megatron", "hybridep", "deduplicated"),
        ("torchtitan", "standard", "all-to-all"),
        ("torchtitan", "deepep", "deduplicated"),
    ],
)
def test_a_framework_has_its_own_words_for_the_dispatch_of_tokens(
    framework: str, word: str, dispatch: str
) -> None:
    spec = job(framework=framework, stack={"dispatcher": word})
    assert resolved(spec).framework.profile.expert_dispatch == dispatch


def test_a_searched_precision_that_the_gpu_lacks_is_refused() -> None:
    with pytest.raises(BadInputError, match="no mxfp8 units") as no:
        resolved(job(framework="megatron", search={"precision": ["bf16", "mxfp8"]}))
    assert (no.value.field, no.value.value) == ("search.precision", "mxfp8")


def test_a_dispatcher_of_another_framework_is_refused() -> None:
    with pytest.raises(BadInputError, match="torchtitan has no such dispatcher") as no:
        resolved(job(framework="torchtitan", stack={"dispatcher": "alltoall"}))
    assert no.value.allowed == "standard, deepep, hybridep"


def test_eager_blocks_take_the_eager_stack_and_overrides_win() -> None:
    stack = {"compile": False, "memory_traffic": 2.5}
    profile = resolved(job(framework="torchtitan", stack=stack)).framework.profile
    named = resolved(job(framework="torchtitan", stack={"name": "torchtitan-eager"}))
    assert profile == named.framework.profile.model_copy(update={"memory_traffic": 2.5})
    assert not profile.compile


def test_a_named_stack_replaces_profile_and_recipe() -> None:
    workload = resolved(job(stack={"name": "megatron-2021", "latency": 2.0}))
    assert workload.framework.profile.name == "megatron-2021"
    assert workload.framework.profile.attention_kernel == "unfused"
    assert workload.framework.profile.latency == 2.0
    assert workload.framework.recipe.gradient_bytes == 2


def test_an_unknown_stack_names_the_nearest() -> None:
    with pytest.raises(BadInputError, match=r"did you mean megatron-2021") as error:
        resolved(job(stack={"name": "megatron2021"}))
    assert error.value.field == "stack.name"


def test_a_recipe_override_reaches_the_recipe_alone() -> None:
    stack = {"recipe": {"logits_bytes": 6, "accumulates_unsharded": False}}
    workload = resolved(job(framework="torchtitan", stack=stack))
    assert workload.framework.recipe.logits_bytes == 6
    assert workload.framework.recipe.accumulates_unsharded is False
    assert workload.framework.recipe.gradients_reduced_per_group is True
    assert (
        workload.framework.profile
        == resolved(job(framework="torchtitan")).framework.profile
    )


def test_the_stack_in_force_holds_every_constant_of_the_profile() -> None:
    stack = stack_in_force(Pricing.candidate(resolved(job())))
    assert Profile.model_fields.keys() - {"source"} <= stack.keys()
    assert stack["framework"] == "megatron"
    assert json.loads(json.dumps(stack)) == stack


def test_fp8_needs_a_gpu_with_fp8_units() -> None:
    training = {"seq_len": 2048, "global_batch": 64, "precision": "fp8"}
    assert resolved(job(training=training)).training.precision == "fp8"


def test_a_sequence_beyond_the_model_is_a_caution() -> None:
    training = {"seq_len": 16384, "global_batch": 64}
    (caution,) = cautions(resolved(job(training=training)))
    assert "16,384 is beyond the 8,192 positions" in caution


@pytest.mark.parametrize("cluster", ["dgx-b200-32-nodes", "gb300-nvl72-16-racks"])
@pytest.mark.parametrize("framework", [its.name for its in FRAMEWORKS])
def test_every_framework_has_an_attention_kernel_on_blackwell(
    framework: str, cluster: str
) -> None:
    """SDPA prefers cuDNN there, whose kernels are measured."""
    workload = resolved(job(framework=framework, cluster=cluster))
    assert attention_kernel(workload) == "cudnn9"
