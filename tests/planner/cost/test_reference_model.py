"""A frozen reference: its weights, its forward, and whole pairs."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from planner.errors import BadInputError
from planner.job.resolve import resolve
from planner.planning.prediction.predict import predict
from planner.specs.answer.result import RankedPlan
from planner.specs.job import JobSpec
from planner.specs.reading.layout_line import read_layout

GIB = 2**30
LORA = {"method": "lora", "lora": {"rank": 4, "precision": "fp32"}}


def priced(layout: str, **training: Any) -> RankedPlan:
    fields = {
        "model": "llama-3.2-1b",
        "cluster": "dgx-a100-1-node",
        "training": {"seq_len": 1024, "global_batch": 32, **training},
        "framework": "accelerate",
        "stack": {"loss": "chunked"},
    }
    spec = JobSpec.model_validate(fields)
    (workload,) = resolve(spec, file="a test", base=Path())
    return predict(workload, read_layout(layout))


def weights(plan: RankedPlan) -> float:
    """Weights of the only stage. [GiB]."""
    (stage,) = plan.estimate.memory.stages
    return stage.weights


@pytest.mark.parametrize(("stage", "shards"), [(0, 1), (2, 1), (3, 8)])
def test_a_copy_holds_two_bytes_of_every_parameter(stage: int, shards: int) -> None:
    layout = f"dp=8,zero_stage={stage},micro_batch=2,recompute=full"
    more = weights(priced(layout, reference="copy")) - weights(priced(layout))
    assert more == pytest.approx(2 * 1_235_814_400 / shards / GIB, rel=0.02)


def test_a_reference_costs_a_forward_and_no_more_memory_than_its_weights() -> None:
    layout = "dp=8,zero_stage=0,micro_batch=2,recompute=none"
    off = priced(layout, reference="precomputed", **LORA)
    on = priced(layout, reference="adapters", **LORA)
    steps = [plan.estimate.step_time_s.value for plan in (off, on)]
    assert steps[0] == priced(layout, **LORA).estimate.step_time_s.value
    # Frozen weights have half a backward: forward, input gradients, forward again.
    assert 1.3 < steps[1] / steps[0] < 1.6
    assert weights(on) == weights(off)


def test_an_odd_micro_batch_is_half_a_pair() -> None:
    with pytest.raises(BadInputError, match="micro_batch = 1 is no whole number of"):
        priced("dp=8,micro_batch=1,recompute=full", reference="copy")


@pytest.mark.parametrize(
    ("training", "words"),
    [
        ({"reference": "adapters"}, "method full has none"),
        ({"reference": "copy", **LORA}, "held twice under method lora"),
        ({"reference": "copy", "global_batch": 33}, "a pair is two sequences"),
        ({"reference": "twin"}, "copy"),
    ],
)
def test_a_reference_that_cannot_be_is_refused(
    training: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        priced("dp=8,micro_batch=2", **training)
