"""Reserved memory of a layout: simulated where it is replayed, else by the ratio."""

from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from each import each

from planner.cost.memory.cached_bytes import orders
from planner.eager import EagerCase, Unsupported, ends_memory
from planner.eager.allocator.allocator import Settings
from planner.eager.allocator.steps import equal_steps, run, steps_of
from planner.eager.case import LoraCase
from planner.job.resolve import resolve
from planner.planning.optimize import optimize
from planner.planning.prediction.predict import predict
from planner.specs.answer.estimate import StageMemory
from planner.specs.answer.result import RankedPlan
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout
from planner.specs.lengths import Draws, Lognormal, draws_of, even_draws
from planner.specs.reading.layout_line import given_layout, read_layout
from planner.specs.reading.read import read_spec

GIB = 2**30
JOBS = Path(__file__).parents[4] / "configs" / "jobs"
NAMES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
MODEL = {
    "family": "llama",
    "hidden_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "vocab_size": 128256,
    "tie_word_embeddings": True,
    "intermediate_size": 8192,
}
"""Llama 3.2 1B."""
DAY_OF_FSDP1 = "2024-03-01"
"""Date of code that shards by FSDP1 and raises its logits to fp32. [-]"""


def fragmentation(stack: dict[str, Any], *, zero: int = 0, **training: Any) -> float:
    """Reserved less allocated memory of the first rank. [GiB]."""
    return memory(stack, zero=zero, **training).fragmentation


def memory(stack: dict[str, Any], *, zero: int = 0, **training: Any) -> StageMemory:
    """Memory of the first rank."""
    fields = {
        "model": "llama-3.2-1b",
        "cluster": {"node": "workstation-rtx-4090-2", "nodes": 1},
        "training": {"seq_len": 2048, "global_batch": 4} | training,
        "framework": "accelerate",
        "stack": stack,
    }
    workload = resolve(JobSpec.model_validate(fields), file="j.yaml", base=Path())[0]
    given = {"tp": 1, "pp": 1, "dp": 2, "zero_stage": zero, "micro_batch": 2}
    layout = PartialLayout.model_validate(given | {"recompute": "full"})
    return predict(workload, layout).estimate.memory.stages[0]


@each(("allocator", "zero"), [("segments", 0), ("expandable", 0), ("segments", 3)])
def test_adapters_reserve_what_the_allocator_does(allocator: str, zero: int) -> None:
    """Both kinds of segments, on one rank and where the frozen base is sharded."""
    grows = allocator == "expandable"
    case = EagerCase(
        model=MODEL,
        layers=12 if grows else 16,
        seq=4096,
        recompute="full",
        lora=LoraCase(r=16, targets=NAMES),
    )
    ran = run(equal_steps(case), (4096,) * 2, Settings(expandable=grows))
    expected = (ran.peak_reserved - ran.peak_allocated) / GIB
    found = fragmentation({"allocator": allocator}, zero=zero, method="lora")
    assert abs(found - expected) < 1e-6


@each(
    ("version", "loss"),
    [
        (DAY_OF_FSDP1, {"loss": "upcast", "mbs": 2, "seq": 2048}),
        ("2025-03-31", {"loss": "hf", "seq": 4096}),
    ],
)
def test_flat_parameters_reserve_what_wrapping_and_their_streams_leave(
    version: str, loss: dict[str, Any]
) -> None:
    """Accelerate before 1.6: a rank wraps the model, and gathers block by block."""
    lora = LoraCase(r=16, targets=NAMES)
    fields = {"model": MODEL, "recompute": "full", "lora": lora}
    sharded = {"zero": 3, "world": 2, "mp": False, "flat": True}
    case = EagerCase.model_validate(fields | sharded | loss)
    ran = run(equal_steps(case), (case.seq,) * 2)
    expected = (ran.peak_reserved - ran.peak_allocated) / GIB
    found = memory({"allocator": "segments", "version": version}, zero=3, method="lora")
    assert abs(found.fragmentation - expected) < 1e-6
    # The table has the same ends, shards and block that is gathered ahead.
    assert found.allocated == pytest.approx(ran.peak_allocated / GIB, rel=0.02)
    newest = fragmentation({"allocator": "segments"}, zero=3, method="lora")
    assert expected > newest


