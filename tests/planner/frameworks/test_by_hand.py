"""What a job sets of a stack shows in its outputs, and nothing else does."""

from pathlib import Path

import pytest

from planner.cost.estimate.stack import stack_in_force
from planner.cost.pricing import Pricing
from planner.job.resolve import resolve
from planner.planning.prediction.predict import predict
from planner.specs.job import JobSpec
from planner.specs.reading.layout_line import read_layout
from planner.specs.reading.read import read_spec

JOBS = sorted(Path("configs/jobs").glob("*.yaml"))


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_every_shipped_job_says_what_it_sets(path: Path) -> None:
    spec = read_spec(path, ())
    if spec.training is None:
        return
    for workload in resolve(spec, file=str(path), base=path.parent):
        told = " ".join(
            map(str, stack_in_force(Pricing.candidate(workload)).get("set_by_hand", []))
        )
        own = workload.framework.profile
        for name, value in spec.stack.items():
            same = name == "name" and value == own.name and not told
            assert same or str(name) in told or value == getattr(own, name, None)
        if not spec.stack:
            assert told == ""


def test_values_set_by_hand_are_among_the_assumptions() -> None:
    spec = {
        "model": "llama-3.2-1b",
        "cluster": "a100-pcie-4",
        "framework": "torchtitan",
        "training": {"seq_len": 2048, "global_batch": 64},
        "stack": {"gathered_inputs": "regathered", "recipe": {"logits_bytes": 6}},
    }
    (workload,) = resolve(JobSpec.model_validate(spec), file="a test", base=Path())
    plan = predict(workload, read_layout("tp=2,stages=even,recompute=full"))
    (line,) = (x for x in plan.estimate.assumptions if "set by the job" in x)
    assert "gathered_inputs regathered (saved)" in line
    assert "recipe.logits_bytes 6" in line
    plain = JobSpec.model_validate({**spec, "stack": {}})
    (workload,) = resolve(plain, file="a test", base=Path())
    plan = predict(workload, read_layout("tp=2,stages=even,recompute=full"))
    assert not any("set by the job" in line for line in plan.estimate.assumptions)
