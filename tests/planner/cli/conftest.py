"""A result made by hand: the 405B layout of a paper, with a runner-up."""

import pytest

from planner.specs.answer.estimate import (
    ByConvention,
    Estimate,
    Interval,
    MemoryEstimate,
    StageMemory,
    TimeBreakdown,
)
from planner.specs.answer.result import (
    Explanation,
    Objective,
    RankedPlan,
    Result,
    SearchReport,
)
from planner.specs.answer.uncertainty import Band
from planner.specs.layouts.layout import Layout, Stage

BREAKDOWN = TimeBreakdown(compute=6.0, tp_comm=1.5, bubble=1.0, dp_comm=0.5)


def stage_memory(index: int, activations: float) -> StageMemory:
    return StageMemory(
        stage=index,
        moment="steady",
        weights=10.0,
        gradients=12.0,
        optimizer=4.0,
        activations=activations,
        transient=1.0,
        communication=2.0,
        fragmentation=1.5,
        context=0.5,
    )


def estimate(verdict: str = "fits") -> Estimate:
    return Estimate(
        step_time_s=Interval.around(9.0, Band(low=0.85, high=1.15)),
        tokens_per_s_per_gpu=113.8,
        tokens_per_s=1_864_135.0,
        model_tflops_per_gpu=ByConvention(full_attention=401, causal_attention=391),
        mfu=ByConvention(full_attention=0.405, causal_attention=0.395),
        hfu=0.41,
        time_breakdown_s=BREAKDOWN,
        memory=MemoryEstimate(
            peak_allocated_gib=Interval.around(47.0, Band(low=0.85, high=1.15)),
            peak_reserved_gib=48.5,
            peak_device_gib=Interval.around(51.0, Band(low=0.85, high=1.15)),
            capacity_gib=79.6,
            verdict=verdict,
            stages=(stage_memory(0, 5), stage_memory(1, 20), stage_memory(2, 3)),
        ),
        stack={"framework": "torchtitan", "clock": 1.0, "compile": True},
        assumptions=("the interval is a stated default of 15 %",),
    )


def layout(**changes: object) -> Layout:
    ends = (Stage(layers=0),)
    stages = (*ends, *(Stage(layers=1),) * 126, *ends)
    fields = {
        "tp": 8,
        "sp": True,
        "pp": 16,
        "vpp": 8,
        "dp": 128,
        "dp_shard": 128,
        "zero_stage": 2,
        "grad_accum": 16,
        "schedule": "interleaved",
        "order": "tp-cp-ep-pp-dp",
        "stages": stages,
    }
    return Layout(**{**fields, **changes})


@pytest.fixture
def result() -> Result:
    return Result(
        status="optimal",
        objective=Objective(name="throughput", value=1.8e6, bound=1.8e6, gap=0.0),
        search=SearchReport(
            space=123456, priced=100000, pruned={"bound": 99000}, solved=12, seconds=3.5
        ),
        plans=(
            RankedPlan(rank=1, layout=layout(), estimate=estimate()),
            RankedPlan(
                rank=2,
                layout=layout(tp=4, dp=256),
                estimate=estimate("at-risk"),
                slower=0.0213,
                why="more [gradient] traffic",
            ),
        ),
        explanation=Explanation(
            binding=("compute binds",), runner_up="TP 4 sends more gradients"
        ),
        warnings=("a warning",),
    )


@pytest.fixture
def infeasible() -> Result:
    return Result(
        status="infeasible",
        objective=Objective(name="throughput", value=0.0, bound=0.0, gap=0.0),
        search=SearchReport(space=10, priced=10, pruned={}, solved=0, seconds=0.1),
        plans=(),
        explanation=Explanation(infeasible=("optimizer states alone need 99 GiB",)),
    )
