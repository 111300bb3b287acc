"""Steps of small jobs under every schedule, simulated."""

from functools import cache
from pathlib import Path

import pytest

from planner.cost.workload import Workload
from planner.job.resolve import resolve
from planner.planning.prediction.predict import predict
from planner.report.charts.timeline import Timeline, timeline
from planner.specs.answer.result import RankedPlan
from planner.specs.reading.layout_line import read_layout
from planner.specs.reading.read import read_spec

JOB = Path(__file__).parents[3] / "configs/jobs/llama-3-8b-8-a100.yaml"
LAYOUTS = {
    "one rank": "tp=8",
    "1f1b": "tp=2,pp=4,zero_stage=1",
    "interleaved": "pp=4,vpp=2,tp=2,zero_stage=1",
    "zb-v": "pp=4,vpp=2,tp=2,schedule=zb-v,zero_stage=2",
    "zero 3": "pp=2,tp=2,zero_stage=3,micro_batch=8",
}
SETTINGS = {
    "zb-v": ("framework=torchtitan", "stack={name: torchtitan-eager}"),
    "zero 3": ("framework=torchtitan", "stack={}"),
}


@cache
def priced(name: str) -> tuple[Workload, RankedPlan]:
    """A job of eight GPUs, and the layout of that name."""
    assignments = ("training.global_batch=32", *SETTINGS.get(name, ()))
    spec = read_spec(JOB, assignments)
    (workload,) = resolve(spec, file=str(JOB), base=JOB.parent)
    return workload, predict(workload, read_layout(LAYOUTS[name]))


@cache
def stepped(name: str) -> Timeline:
    """Its step."""
    workload, plan = priced(name)
    return timeline(workload, plan.layout)


@pytest.fixture(params=LAYOUTS)
def step(request: pytest.FixtureRequest) -> Timeline:
    """The step of each layout."""
    return stepped(request.param)


@pytest.fixture(params=LAYOUTS)
def plan(request: pytest.FixtureRequest) -> tuple[Workload, RankedPlan]:
    """Each layout with its job."""
    return priced(request.param)


@pytest.fixture
def one_rank() -> Workload:
    """The job alone."""
    return priced("one rank")[0]


@pytest.fixture
def one_plan() -> RankedPlan:
    """The plan of a job without a pipeline."""
    return priced("one rank")[1]
