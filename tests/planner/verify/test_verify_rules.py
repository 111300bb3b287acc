"""Each rule, broken alone, gives exactly its sentence."""

from collections.abc import Callable
from typing import Any

import pytest
from broken import BROKEN
from layouts import (
    ACCELERATE,
    DENSE,
    FLAT,
    FSDP,
    INTERLEAVED,
    MOE,
    ON_HOST,
    PLAIN,
    SHARDS_ON_HOST,
    TITAN,
    kept,
    layout,
)

from planner.specs.layouts.layout import Offload, Stage
from planner.verify import violations
from planner.verify.legality import rule_violations
from planner.verify.recompute import stage_kinds


@pytest.mark.parametrize(
    ("fields", "job"),
    [
        (DENSE, {}),
        (MOE, {"model": "moe"}),
        (TITAN, {"framework": "torchtitan"}),
        (INTERLEAVED, {}),
        (FSDP, ACCELERATE),
        (FSDP | {"dp_shard": 4}, ACCELERATE),
        (
            PLAIN
            | {"tp": 1, "dp": 16, "zero_stage": 0, "dp_shard": 16}
            | {"grad_accum": 2},
            ACCELERATE,
        ),
        (DENSE | {"stages": (13, 0)}, {}),
        (DENSE | {"stages": (0, 13)}, {}),
        (DENSE | {"stages": (kept(7, (7, "full")), kept(6, (6, "full")))}, {}),
        (
            DENSE | {"stages": (kept(7, (3, "full"), (4, "none")), 6)},
            {"scope": "virtual-stage"},
        ),
        (DENSE | {"offload": ON_HOST}, {"offload": True}),
        (DENSE | {"offload": ON_HOST}, {"offload": ["none", "optimizer"]}),
        (FLAT | {"offload": Offload(activations=0.5)}, {"offload": True}),
        (
            TITAN | {"zero_stage": 3, "offload": SHARDS_ON_HOST},
            {"framework": "torchtitan", "offload": True},
        ),
        (DENSE, {"method": ["full", "lora"], "offload": False}),
        (FLAT, {"order": "tp-cp-ep-pp-dp"}),
    ],
)
def test_the_layouts_broken_below_are_legal_before(
    fields: dict[str, Any], job: dict[str, Any], workload_of: Callable[..., Any]
) -> None:
    assert rule_violations(workload_of(**job), layout(fields)) == []


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_gives_exactly_its_sentence(
    name: str, workload_of: Callable[..., Any]
) -> None:
    fields, job, sentence = BROKEN[name]
    found = violations(
        workload_of(**job), layout(fields), step_s=1.0, device_gib=(1.0, 1.0)
    )
    assert found == [sentence]


def test_part_of_a_node_is_no_whole_node(workload_of: Callable[..., Any]) -> None:
    """4 of 16 GPUs leave the cluster unfilled and split a node."""
    found = rule_violations(workload_of(), layout(DENSE | {"dp": 1, "dp_shard": 1}))
    assert "4 GPUs are not whole nodes of 8" in {breach.sentence for breach in found}


def test_a_stage_without_ranges_recomputes_nothing() -> None:
    assert stage_kinds(Stage(layers=2)) == ("none", "none")
    assert stage_kinds(kept(3, (1, "full"), (2, "none"))) == ("full", "none", "none")