def test_whole_replicas_and_later_releases_wrap_nothing() -> None:
    """Replicas of before FSDP2, and shards of the day when accelerate has it."""
    for zero, version in ((0, "2025-03-31"), (3, "2025-04-01")):
        old = {"allocator": "segments", "version": version}
        new = {"allocator": "segments"}
        found = [fragmentation(s, zero=zero, method="lora") for s in (old, new)]
        assert found[0] == found[1]


def test_batches_that_need_new_memory_are_longer_than_all_before_them() -> None:
    """Of 1,000 draws 7.5 are; the longest of several lies nearer to the cut."""
    even = even_draws(10**6)
    alone, several = (
        [each.tokens for each in orders(even, 10**6, sequences)] for sequences in (1, 8)
    )
    assert all(sorted(set(order)) == list(order) for order in alone)
    assert 5 < fmean(map(len, alone)) < 10
    assert min(order[-1] for order in alone) > 0.99e6
    assert fmean(order[0] for order in several) > fmean(order[0] for order in alone)
    assert [each.tokens for each in orders(even_draws(1), 1, 1)] == [(1,)] * len(alone)


def test_batches_of_stated_lengths_have_the_shares_that_are_stated() -> None:
    """Of 1,000 texts none is longer than the first long one, which 1 in 10 is."""
    draws = draws_of(Lognormal(median=400, p90=1200), 1200)
    found = [each.tokens for each in orders(draws, 4 * 1200, 1)]
    assert {order[-1] for order in found} == {4 * 1200}
    assert all(order[0] in [round(4 * n) for n in draws.lengths] for order in found)
    few = Draws((1.0, 2.0), (0.9999, 0.0001))
    assert min(order[-1] for order in (each.tokens for each in orders(few, 2, 1))) == 1


def test_the_first_step_has_the_longest_of_its_own_batches() -> None:
    """Of 16 draws 3.4 are longer than all before them."""
    even = even_draws(10**6)
    each, all_of = orders(even, 10**6, 1), orders(even, 10**6, 1, accumulated=16)
    assert [one.tokens for one in each] == [one.tokens for one in all_of]
    assert {one.together for one in each} == {1}
    assert 2 < fmean(one.together for one in all_of) < 5


def full(**fields: Any) -> EagerCase:
    """Two micro-batches of a step in which all weights train."""
    given = {"model": MODEL, "layers": 4, "seq": 512, "ga": 2, "optimizer": "adamw"}
    return EagerCase.model_validate(given | {"recompute": "full"} | fields)


def test_states_are_made_in_what_the_first_step_leaves_free() -> None:
    """As all batches of a step are run, of which the three longest are replayed.

    Made after the first batch, the states would need memory of their own.
    """
    steps, lengths = steps_of(full()), [300, 200, 400, 250, 350, 1500, 900, 1000]
    every = run(steps, [*lengths, 1600], together=len(lengths)).peak_reserved
    few = run(steps, [300, 400, 1500, 1600], together=3).peak_reserved
    early = run(steps, [300, 400, 1500, 1600]).peak_reserved
    assert abs(few - every) < 0.03 * every
    assert early > few + 2**28


def test_outputs_that_stay_into_the_next_batch_keep_steps_apart() -> None:
    """A batch that frees memory of the one before cannot be replayed several times."""
    steps = steps_of(full(keep_outputs=True))
    assert not steps.repeats
    assert steps_of(full()).repeats
    apart, together = (
        run(steps, [300, 400, 500], together=n).peak_reserved for n in (1, 2)
    )
    assert apart == together


def test_a_text_of_one_token_has_no_next_one() -> None:
    """Empty logits free nothing."""
    steps = steps_of(full(loss="upcast", ga=1))
    assert run(steps, [1, 300]).peak_reserved >= run(steps, [300]).peak_reserved


def test_batches_no_longer_than_one_before_reserve_nothing() -> None:
    """Why the others are left out: a run of all reserves what its records do."""
    case = EagerCase(model=MODEL, seq=2048, recompute="full", lora=LoraCase(r=16))
    drawn = (np.random.default_rng(0).random(40) * 2048).astype(int) + 1
    records = np.unique(np.maximum.accumulate(drawn)).tolist()
    steps = steps_of(case)
    every, few = (run(steps, each).peak_reserved for each in (drawn.tolist(), records))
    assert abs(every - few) < 0.01 * every


