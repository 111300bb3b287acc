"""Limits that leave no layout: named together, with what is near that goes."""

from functools import cache
from itertools import product

import pytest
from examples import examples
from explained_jobs import ILLEGAL, case
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import some

from planner.cost.pricing import Pricing
from planner.errors import BadInputError
from planner.job.case import Case
from planner.planning.explanation import as_error, contradiction, is_legal
from planner.planning.explanation.ask import variants_of
from planner.search import emptiness
from planner.search.emptiness import easiest, is_empty, thin
from planner.search.space import context_kinds as context
from planner.search.space.space import enumerate_space
from planner.specs.answer.explanation import Contradiction

GPT2 = {
    "model_type": "gpt2",
    "n_embd": 768,
    "n_head": 12,
    "n_layer": 12,
    "n_positions": 2048,
    "vocab_size": 50304,
}
CLASHES = {
    # 12 heads have no eighth; the nearest divisors of 12 that divide 4 GPUs.
    "tp and heads": (
        case({"tp": [8]}, cluster="dgx-a100-1-node", framework="megatron", model=GPT2),
        ["tp = 8", "a model of 12 heads, inner width 3,072"],
        ["tp = 1 or 2 or 4"],
    ),
    "tp and GPUs": (
        case({"tp": 8, "space": "full"}),
        ["4 GPUs", "tp = 8"],
        ["8 GPUs", "tp = 1 or 2 or 4"],
    ),
    "pp and a framework without pipelines": (
        case({"pp": {"min": 2}}, framework="accelerate"),
        [
            "framework accelerate",
            "pp >= 2 (it has no pipeline; frameworks that can: megatron, torchtitan, "
            "deepspeed)",
        ],
        ["framework megatron or deepspeed", "pp = 1"],
    ),
    "ZeRO-3 and Megatron": (
        case({"zero_stage": 3}, framework="megatron"),
        [
            "framework megatron",
            "zero_stage = 3 (its ZeRO stages are 0 and 1; frameworks that can: "
            "torchtitan, accelerate, deepspeed)",
        ],
        ["framework torchtitan or accelerate or deepspeed", "zero_stage = 0 or 1"],
    ),
    "tp and pp of DeepSpeed": (
        case({"tp": 2, "pp": 2}, framework="deepspeed"),
        ["framework deepspeed", "tp = 2", "pp = 2"],
        ["framework megatron", "tp = 1", "pp = 1"],
    ),
    "tp and pp on too few GPUs": (
        case({"tp": 4, "pp": 4}, framework="megatron"),
        ["4 GPUs", "tp = 4", "pp = 4"],
        ["16 GPUs", "tp = 1", "pp = 1"],
    ),
    "shards that no replicas make": (
        case({"dp": 4, "dp_shard": 3}),
        ["dp = 4", "dp_shard = 3"],
        ["dp_shard = 1 or 2 or 4"],
    ),
    "a batch that does not divide": (
        case({"dp": 4}, global_batch=7),
        ["a global batch of 7 sequences", "dp = 4"],
        ["a global batch of 4 or 8 sequences", "dp = 1"],
    ),
    "experts of a dense model": (
        case({"ep": 2}),
        ["ep = 2", "a model of dense layers"],
        ["ep = 1"],
    ),
    "chunks without a pipeline": (
        case({"pp": 1, "vpp": 2}, framework="megatron"),
        ["pp = 1", "vpp = 2", "a model of 16 layers"],
        ["pp = 2 or 4", "vpp = 1"],
    ),
    "a schedule of one chunk": (
        case({"schedule": "1f1b", "vpp": 2}, framework="megatron"),
        ["vpp = 2", "schedule 1f1b", "a model of 16 layers"],
        ["vpp = 1", "schedule interleaved"],
    ),
}
"""Jobs with the limits that clash, and what could stand in the place of each."""


@cache
def found_of(name: str) -> Contradiction:
    return contradiction(job_of(name))


def job_of(name: str) -> Case:
    return CLASHES[name][0] if name in CLASHES else ILLEGAL[name][0]


@pytest.mark.parametrize("name", CLASHES)
def test_limits_that_clash_are_named_with_what_would_go(name: str) -> None:
    _, clash, nearest = CLASHES[name]
    found = found_of(name)
    assert (
        found.text == f"{' and '.join(clash)} cannot hold together: no layout is legal"
    )
    assert list(found.nearest) == nearest


