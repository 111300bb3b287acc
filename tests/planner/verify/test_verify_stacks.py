"""The best plan of a job passes verify on every stack of every room."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from planner.cost.pricing import Pricing
from planner.errors import BadInputError
from planner.frameworks import FRAMEWORKS
from planner.frameworks.stacks import stack_names
from planner.job.resolve import resolve
from planner.planning.optimize import optimize
from planner.planning.prediction.predict import predict
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout

NODES = ("dgx-a100-80gb", "dgx-h100", "azure-nd96isr-mi300x-v5")
"""Nodes of which a stack's kernels are measured on one at least. [text]"""
STACKS = [
    (room.name, name)
    for room in FRAMEWORKS
    for name in ("", *sorted(stack_names(room.name)))
]
FAST = {
    *((room.name, "") for room in FRAMEWORKS),
    ("megatron", "megatron-2021"),
    ("megatron", "deepseek-v3"),
}
"""The default of every framework, and stacks that lack the most or have the most."""
MODELS: dict[str, dict[str, Any]] = {
    "dense": {
        "model_type": "llama",
        "hidden_size": 1024,
        "intermediate_size": 3584,
        "num_hidden_layers": 8,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "vocab_size": 32000,
        "max_position_embeddings": 8192,
    },
}
MODELS["moe"] = MODELS["dense"] | {
    "model_type": "mixtral",
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
}


def job(room: str, stack: str, model: str, **search: Any) -> Pricing:
    """A small job on a node that the stack's kernels are measured on."""
    spec = {
        "model": {"name": model, **MODELS[model]},
        "training": {"seq_len": 2048, "global_batch": 16},
        "framework": room,
        "stack": {"name": stack} if stack else {},
        "search": {"micro_batch": (1, 2), "vpp": (1, 2), "cp": 1} | search,
    }
    for node in NODES:
        cluster = {"name": "one node", "node": node, "nodes": 1}
        if "kernel" not in str(refusal := _tried(spec | {"cluster": cluster})):
            break
    assert isinstance(refusal, Pricing), refusal
    return refusal


def _tried(spec: dict[str, Any]) -> Pricing | BadInputError:
    try:
        (found,) = resolve(JobSpec.model_validate(spec), file="job", base=Path())
    except BadInputError as error:
        return error
    return Pricing.candidate(found)


def searches(room: str, stack: str) -> Iterator[Pricing]:
    """Every schedule, with sequence parallelism and without, dense and with experts."""
    limits = job(room, stack, "dense").framework.limits
    shape = {"tp": 2, "pp": 2 if limits.pipeline else 1}
    shape |= {"tp": 1, "ep": 1} if ("pp", "tp") in limits.apart else {}
    schedules = limits.schedules if limits.pipeline else limits.schedules[:1]
    for schedule, sp in product(schedules, limits.sequence_parallel):
        model = "moe" if sp else "dense"
        yield job(room, stack, model, **shape, schedule=schedule, sp=sp)


@pytest.mark.parametrize(
    ("room", "stack"),
    [pytest.param(*s, marks=[pytest.mark.slow] * (s not in FAST)) for s in STACKS],
)
def test_the_best_plan_is_sound_on_every_stack(room: str, stack: str) -> None:
    """The flow verifies what it lists, and would raise."""
    for workload in searches(room, stack):
        result = optimize([workload], top=1)
        assert result.status in ("optimal", "infeasible")
        for plan in result.plans:
            assert plan.layout.sp in workload.framework.limits.sequence_parallel


NARROWED = [("megatron", n) for n in ("megatron-2021", "megatron-deepspeed", "oneflow")]


@pytest.mark.slow
@pytest.mark.parametrize(("room", "stack"), NARROWED)
def test_a_stack_without_sequence_parallelism_plans_none(room: str, stack: str) -> None:
    """The search leaves it out, a layout or limit that asks for it is refused."""
    workload = job(room, stack, "dense", tp=2, pp=2)
    assert not any(plan.layout.sp for plan in optimize([workload]).plans)
    asked = PartialLayout.model_validate({"tp": 2, "sp": True})
    with pytest.raises(BadInputError, match=f"stack {stack} at tp 2 has sp False"):
        predict(workload, asked)
    with pytest.raises(BadInputError, match="no sequence parallelism"):
        optimize([job(room, stack, "dense", sp=True)])
    free = predict(workload, PartialLayout(tp=2))
    assert free.layout.zero_stage in workload.framework.limits.zero_stages


@pytest.mark.parametrize("stack", ["megatron-2021", "megatron-2022", "oneflow"])
@pytest.mark.parametrize("axis", ["cp", "ep"])
def test_degrees_that_a_stack_lacks_are_refused(stack: str, axis: str) -> None:
    """They came to Megatron-LM in October 2023."""
    workload = job("megatron", stack, "moe")
    with pytest.raises(BadInputError, match=f"stack {stack} at tp 1 has {axis} 1"):
        predict(workload, PartialLayout.model_validate({axis: 2}))
    with pytest.raises(BadInputError, match="cannot express"):
        optimize([job("megatron", stack, "moe", **{axis: 2})])
