"""Two verdicts: a run trains, and a run is resumed from a checkpoint."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner.specs.answer.estimate import RESUME

MIXTRAL = {
    "model": "mixtral-8x7b",
    "cluster": "dgx-h100-4-nodes",
    "training": {"seq_len": 4096, "global_batch": 64},
    "framework": "megatron",
}
LLAMA = {
    "model": "llama-2-70b",
    "cluster": "dgx-a100-4-nodes",
    "training": {"seq_len": 4096, "global_batch": 64},
    "framework": "megatron",
}
ALL = {"search.memory_moments": "all"}


def predicted(job: dict[str, Any], layout: str, nodes: int = 2, **fields: Any) -> Any:
    return planner.predict(job, layout=layout, set={"cluster.nodes": nodes, **fields})


@pytest.mark.parametrize(
    ("job", "layout", "trains"),
    [
        (MIXTRAL, "tp=1,pp=2,ep=8,micro_batch=1,zero_stage=1", 0.01),
        (LLAMA, "tp=8,pp=2,micro_batch=1,zero_stage=1,recompute=full", 0.2),
    ],
)
def test_a_run_that_trains_may_not_resume(
    job: dict[str, Any], layout: str, trains: float
) -> None:
    answer = predicted(job, layout)
    memory = answer.estimate.memory
    assert memory.oom_probability < trains
    assert all(stage.moment != RESUME for stage in memory.stages)
    assert memory.resume.moment == RESUME
    assert memory.resume.verdict != "fits"
    assert memory.resume.oom_probability > 0.4
    assert memory.resume.peak_device_gib.value > memory.peak_device_gib.value + 10
    (said,) = [words for words in answer.warnings if "resume" in words]
    for part in (RESUME, "resume_copies=0", "--no-load-optim", "memory_moments=all"):
        assert part in said


def test_both_count_where_the_job_says_so() -> None:
    layout = "tp=1,pp=2,ep=8,micro_batch=1,zero_stage=1"
    apart, both = predicted(MIXTRAL, layout), predicted(MIXTRAL, layout, **ALL)
    resume, memory = apart.estimate.memory.resume, both.estimate.memory
    assert memory.peak_device_gib == resume.peak_device_gib
    assert memory.oom_probability == resume.oom_probability
    assert memory.verdict == resume.verdict


def test_a_release_that_loads_in_place_needs_no_more_than_training() -> None:
    loaded = {"stack.recipe.resume_copies": 0}
    layout = "tp=1,pp=2,ep=8,micro_batch=1,zero_stage=1"
    answer = predicted(MIXTRAL, layout, **loaded)
    assert answer.estimate.memory.resume is None
    assert not any("resume" in words for words in answer.warnings)


@given(
    tp=st.sampled_from([1, 2, 4, 8]),
    pp=st.sampled_from([1, 2, 4]),
    zero=st.sampled_from([0, 1]),
    micro=st.sampled_from([1, 2]),
)
def test_training_is_never_judged_by_the_resume(
    tp: int, pp: int, zero: int, micro: int
) -> None:
    """All moments are the worse of both verdicts, and training alone the other."""
    job = MIXTRAL | {"model": "llama-3.1-8b", "cluster": "dgx-h100-4-nodes"}
    if tp * pp > 8:
        return
    layout = f"tp={tp},pp={pp},zero_stage={zero},micro_batch={micro},recompute=none"
    apart = predicted(job, layout, 1).estimate.memory
    both = predicted(job, layout, 1, **ALL).estimate.memory
    resume = apart.resume.oom_probability if apart.resume else 0.0
    assert both.oom_probability == max(apart.oom_probability, resume)
    worst = [max(stage.moments, key=lambda at: at.allocated) for stage in both.stages]
    assert [stage.moment for stage in both.stages] == [at.moment for at in worst]
