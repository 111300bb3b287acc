"""Texts of several lengths: what padding costs, and what stays as it was."""

from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from each import each
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cost.estimate.estimate import estimate
from planner.cost.memory.cached_bytes import orders
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.job.resolve import resolve
from planner.planning.optimize import optimize
from planner.planning.prediction.predict import predict
from planner.specs.answer.estimate import Estimate, PaddingEstimate
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import Layout
from planner.specs.lengths import Draws
from planner.specs.reading.layout_line import read_layout
from planner.specs.search import SearchSpec
from planner.verify import violations

LORA = {"method": "lora", "lora": {"rank": 4}}
LENGTHS = {"median": 200, "p90": 700}


MODEL = {
    "name": "small",
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 4096,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
}


@cache
def base(framework: str) -> Workload:
    fields = {
        "model": MODEL,
        "cluster": "dgx-a100-1-node",
        "training": {"seq_len": 1024, "global_batch": 64},
        "framework": framework,
    }
    (workload,) = resolve(JobSpec.model_validate(fields), file="a test", base=Path())
    return workload


def job(framework: str = "torchtitan", **training: Any) -> Workload:
    usual = base(framework)
    fields = usual.training.model_dump(exclude_unset=True) | training
    return replace(usual, training=type(usual.training).model_validate(fields))


@cache
def completed(framework: str, layout: str) -> Layout:
    return predict(base(framework), read_layout(layout)).layout


def priced(workload: Workload, layout: str) -> Estimate:
    return estimate(workload, completed(workload.framework.name, layout))


def padding(estimate: Estimate) -> PaddingEstimate:
    assert estimate.padding is not None
    return estimate.padding


@each(
    ("framework", "layout", "method"),
    [
        ("accelerate", "dp=8,zero_stage=0,micro_batch=2,recompute=full", LORA),
        ("torchtitan", "dp=4,tp=2,zero_stage=3,micro_batch=4,recompute=none", {}),
    ],
)
def test_texts_that_all_have_the_sequence_length_change_no_number(
    framework: str, layout: str, method: dict[str, Any]
) -> None:
    plain = priced(job(framework, **method), layout)
    assert plain.padding is None
    for way in ("longest", "max", "packed"):
        filled = priced(
            job(framework, lengths={1024: 1}, padding=way, **method), layout
        )
        assert padding(filled).share == 0
        apart = {"padding": None, "assumptions": plain.assumptions}
        assert filled.model_copy(update=apart) == plain, way


def test_documents_are_packed_texts_of_one_length() -> None:
    layout = "dp=8,zero_stage=2,micro_batch=4,recompute=none"
    packed = priced(job(lengths={256: 1}, padding="packed"), layout)
    assert packed.step_time_s == priced(job(document=256), layout).step_time_s


def test_half_of_the_tokens_by_hand() -> None:
    """100 or 400 tokens, two a row: rows of 325, of which 250 are text."""
    layout = "dp=1,tp=8,micro_batch=2,recompute=none"
    found = padding(priced(job(lengths={100: 0.5, 400: 0.5}), layout))
    assert found.text_tokens == 250
    assert found.row_tokens == found.slowest_row_tokens == 325
    assert found.share == pytest.approx(1 - 250 / 325)
    assert found.words.startswith("23% of the tokens are padding: packing would be ")


def test_the_gain_of_packing_is_that_of_the_packed_plan() -> None:
    layout = "dp=8,zero_stage=2,micro_batch=4,recompute=none"
    loose = priced(job(lengths=LENGTHS), layout)
    packed = priced(job(lengths=LENGTHS, padding="packed"), layout)
    gain = packed.tokens_per_s / loose.tokens_per_s
    assert padding(loose).packed_speedup == pytest.approx(gain)
    assert padding(loose).useful_tokens_per_s == loose.tokens_per_s
    assert padding(packed).packed_speedup == 1


@given(
    histogram=st.dictionaries(
        st.integers(16, 1024), st.integers(1, 9), min_size=1, max_size=6
    ),
    micro=st.sampled_from([1, 2, 4, 8]),
    stage=st.sampled_from([2, 3]),
)
@settings(max_examples=examples(80), deadline=None)
def test_less_padding_is_never_slower(
    histogram: dict[int, int], micro: int, stage: int
) -> None:
    whole = sum(histogram.values())
    lengths = {length: share / whole for length, share in histogram.items()}
    layout = f"dp=8,zero_stage={stage},micro_batch={micro},recompute=none"
    packed, longest, most = (
        priced(job(lengths=lengths, padding=way), layout)
        for way in ("packed", "longest", "max")
    )
    assert packed.tokens_per_s >= longest.tokens_per_s * (1 - 1e-9)
    assert longest.tokens_per_s >= most.tokens_per_s * (1 - 1e-9)
    most_gib = most.memory.peak_allocated_gib.value
    assert longest.memory.peak_allocated_gib.value <= most_gib