@pytest.mark.parametrize(
    "name",
    some([*CLASHES, *ILLEGAL], 4),
)
def test_the_nearest_of_a_searched_axis_is_legal(
    name: str,
) -> None:
    job = job_of(name)
    for limit, words in zip(*pairs(name), strict=True):
        axis, _, values = words.partition(" = ")
        assert limit == f"search.{axis}"
        for value in values.split(" or "):
            assert is_legal(job.assigned((f"{limit}={value}",)))


def pairs(name: str) -> tuple[list[str], list[str]]:
    """Members of the search block that have a nearest value, and those values."""
    found = found_of(name)
    words = [near for near in found.nearest if " = " in near]
    axes = {f"search.{near.partition(' = ')[0]}" for near in words}
    return [limit.field for limit in found.limits if limit.field in axes], words


def test_the_limit_that_removed_the_last_layouts_is_named() -> None:
    job = case({"tp": 2, "pp": 2, "dp": 2}, framework="megatron")
    left = job.assigned(("search.dp=null",))
    count = sum(len(enumerate_space(Pricing.candidate(job))) for job in left.workloads)
    assert contradiction(job).last == (
        f"the last {count:,} legal layouts were removed by dp = 2"
    )


def test_a_job_that_is_illegal_without_limits_says_so() -> None:
    job = case({}, model="llama-3.2-1b", framework="accelerate", global_batch=1)
    only_replicas = job.assigned(("search.dp=4",))
    error = as_error(contradiction(only_replicas), "job.yaml")
    assert isinstance(error, BadInputError)
    assert str(error).startswith("job.yaml: training.global_batch, search.dp: ")


LIMITS = {
    "tp": [1, 2, 3, 4],
    "pp": [1, 2, 3],
    "vpp": [1, 2, 3],
    "cp": [1, 2],
    "ep": [1, 2],
    "dp": [1, 2, 3, 4],
    "dp_shard": [1, 2, 3],
    "micro_batch": [1, 3, 16],
    "zero_stage": [0, 1, 2, 3],
    "schedule": ["1f1b", "interleaved", "gpipe"],
    "order": ["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"],
    "recompute": ["none", "selective"],
}
NAMES = ("megatron", "torchtitan", "accelerate", "deepspeed")
JOBS = list(product(NAMES, (6, 64)))


@settings(max_examples=examples(60), deadline=None)
@given(
    job=st.sampled_from(JOBS),
    limits=st.fixed_dictionaries(
        {}, optional={axis: st.sampled_from(values) for axis, values in LIMITS.items()}
    ),
    space=st.sampled_from(("default", "full")),
)
def test_a_space_is_empty_where_the_thin_one_is(
    job: tuple[str, int], limits: dict[str, object], space: str
) -> None:
    framework, batch = job
    made = case({**limits, "space": space}, framework=framework, global_batch=batch)
    pricing = Pricing.candidate(*made.workloads)
    listed = enumerate_space(pricing)
    few = enumerate_space(thin(pricing))
    assert is_empty(pricing) == (len(listed) == 0)
    for axis in ("tp", "pp", "cp", "ep", "dp", "zero"):
        of_all = set(getattr(listed.meshes, axis)[listed.mesh].tolist())
        assert of_all == set(getattr(few.meshes, axis)[few.mesh].tolist())


def test_a_clash_of_two_limits_asks_little_about_legality(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Limits that matter little are dropped together, and nothing is priced for it."""
    job = case({"pp": 1, "vpp": 2}, framework="megatron", global_batch=128)
    asked, priced = [], []
    monkeypatch.setattr(emptiness, "is_empty", lambda v: asked.append(v) or is_empty(v))
    monkeypatch.setattr(context, "_prices", lambda *_: priced.append(1))
    found = contradiction(job)
    assert {limit.field for limit in found.limits} == {"search.pp", "search.vpp"}
    assert len(asked) < 150
    assert priced == []


@settings(max_examples=examples(40), deadline=None)
@given(
    job=st.sampled_from(JOBS),
    limits=st.fixed_dictionaries(
        {}, optional={axis: st.sampled_from(values) for axis, values in LIMITS.items()}
    ),
    offload=st.sampled_from((None, True, "optimizer")),
    space=st.sampled_from(("default", "full")),
)
def test_the_easiest_variants_are_empty_where_all_are(
    job: tuple[str, int], limits: dict[str, object], offload: object, space: str
) -> None:
    framework, batch = job
    made = case(
        {**limits, "space": space, "offload": offload},
        framework=framework,
        global_batch=batch,
    )
    every = variants_of(made)
    few = easiest(every)
    assert len(few) <= len(every)
    assert is_legal(made) == any(not is_empty(variant) for variant in every)
