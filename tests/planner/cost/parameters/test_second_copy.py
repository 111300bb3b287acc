"""hpZ: states over all ranks, a second copy of ZeRO 3's weights among neighbours."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cost.meshes import Meshes
from planner.cost.pricing import Pricing
from planner.cost.table.table import fill_table
from planner.job.resolve import resolve
from planner.planning.prediction.predict import predict
from planner.specs.answer.estimate import StageMemory
from planner.specs.answer.result import RankedPlan
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout
from planner.verify.plan import violations

GIB = 2**30
WIDTH = 2
"""Bytes of a weight in bf16. [B]"""
RANKS = 16
HPZ = (1, 2, 4, 8, 16)


def workload(model: str, node: str, nodes: int, **fields: Any) -> Pricing:
    training = {"seq_len": 2048, "global_batch": nodes * 32} | fields.pop(
        "training", {}
    )
    spec = JobSpec.model_validate(
        {
            "model": model,
            "cluster": {"node": node, "nodes": nodes},
            "training": training,
            "framework": "deepspeed",
            **fields,
        }
    )
    return Pricing.candidate(resolve(spec, file="job", base=Path())[0])


def priced(job: Pricing, **layout: Any) -> RankedPlan:
    usual = {"zero_stage": 3, "micro_batch": 1, "recompute": "full"}
    return predict(job, PartialLayout.model_validate(usual | layout))


def only(plan: RankedPlan) -> StageMemory:
    (stage,) = plan.estimate.memory.stages
    return stage


def test_optimizer_states_stay_over_all_ranks() -> None:
    """8 B on 32 GPUs: 12 B a parameter over 32 are 2.8 GiB; over 8 they were 11.2."""
    job = workload("llama-3.1-8b", "dgx-h100", 4)
    plain, copied = priced(job), priced(job, hpz=8)
    assert only(copied).optimizer == only(plain).optimizer
    assert only(copied).optimizer == pytest.approx(2.8, abs=0.05)
    more = only(copied).weights - only(plain).weights
    assert more == pytest.approx(WIDTH * 8.03e9 / 8 / GIB, rel=1e-3)


def test_a_large_model_needs_no_more_than_the_copy() -> None:
    """72 B on 64 A100 of 40 GB: 62 GiB; all states over 8 ranks were 193."""
    job = workload("qwen2.5-72b", "aws-p4d.24xlarge", 8, training={"seq_len": 4096})
    plain, copied = priced(job), priced(job, hpz=8)
    peaks = [p.estimate.memory.peak_device_gib.value for p in (plain, copied)]
    assert peaks[1] == pytest.approx(62, abs=2)
    assert peaks[1] - peaks[0] == pytest.approx(
        WIDTH * job.model.parameters / 8 / GIB, rel=0.1
    )
    # The nodes' network is 50 GB/s for 8 GPUs: one gather of two stays inside.
    steps = [p.estimate.step_time_s.value for p in (plain, copied)]
    assert steps[1] < 0.95 * steps[0]


def test_every_gather_after_the_first_stays_among_neighbours() -> None:
    """With more micro-batches in a step the share of gathers over all ranks falls."""
    saved = []
    for batch in (64, 256):
        training = {"seq_len": 512, "global_batch": batch}
        job = workload("llama-3.1-8b", "aws-p4d.24xlarge", 8, training=training)
        steps = [priced(job, hpz=n).estimate.step_time_s.value for n in (1, 8)]
        saved.append((steps[0] - steps[1]) / (batch / 64))
    assert saved[1] > 1.3 * saved[0] > 0


@given(st.lists(st.sampled_from(HPZ), min_size=1, max_size=5))
@settings(max_examples=examples(80))
def test_a_mesh_is_priced_alike_whatever_copies_others_have(
    drawn: list[int],
) -> None:
    """To the digit, whatever copies are priced beside it."""
    job = workload("llama-3.2-1b", "dgx-h100", 2)
    row = (1, 0, 1, 1, 0, 1, 1, RANKS, RANKS, 3)
    meshes = Meshes.from_rows([(*row, hpz, 1, 4, 0) for hpz in (1, *drawn)])
    table = fill_table(job, meshes, ("none", "full"))
    for at, hpz in enumerate((1, *drawn)):
        alone = fill_table(job, meshes.take(np.array([at])), ("none", "full"))
        assert (table.forward[..., at] == alone.forward[..., 0]).all()
        assert (table.backward[..., at] == alone.backward[..., 0]).all()
        assert table.budget[at] == alone.budget[0]
        for unit, own in zip(table.units, alone.units, strict=True):
            assert unit.static[at] == own.static[0]
            grows = unit.static[at] - unit.static[0]
            assert bool(grows > 0) is (hpz > 1)


@given(st.data())
@settings(max_examples=examples(160), deadline=None)
def test_a_copy_costs_its_weights_and_no_time(data: st.DataObject) -> None:
    """2 P / h bytes of weights, no other state; and no step is longer."""
    draw = data.draw
    name = draw(st.sampled_from(("llama-3.2-1b", "qwen2.5-0.5b", "olmoe-1b-7b")))
    batch = RANKS * draw(st.sampled_from((1, 2, 8)))
    training = {"global_batch": batch}
    node = draw(st.sampled_from(("aws-p4d.24xlarge", "dgx-h100")))
    job = workload(name, node, 2, training=training)
    layout: dict[str, Any] = {"recompute": draw(st.sampled_from(("none", "full")))}
    if draw(st.booleans()) and name.startswith("llama"):
        layout |= {"cp": 2, "cp_kind": "ulysses"}
    hpz = draw(st.sampled_from(HPZ))
    plain, copied = priced(job, **layout), priced(job, hpz=hpz, **layout)
    ours, theirs = only(copied), only(plain)
    assert (ours.optimizer, ours.gradients) == (theirs.optimizer, theirs.gradients)
    share = (hpz > 1) / hpz
    more = WIDTH * job.model.parameters * share / GIB
    assert ours.weights - theirs.weights == pytest.approx(more, rel=1e-3, abs=1e-4)
    steps = [p.estimate.step_time_s.value for p in (copied, plain)]
    assert steps[0] <= steps[1] * (1 + 1e-9)
    assert hpz > 1 or steps[0] == steps[1]
    assert not violations(
        job,
        copied.layout,
        step_s=steps[0],
        device_gib=[stage.device for stage in copied.estimate.memory.stages],
    )


def test_the_copy_of_offloaded_weights_lies_on_the_host() -> None:
    job = workload("llama-3.1-8b", "dgx-h100", 4)
    away: dict[str, Any] = {"offload": {"optimizer": 1.0, "parameters": 1.0}}
    plain, copied = priced(job, **away), priced(job, hpz=8, **away)
    assert only(copied).weights == only(plain).weights
    hosts = [p.estimate.memory.host for p in (plain, copied)]
    assert hosts[0] is not None
    assert hosts[1] is not None
    more = hosts[1].needed_gib - hosts[0].needed_gib
    assert more == pytest.approx(WIDTH * job.model.parameters / GIB, rel=1e-3)


def test_a_reference_model_has_a_copy_too() -> None:
    """Preference training under Trainer: policy and reference, each with one."""
    training = {"seq_len": 1024, "global_batch": 32, "reference": "copy"}
    fields = {"framework": "accelerate", "stack": {"name": "hf-trainer"}}
    job = workload("llama-3.1-8b", "dgx-h100", 2, training=training, **fields)
    plain, copied = (only(priced(job, micro_batch=2, hpz=n)) for n in (1, 8))
    more = 2 * WIDTH * job.model.parameters / 8 / GIB
    assert copied.weights - plain.weights == pytest.approx(more, rel=1e-3)


def test_copies_of_frozen_weights_last() -> None:
    """LoRA: what is frozen is never gathered from all ranks, so less time is left."""
    fields = {"framework": "accelerate", "stack": {"name": "hf-trainer"}}
    training = {"method": "lora", "seq_len": 512, "global_batch": 64}
    node = "aws-p4d.24xlarge"
    job = workload("llama-3.1-8b", node, 8, training=training, **fields)
    plain, copied = (priced(job, hpz=n) for n in (1, 8))
    times = [p.estimate.time_breakdown_s.dp_comm for p in (plain, copied)]
    assert times[1] < 0.5 * times[0]
