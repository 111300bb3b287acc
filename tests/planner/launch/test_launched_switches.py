"""What a price assumes of the stack is what the launch files set, and no more."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from accelerate_plans import MODEL as DENSE
from accelerate_plans import filed
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import BadInputError
from planner.job.resolve import resolve
from planner.launch.emit import emit
from planner.launch.importing import read_texts
from planner.launch.read_plan import PlanFile
from planner.launch.registry import TARGETS
from planner.planning.prediction.predict import predict
from planner.specs.answer.result import Plan
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout

LAYERS = {"num_hidden_layers": 4, "num_key_value_heads": 4}
MODELS: dict[str, dict[str, Any]] = {
    "dense": DENSE | LAYERS | {"architectures": ["LlamaForCausalLM"]},
    "experts": DENSE
    | LAYERS
    | {
        "model_type": "mixtral",
        "architectures": ["MixtralForCausalLM"],
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
    },
}
CLUSTER = {"name": "one node", "node": "dgx-h100", "nodes": 1}
BOOLEANS = ("overlap_grad_reduce", "overlap_param_gather", "tp_overlap", "ep_overlap")
OVERLAPS = ("overlap_grad_reduce", "overlap_param_gather")
ZERO = {
    "megatron": (0, 1, 1),
    "torchtitan": (2, 3),
    "deepspeed": (0, 1, 2, 3),
    "accelerate": (2, 3),
}
Found = tuple[PlanFile, Mapping[str, str]]


def launched(target: str, spec: dict[str, Any], folder: Path) -> Found | None:
    """A priced plan and its launch files; none where there is no such plan."""
    try:
        job = JobSpec.model_validate(spec)
        (workload,) = resolve(job, file="tiny", base=Path())
        priced = predict(workload, PartialLayout.model_validate(spec["layout"]))
    except BadInputError:
        return None
    fields = {
        "schema": "planner/plan@1",
        "spec": job.model_dump(mode="json", by_alias=True) | {"model": spec["model"]},
        "layout": priced.layout.model_dump(mode="json", by_alias=True),
        "estimate": priced.estimate.model_dump(mode="json", by_alias=True),
        "versions": {"planner": "0"},
    }
    found = filed(Plan.model_validate(fields), folder)
    (its,) = (one for one in TARGETS if one.name == target)
    if its.gaps(found.brief):
        return None
    return found, {file.name: file.text for file in emit(found, target)}


@st.composite
def jobs(draw: st.DrawFn, room: str) -> dict[str, Any]:
    """A job of a room on eight GPUs, and a layout; legal or not."""

    def one(*values: Any) -> Any:
        return draw(st.sampled_from(values))

    def maybe() -> bool:
        return draw(st.booleans())

    tp, pp = one(1, 2), one(1, 1, 2)
    vpp = one(1, 2) if pp > 1 and room in ("megatron", "torchtitan") else 1
    schedule = "interleaved" if vpp > 1 else "1f1b"
    model = one(*MODELS)
    named = {"megatron": ("nemo-2026", "nemo-2024", None, None)}.get(room, (None,))
    stack = {name: maybe() for name in BOOLEANS}
    few = room in ("accelerate", "deepspeed")  # which have few for themselves
    stack = {k: v for k, v in stack.items() if maybe() and not (few and maybe())}
    name = one(*named)
    layout = {
        "tp": tp,
        "pp": pp,
        "vpp": vpp,
        "sp": tp > 1 and room not in ("accelerate", "deepspeed") and maybe(),
        "ep": one(1, 2, 4) if model == "experts" else 1,
        "zero_stage": one(*ZERO[room]),
        "micro_batch": one(1, 2),
        "schedule": schedule,
        "stages": "even",
        "recompute": one("none", "none", "selective", "full"),
    }
    return {
        "model": MODELS[model],
        "cluster": CLUSTER,
        "training": {
            "seq_len": 32,
            "global_batch": one(8, 16),
            "precision": "bf16" if room == "deepspeed" else one("bf16", "bf16", "fp8"),
        },
        "framework": room,
        "stack": stack | ({"name": name} if name else {}),
        "layout": layout,
    }


def check_megatron(found: PlanFile, files: Mapping[str, str], target: str) -> None:
    said, stack = read_texts(files, target, "files"), found.brief.stack
    for name in BOOLEANS:
        assert said.stack.get(name, False) is stack[name], name
    if found.pricing.training.precision == "fp8":
        assert said.stack["fp8_recipe"] == stack["fp8_recipe"]
    narrow = found.pricing.training.precision in ("fp8", "mxfp8")
    formats = said.layout.get("comm_dtype", {})
    assert isinstance(formats, dict)
    alone = narrow and found.plan.layout.zero_stage > 0 and bool(stack["fp8_primary"])
    assert (formats.get("parameters") == "fp8") is alone


def check_torchtitan(found: PlanFile, files: Mapping[str, str], target: str) -> None:
    said, stack = read_texts(files, target, "files"), found.brief.stack
    assert said.stack.get("tp_overlap", False) is stack["tp_overlap"]
    assert ("name" not in said.stack) is stack["compile"]
    assert all(stack[name] for name in OVERLAPS if found.plan.layout.dp > 1)
    assert not stack["ep_overlap"]


def check_deepspeed(found: PlanFile, files: Mapping[str, str], _: str) -> None:
    stack, zero = found.brief.stack, found.plan.layout.zero_stage
    block = json.loads(files["ds_config.json"])["zero_optimization"]
    if zero < 3:
        assert block.get("overlap_comm", False) is stack["overlap_grad_reduce"]
        assert not stack["overlap_param_gather"]
    assert not stack["tp_overlap"]
    assert not stack["ep_overlap"]


def check_accelerate(found: PlanFile, files: Mapping[str, str], _: str) -> None:
    stack = found.brief.stack
    assert files
    assert [stack[name] for name in BOOLEANS] == [True, True, False, False]


CHECKS: dict[str, tuple[str, Callable[[PlanFile, Mapping[str, str], str], None]]] = {
    "megatron": ("megatron", check_megatron),
    "megatron-bridge": ("megatron", check_megatron),
    "torchtitan": ("torchtitan", check_torchtitan),
    "deepspeed": ("deepspeed", check_deepspeed),
    "accelerate": ("accelerate", check_accelerate),
}


@pytest.mark.hypothesis
@pytest.mark.parametrize("target", CHECKS)
def test_files_set_what_the_price_used(target: str, tmp_path: Path) -> None:
    room, check = CHECKS[target]
    seen = []

    @settings(max_examples=examples(50))
    @given(jobs(room))
    def drawn(spec: dict[str, Any]) -> None:
        made = launched(target, spec, tmp_path)
        if made is not None:
            check(made[0], made[1], target)
            seen.append(spec)

    drawn()
    assert len(seen) >= examples(50) // 6


@pytest.mark.parametrize(
    ("room", "stack"),
    [
        ("megatron", {"cuda_graphs": "layer"}),
        ("torchtitan", {"cuda_graphs": "full"}),
        ("torchtitan", {"overlap_grad_reduce": False}),
        ("torchtitan", {"ep_overlap": True}),
        ("accelerate", {"overlap_param_gather": False}),
        ("deepspeed", {"tp_overlap": True}),
    ],
)
def test_what_the_files_cannot_set_is_a_gap(
    room: str, stack: dict[str, Any], tmp_path: Path
) -> None:
    """Such a plan is refused by the name of the switch, not emitted without it."""
    spec = {
        "model": MODELS["dense"],
        "cluster": CLUSTER,
        "training": {"seq_len": 32, "global_batch": 8},
        "framework": room,
        "layout": {"micro_batch": 1, "recompute": "none"},
    }
    assert launched(room, spec | {"stack": {}}, tmp_path)
    assert launched(room, spec | {"stack": stack}, tmp_path) is None
