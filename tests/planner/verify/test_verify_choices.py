"""What the user ruled out, and what may leave the GPUs: each breach its sentence."""

from collections.abc import Callable
from typing import Any

import pytest
from layouts import DENSE, FLAT, ON_HOST, SHARDS_ON_HOST, TITAN, kept, layout

from planner.specs.layouts.layout import Offload
from planner.verify import violations

BROKEN: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a limit on a degree": (
        DENSE,
        {"tp": (4, 8)},
        "the search block limits tp to (4, 8): 2",
    ),
    "a limit on the micro-batch": (
        DENSE,
        {"micro_batch": 1},
        "the search block limits micro_batch to 1: 2",
    ),
    "a limit on ZeRO": (
        DENSE,
        {"zero_stage": 0},
        "the search block limits zero_stage to 0: 1",
    ),
    "a limit on the schedule": (
        DENSE,
        {"schedule": "interleaved"},
        "the search block limits schedule to interleaved: 1f1b",
    ),
    "a limit on the order": (
        DENSE,
        {"order": "tp-cp-ep-pp-dp"},
        "the search block limits order to tp-cp-ep-pp-dp: tp-cp-ep-dp-pp",
    ),
    "a limit on recompute": (
        DENSE,
        {"recompute": "full"},
        "the search block limits recompute to full: none",
    ),
    "a limit on the kind of cp": (
        DENSE | {"cp": 2, "dp": 2, "grad_accum": 8},
        {"cp_kind": "ring"},
        "the search block limits cp_kind to ring: all-gather",
    ),
    "a limit on sp": (
        DENSE,
        {"sp": False},
        "the search block limits sp to False: True",
    ),
    "whole parameters on the host": (
        TITAN | {"offload": SHARDS_ON_HOST},
        {"framework": "torchtitan"},
        "ZeRO-2 does not shard parameters, so they cannot be offloaded",
    ),
    "whole gradients on the host": (
        DENSE | {"offload": Offload(gradients=1.0)},
        {},
        "ZeRO-1 does not shard gradients, so they cannot be offloaded",
    ),
    "an offload ruled out": (
        DENSE | {"offload": ON_HOST},
        {"offload": False},
        "the search block limits offload to none: optimizer",
    ),
    "an offload that is not listed": (
        DENSE,
        {"offload": "optimizer"},
        "the search block limits offload to optimizer: none",
    ),
    "an offload that the framework has no words for": (
        TITAN | {"zero_stage": 3, "offload": Offload(optimizer=1.0)},
        {"framework": "torchtitan", "offload": True},
        "torchtitan cannot offload optimizer",
    ),
    "an offload at unequal shares": (
        TITAN
        | {
            "zero_stage": 3,
            "offload": SHARDS_ON_HOST.model_copy(update={"gradients": 0.5}),
        },
        {"framework": "torchtitan", "offload": True},
        "torchtitan cannot offload optimizer+parameters+gradients",
    ),
    "an optimizer on the host that is not sharded": (
        DENSE | {"zero_stage": 0, "offload": ON_HOST},
        {"offload": True},
        "megatron offloads no optimizer at ZeRO-0",
    ),
    "a share of the activations under a framework that moves all or none": (
        FLAT | {"offload": Offload(activations=0.5), "zero_stage": 2, "sp": False},
        {"framework": "accelerate", "offload": True},
        "accelerate offloads activations whole at ZeRO-2",
    ),
    "activations on the host with a pipeline": (
        DENSE | {"offload": Offload(activations=1.0)},
        {"offload": True},
        "megatron offloads activations only without pipeline and recompute, not at "
        "pp 2 with none",
    ),
    "activations on the host with recompute": (
        FLAT
        | {
            "offload": Offload(activations=1.0),
            "stages": (kept(13, (13, "full")),),
        },
        {"offload": True},
        "megatron offloads activations only without pipeline and recompute, not at "
        "pp 1 with full",
    ),
    "a method that is not listed": (
        DENSE,
        {"method": ["lora", "qlora"]},
        "the search block limits method to lora, qlora: full",
    ),
    "an optimizer that is not listed": (
        DENSE,
        {"optimizer": "adamw-8bit"},
        "the search block limits optimizer to adamw-8bit: adamw",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_choice_that_was_not_free_gives_exactly_its_sentence(
    name: str, workload_of: Callable[..., Any]
) -> None:
    fields, job, sentence = BROKEN[name]
    found = violations(
        workload_of(**job), layout(fields), step_s=1.0, device_gib=(1.0, 1.0)
    )
    assert found == [sentence]
