"""What import reads of a plan's folder predicts what was planned, to the digit."""

from collections import Counter
from typing import Any

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from round_trips import TARGETS, Case, cases, outcome

COMPARED = 3
"""Plans of each target that 30 draws compare at least. [1]"""


@pytest.mark.parametrize("target", TARGETS)
def test_draws_reach_every_target(target: str) -> None:
    """Draws that a target refuses compare nothing."""
    found = Counter[str]()

    @settings(max_examples=30, derandomize=True, database=None)
    @given(case=cases(target))
    def drawn(case: Case) -> None:
        found[outcome(case)] += 1

    drawn()
    assert found["same"] >= COMPARED, found


@pytest.mark.parametrize("target", TARGETS)
@given(data=st.data())
@settings(max_examples=examples(8))
def test_a_folder_predicts_what_was_planned(target: str, data: st.DataObject) -> None:
    """Same step and same memory, or the target refuses the plan."""
    outcome(data.draw(cases(target)))


def case(target: str, layout: dict[str, Any], **fields: Any) -> Case:
    """A job of the target's framework, with a whole layout."""
    training = {"seq_len": 1024, "global_batch": 64} | fields.pop("training", {})
    its = {
        "model": "llama-3.2-1b",
        "cluster": {"node": "dgx-b200", "nodes": 1},
        "framework": TARGETS[target],
        "training": training,
    }
    return Case(target, its | fields, {"stages": "even"} | layout)


FSDP = {"zero_stage": 3, "micro_batch": 4, "recompute": "full"}


@pytest.mark.parametrize(
    ("target", "layout", "fields", "found"),
    [
        (
            "accelerate",
            FSDP,
            {"training": {"method": "lora", "optimizer": "sgd"}},
            "same",
        ),
        ("accelerate", FSDP, {"model": "gemma-2-2b"}, "same"),
        ("accelerate", FSDP, {"stack": {"attention": "fa2"}}, "same"),
        ("trl", FSDP, {"stack": {"attention": "fa2", "loss": "chunked"}}, "same"),
        ("megatron", {"zero_stage": 1}, {"stack": {"attention": "unfused"}}, "same"),
        ("megatron", {"zero_stage": 1}, {"stack": {"attention": "flash"}}, "same"),
        (
            "torchtitan",
            {"zero_stage": 3},
            {"stack": {"attention": "fa2"}},
            "unwritten",
        ),
        ("torchtitan", {"zero_stage": 3}, {"stack": {"attention": "cudnn"}}, "same"),
        (
            "accelerate",
            {"zero_stage": 0},
            {"training": {"precision": "fp16"}},
            "refused layout",
        ),
        (
            "accelerate",
            FSDP,
            {"training": {"precision": "fp8"}, "stack": {"name": "hf-bf16"}},
            "refused layout",
        ),
        ("deepspeed", FSDP | {"dp_shard": 1}, {}, "refused layout"),
        *(
            (target, {"zero_stage": 3, "offload": moved}, fields, "refused layout")
            for moved in ({"optimizer": 1.0}, {"optimizer": 1.0, "parameters": 1.0})
            for target, fields in (
                ("accelerate", {}),
                ("trl", {"stack": {"loss": "chunked"}}),
                ("torchtune", {"stack": {"name": "hf-bf16"}}),
                ("torchtitan", {}),
            )
        ),
        (
            "accelerate",
            FSDP | {"offload": {"optimizer": 1.0}},
            {"stack": {"name": "hf-trainer"}},
            "same",
        ),
        ("deepspeed", FSDP | {"hpz": 2}, {}, "same"),
        ("accelerate", FSDP | {"hpz": 2}, {}, "refused layout"),
        ("accelerate", FSDP | {"hpz": 2}, {"stack": {"name": "hf-trainer"}}, "same"),
        ("llamafactory", FSDP | {"hpz": 4}, {"stack": {"name": "hf-trainer"}}, "same"),
    ],
)
def test_a_case_that_was_read_back_as_another(
    target: str, layout: dict[str, Any], fields: dict[str, Any], found: str
) -> None:
    assert outcome(case(target, layout, **fields)) == found