@each("loss", ["hf", "upcast", "half"])
@each("attention", ["sdpa", "eager"])
def test_sizes_of_any_length_are_those_of_its_own_replay(
    loss: str, attention: str
) -> None:
    """Scores grow with the square of the length, all else in proportion."""
    fields = {"model": MODEL, "layers": 2, "seq": 2560, "mbs": 2}
    case = EagerCase.model_validate(fields | {"loss": loss, "attention": attention})
    one, any_of = equal_steps(case), steps_of(case)
    end = len(one.numbers)
    assert list(any_of.part(2560, 0, end)) == list(one.part(2560, 0, end))


def test_lengths_that_differ_leave_blocks_that_none_of_the_next_fits() -> None:
    mixed, equal = (
        fragmentation({"allocator": "segments"} | own, method="lora", seq_len=512)
        for own in ({"lengths": "below"}, {})
    )
    assert mixed > 2 * equal


def test_a_head_of_unit_rows_has_them_in_fp32_and_a_cast() -> None:
    """Baichuan 2: the cast waits for its backward, short logits lie where rows did."""
    shape = {"vocab_size": 50_000, "tie_word_embeddings": False}
    llama, unit = (
        EagerCase(
            model=MODEL | shape | {"family": family},
            layers=2,
            seq=64,
            loss="half",
            recompute="full",
            lora=LoraCase(r=16),
        )
        for family in ("llama", "baichuan")
    )
    rows = 50_000 * 2048
    plain, own = (ends_memory(case, tracked=False) for case in (llama, unit))
    assert own.saved - plain.saved == 2 * rows
    assert own.saved + own.forward > 6 * rows > plain.saved + plain.forward
    wasted = [
        run(steps_of(case), [300, 600, 900]).peak_reserved
        - run(steps_of(case), [900]).peak_reserved
        for case in (llama, unit)
    ]
    assert wasted[1] < wasted[0] / 4
    with pytest.raises(Unsupported, match="baichuan's head where it trains"):
        steps_of(unit.model_copy(update={"lora": None}))


def test_shards_that_train_keep_the_ratio() -> None:
    """FSDP2's gathers are on streams of their own, which are not simulated."""
    by_ratio = fragmentation({"allocator": "ratio"}, zero=3)
    assert fragmentation({"allocator": "segments"}, zero=3) == by_ratio


def test_a_ratio_set_by_hand_counts() -> None:
    """A user's own fragmentation is not simulated over."""
    by_hand = fragmentation({"fragmentation": 0.8}, method="lora")
    assert by_hand == fragmentation(
        {"fragmentation": 0.8, "allocator": "ratio"}, method="lora"
    )


def agreed(job: JobSpec, file: Path) -> list[RankedPlan]:
    """Plans of a job, which the flow verifies, once each is predicted alike."""
    workload = resolve(job, file=str(file), base=JOBS)[0]
    plans = optimize([workload]).plans
    assert plans
    for found in plans:
        given = read_layout(given_layout(found.layout))
        assert given is not None
        again = predict(workload, given).estimate
        assert again.memory == found.estimate.memory
    return plans


def test_the_verifier_agrees() -> None:
    """Plans of adapters claim what is simulated."""
    file = JOBS / "llama-3.1-8b-lora-rtx-4090.yaml"
    for found in agreed(read_spec(file), file):
        assert found.estimate.memory.stages[0].fragmentation > 0.1


def test_the_verifier_agrees_on_flat_parameters() -> None:
    """Plans that FSDP1 shards over two GPUs keep more than whole replicas would."""
    file = JOBS / "llama-3.1-8b-lora-rtx-4090.yaml"
    fields = {
        "cluster": {"node": "workstation-rtx-4090-2", "nodes": 1},
        "stack": {"version": DAY_OF_FSDP1, "allocator": "segments"},
        "search": {"zero_stage": (3,)},
    }
    job = JobSpec.model_validate(
        read_spec(file).model_dump(exclude_unset=True) | fields
    )
    for found in agreed(job, file):
        assert found.estimate.memory.stages[0].fragmentation > 0.5
