"""Ten jobs keep their plans and bounds, however the search gets to them.

tests/golden/plans.json has the plans of a search that looked at one candidate at a
time. Whoever moves a price writes it anew in the same commit:
`pytest --rewrite-goldens -n0 -m "slow or not slow"` of this file.
"""

import json
from dataclasses import fields
from pathlib import Path

import pytest

from planner.cost.meshes import Meshes
from planner.job.resolve import resolve
from planner.job.variants import variants
from planner.search.best_first import search_all
from planner.search.incumbents import Found
from planner.search.outcome import SearchOutcome
from planner.specs.reading.read import read_spec

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden" / "plans.json"
JOBS: dict[str, tuple[str, ...]] = {
    "llama-3-8b-8-a100": (),
    "llama-3.1-8b-lora-rtx-4090": (),
    "llama-3.1-70b-qlora-2-a6000": (),
    "mixtral-8x7b-64-h100": (),
    "mixtral-8x22b-64-mi300x": (),
    "llama-3.1-70b-1000-h100": ("search.pp=[1,2,4,5]",),
    "gpt3-175b-512-a100": ("search.tp=8", "search.pp=[2,4,8]", "search.micro_batch=1"),
    "bloom-176b-384-a100": ("search.tp=4", "search.pp=12", "search.micro_batch=[1,2]"),
    "llama-3.1-405b-16k-h100": ("search.tp=8", "search.pp=[8,16]", "search.cp=[1,2]"),
    "deepseek-v3-2048-h800": ("search.tp=1", "search.pp=16", "search.ep=64"),
}
LONG = (
    "deepseek-v3-2048-h800",
    "gpt3-175b-512-a100",
    "llama-3.1-405b-16k-h100",
    "mixtral-8x22b-64-mi300x",
    "mixtral-8x7b-64-h100",
)
"""Jobs whose search takes seconds. [text]"""
TOP = 3
"""Plans kept of every job. [1]"""


def outcomes_of(name: str) -> list[SearchOutcome]:
    path = ROOT / "configs" / "jobs" / f"{name}.yaml"
    spec = read_spec(path, JOBS[name])
    workloads = resolve(spec, file=path.name, base=path.parent)
    return search_all(variants(workloads), top=TOP, time_limit=600.0)


def digits(value: float) -> float:
    """The digits that every machine computes alike."""
    return float(f"{value:.12g}")


def plan(outcome: SearchOutcome, found: Found) -> dict[str, object]:
    """A plan as its axes, its split, its step and its memory."""
    space, row = outcome.space, outcome.space.mesh[found.candidate]
    axes = {f.name: int(getattr(space.meshes, f.name)[row]) for f in fields(Meshes)}
    return {
        **axes,
        "vpp": int(space.vpp[found.candidate]),
        "schedule": space.schedule(found.candidate),
        "recompute": [space.recompute[i] for i in space.choices(found.candidate)],
        "counts": ", ".join(
            " ".join(map(str, stage.ravel())) for stage in found.counts
        ),
        "step_s": digits(found.step_s),
        "device_bytes": digits(found.device_bytes),
    }


def answer(name: str) -> dict[str, object]:
    """Everything that a user sees of a search."""
    outcomes = outcomes_of(name)
    found = sorted(found for outcome in outcomes for found in outcome.ranked)
    return {
        "space": sum(len(outcome.space) for outcome in outcomes),
        "bound_s": digits(min(outcome.bound_s for outcome in outcomes)),
        "plans": [plan(outcomes[each.variant], each) for each in found],
    }


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in JOBS]
)
def test_plans_and_bounds_stay_what_they_were(name: str, *, rewriting: bool) -> None:
    now, kept = answer(name), json.loads(GOLDEN.read_text())
    if rewriting:
        GOLDEN.write_text(json.dumps(kept | {name: now}, indent=1) + "\n")
    assert rewriting or now == kept[name]
