"""Rates that were never seen are doubted in words; the record's run is named."""

from dataclasses import replace
from typing import Any

import pytest
from strategies import small_job

import planner
from planner.cost.workload import Workload
from planner.frameworks.sanity import floor, record_key, records
from planner.planning.prediction.predict import predict
from planner.planning.sanity import doubts
from planner.specs.answer.estimate import ByConvention, Estimate
from planner.specs.answer.result import RankedPlan
from planner.specs.layouts.layout import PartialLayout
from planner.specs.search import SearchSpec


def judged(mfu: float, hfu: float, **training: Any) -> tuple[str, ...]:
    """What is said of a small dense job at these rates."""
    workload = small_job(SearchSpec())
    block = workload.training.model_copy(update=training)
    workload = replace(workload, training=block)
    return doubts(workload, plain().layout, rated(mfu, hfu))


def plain() -> RankedPlan:
    return predict(small_job(SearchSpec()), PartialLayout(tp=1, pp=1))


def rated(mfu: float, hfu: float) -> Estimate:
    estimate = plain().estimate
    both = ByConvention(full_attention=mfu, causal_attention=mfu)
    return estimate.model_copy(update={"mfu": both, "hfu": hfu})


def record_of(workload: Workload) -> tuple[str, float]:
    key = record_key(
        arch=workload.gpu.arch,
        precision=workload.training.precision,
        method=workload.training.method,
    )
    return records()[key].run, records()[key].mfu


def test_a_rate_above_every_measured_run_names_the_record() -> None:
    run, best = record_of(small_job(SearchSpec()))
    (said,) = judged(best + 0.001, best + 0.001)
    assert run in said
    assert f"{best:.1%}" in said
    assert judged(best, best) == ()


def test_a_rate_below_the_floor_says_what_it_loses_to() -> None:
    """115 of 312 TFLOP/s on an A100 are 364.6 of the 989 of an H100."""
    share = floor().share
    assert share == pytest.approx(115 / 312)
    assert judged(0.3, share) == ()
    (said,) = judged(0.3, share - 0.001)
    assert "115 on an A100" in said
    assert "it loses most to" in said


def test_the_floor_speaks_of_dense_models_that_train_in_full() -> None:
    assert judged(0.1, 0.1, method="lora") == ()
    assert len(judged(0.1, 0.1)) == 1


def test_a_kind_that_was_never_measured_has_no_ceiling() -> None:
    assert "hopper, nvfp4, full" not in records()
    assert judged(5.0, 5.0, precision="nvfp4") == ()


def test_formats_of_one_peak_share_a_record() -> None:
    keys = {
        record_key(arch="ampere", precision=name, method="full")
        for name in ("bf16", "fp16")
    }
    assert keys == {"ampere, half, full"}
    assert record_key(arch="a", precision="fp8", method="qlora") == "a, fp8, adapters"


@pytest.mark.parametrize(
    ("zero", "method", "precision", "told"),
    [
        (0, "full", "bf16", True),
        (3, "full", "bf16", False),
        (0, "lora", "bf16", False),
        (0, "full", "fp16", False),
    ],
)
def test_weights_that_learn_in_16_bits_alone_are_told(
    zero: int, method: str, precision: str, *, told: bool
) -> None:
    """Trainer keeps no wider weights under DDP, FSDP2 keeps fp32 shards."""
    name = "llama-3.2-1b"
    fields = {"seq_len": 512, "global_batch": 8}
    training = fields | {"method": method, "precision": precision}
    spec = {"model": name, "cluster": "dgx-a100-1-node", "training": training}
    spec |= {"framework": "accelerate"}
    answer = planner.predict(spec, layout=f"dp=8,zero_stage={zero}")
    said = [each for each in answer.warnings if "1/512 of a weight" in each]
    assert len(said) == told
    assert all("ZeRO 2 or 3 keeps one" in each for each in said)
