"""Reserved memory of a layout: simulated where it is replayed, else by the ratio."""

from pathlib import Path
from typing import Any

from each import each

from planner.cost.memory.cached_bytes import longest
from planner.eager import EagerCase
from planner.eager.allocator.allocator import Settings
from planner.eager.allocator.steps import equal_steps, run
from planner.eager.case import LoraCase
from planner.job.resolve import resolve
from planner.planning.optimize import optimize
from planner.prediction.predict import predict
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout
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


def fragmentation(stack: dict[str, Any], *, zero: int = 0, **training: Any) -> float:
    """Reserved less allocated memory of the first rank. [GiB]."""
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
    return predict(workload, layout).estimate.memory.stages[0].fragmentation


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


def test_lengths_below_the_cut_are_padded_to_the_longest_and_end_at_the_cut() -> None:
    """Mirrored binary digits: 1/2, 1/4, 3/4, 1/8, 5/8, 3/8, 7/8 of the cut."""
    assert longest(64, 1) == [32, 16, 48, 8, 40, 24, 56, 64]
    assert longest(64, 2)[:3] == [32, 48, 40]
    assert [len(longest(64, batch)) for batch in (1, 2, 5)] == [8] * 3
    assert longest(64, 5)[-1] == 64


def test_lengths_that_differ_leave_blocks_that_none_of_the_next_fits() -> None:
    mixed, equal = (
        fragmentation({"allocator": "segments"} | own, method="lora", seq_len=512)
        for own in ({"lengths": "below"}, {})
    )
    assert mixed > 2 * equal


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


def test_the_verifier_agrees() -> None:
    """Plans of adapters, which the flow verifies, claim what is simulated."""
    file = JOBS / "llama-3.1-8b-lora-rtx-4090.yaml"
    workload = resolve(read_spec(file), file=str(file), base=JOBS)[0]
    plans = optimize([workload]).plans
    assert plans
    for found in plans:
        assert found.estimate.memory.stages[0].fragmentation > 0.1
