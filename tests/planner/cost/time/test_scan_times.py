"""Time and memory of layers with a scan, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from test_stack_physics import context, job

from planner.cost.memory.activations import score_bytes
from planner.cost.memory.context_buffers import context_buffers
from planner.cost.memory.recompute_modules import core_share
from planner.cost.network.collectives import all_to_all_time
from planner.cost.time.context_parallel import context_exchange
from planner.cost.time.exchange import core_times
from planner.cost.time.scans import scan_sources
from planner.models import preset

MODEL = preset("qwen3-next-80b-a3b")
DELTA, GATED = MODEL.kinds
"""32 heads of 128 columns; 16 groups of keys."""
WIDE, OUT = 12_288 + 64, 4_096
"""Columns that input projections make, and of the scan's output."""


def test_a_scan_takes_its_work_a_wait_per_token_and_a_launch() -> None:
    """32 (2 64 5 128 + 6 128^2) FLOP a token at 96.7 TFLOP/s; 24.8 ns; 24.4 us."""
    its = context(replace(job("dgx-h100"), model=MODEL), tp=4, dp=2)
    work = 32 * (2 * 64 * 5 * 128 + 6 * 128**2) * 4096 / 4
    launch = 24.4e-6 * its.pricing.profile.latency
    ahead, behind = core_times(its, DELTA)
    assert float(ahead[0]) == pytest.approx(work / 96.7e12 + 4096 * 24.8e-9 + launch)
    assert float(behind[0]) == pytest.approx(3 * float(ahead[0]))


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_context_ranks_deal_a_scans_heads_whatever_kind_attention_has(
    kind: int,
) -> None:
    """Two all-to-alls each way, of the projected inputs and of the output."""
    its = context(job("dgx-h100"), cp=4, dp=2, cp_kind=kind)
    groups = [g for g in (its.ulysses, its.ring) if g.size[0] > 1]
    hand = sum(
        float(all_to_all_time(its.links, np.array([2.0 * c * 1024]), group)[0])
        for c in (WIDE, OUT)
        for group in groups
    )
    for time in context_exchange(its, DELTA):
        assert float(time[0]) == pytest.approx(hand)
    assert context_buffers(DELTA, its.meshes)[0] == 2 * 2 * (WIDE + OUT)


def test_recompute_of_the_attention_core_leaves_scans_alone() -> None:
    recipe = job().recipe
    shares = {
        name: [core_share(recipe.kind(name), kind) for kind in (DELTA, GATED)]
        for name in ("none", "selective", "full")
    }
    assert shares == {"none": [0, 0], "selective": [0, 1], "full": [1, 1]}


def test_a_scan_has_no_scores_and_names_its_source() -> None:
    unfused = job(attention_kernel="unfused")
    assert score_bytes(unfused, DELTA) == 0 < score_bytes(unfused, GATED)
    (sentence,) = scan_sources(replace(job(), model=MODEL))
    assert sentence.startswith("gated-delta: fit to")
    assert scan_sources(job()) == ()