def test_ranks_that_wait_in_every_layer_wait_longer() -> None:
    """Replicas wait once a step, shards in every layer, for the longest of all."""
    slowest = [
        padding(priced(job("accelerate", lengths=LENGTHS, **LORA), layout))
        for layout in (
            "dp=8,zero_stage=0,micro_batch=1,recompute=full",
            "dp=8,dp_shard=2,zero_stage=3,micro_batch=1,recompute=full",
            "dp=8,dp_shard=8,zero_stage=3,micro_batch=1,recompute=full",
        )
    ]
    rows = [found.slowest_row_tokens for found in slowest]
    assert rows == sorted(rows)
    assert len(set(rows)) == 3
    assert rows[-1] == pytest.approx(Draws.greatest(_draws(), 8).mean)


def _draws() -> Draws:
    draws = job(lengths=LENGTHS).training.draws
    assert draws is not None
    return draws


def test_the_longest_text_decides_the_memory() -> None:
    layout = "dp=8,zero_stage=2,micro_batch=4,recompute=none"
    short = priced(job(lengths={64: 0.99, 512: 0.01}), layout)
    half = priced(job(seq_len=512), layout)
    at_most = half.memory.peak_allocated_gib.value
    assert short.memory.peak_allocated_gib.value == pytest.approx(at_most)


def test_orders_are_the_same_every_time_and_reach_the_longest() -> None:
    """Of texts of which more than 1 in 100 is cut."""
    every = orders(_draws(), 4 * 1024, 4)
    assert every == orders(_draws(), 4 * 1024, 4)
    assert {order.tokens[-1] for order in every} == {4 * 1024}
    assert len({order.tokens for order in every}) == len(every)


def test_the_allocator_keeps_more_where_lengths_differ() -> None:
    layout = "dp=8,zero_stage=0,micro_batch=1,recompute=none"
    kept = []
    for more in ({}, {"lengths": LENGTHS}):
        memory = priced(job("accelerate", **LORA, **more), layout).memory
        kept.append(memory.peak_reserved_gib - memory.peak_allocated_gib.value)
    assert kept[1] > 1.02 * kept[0]


@pytest.mark.slow
def test_the_plan_is_the_fastest_of_all_that_are_priced() -> None:
    usual = job("accelerate", lengths=LENGTHS)
    search = SearchSpec(tp=1, cp=1, pp=1, memory_risk=0.99)
    workload = replace(usual, search=search)
    (best, *_) = optimize([workload]).plans
    steps = []
    axes = (1, 2, 4, 8), (0, 2, 3), (1, 2, 4, 8), ("none", "full")
    for micro, zero, shard, kind in product(*axes):
        words = f"dp=8,zero_stage={zero},micro_batch={micro},recompute={kind}"
        with suppress(BadInputError):
            text = f"{words},dp_shard={shard}"
            steps.append(predict(workload, read_layout(text)).estimate.step_time_s)
    assert len(steps) > 20
    assert best.estimate.step_time_s.value == min(step.value for step in steps)


@each(
    ("framework", "layout"),
    [
        ("accelerate", "dp=8,zero_stage=3,micro_batch=2,recompute=full"),
        ("accelerate", "dp=8,zero_stage=0,micro_batch=2,recompute=full"),
        ("megatron", "dp=2,tp=2,pp=2,zero_stage=1,micro_batch=2,recompute=none"),
    ],
)
def test_the_verifier_has_the_same_price(framework: str, layout: str) -> None:
    for way in ("longest", "packed"):
        workload = job(framework, lengths=LENGTHS, padding=way)
        whole, found = completed(framework, layout), priced(workload, layout)
        device = [stage.device for stage in found.memory.stages]
        step = found.step_time_s.value
        said = violations(workload, whole, step_s=step, device_gib=device)
        assert said == []
        assert violations(workload, whole, step_s=step * 1.1, device_gib=device)
