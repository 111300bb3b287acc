"""Jobs of every target, planned with a given layout, written and read back."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from planner.errors import BadInputError, UnsupportedPlanError
from planner.job.resolve import resolve, resolved_spec
from planner.launch import PlanFile, emit, plan_file
from planner.launch.emit import CHECK, PLAN, README
from planner.launch.importing import UserOverrides, import_spec, read_texts, settled
from planner.planning.prediction.predict import predict
from planner.specs.answer.result import Plan, RankedPlan
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout
from planner.verify.legality import rule_violations

TARGETS = {
    "megatron": "megatron",
    "megatron-bridge": "megatron",
    "torchtitan": "torchtitan",
    "accelerate": "accelerate",
    "llamafactory": "accelerate",
    "trl": "accelerate",
    "axolotl": "accelerate",
    "torchtune": "accelerate",
    "deepspeed": "deepspeed",
}
"""Framework of each target. [text]"""
MODELS = (
    *("llama-3.2-1b", "llama-3.2-1b", "qwen2.5-0.5b", "qwen3-0.6b", "gemma-2-2b"),
    *("gpt2", "opt-1.3b", "gpt-oss-20b", "olmoe-1b-7b", "deepseek-v2-lite"),
    *("phi-3-mini", "llama-3.1-8b", "mixtral-8x7b"),
)
CLUSTERS = (
    ("dgx-a100-80gb", 1),
    ("dgx-h100", 1),
    ("dgx-h100", 2),
    ("dgx-b200", 1),
    ("hgx-mi300x", 1),
    ("workstation-rtx-4090-1", 1),
    ("workstation-rtx-4090-2", 1),
    ("dgx-1-v100", 1),
)
GPUS = {"workstation-rtx-4090-1": 1, "workstation-rtx-4090-2": 2}
KERNELS = ("sdpa", "fa2", "fa3", "cudnn9", "unfused", "eager", "flash_attention_2")
STACKS: Mapping[str, tuple[dict[str, Any], ...]] = {
    "accelerate": (
        *({"name": name} for name in ("hf-trainer", "hf-amp", "hf-bf16", "hf-bf16")),
        *({"loss": word} for word in ("chunked", "liger")),
        {"name": "hf-bf16", "loss": "chunked_logits"},
        {"accumulation": "no_sync"},
    ),
    "torchtitan": (
        {"name": "torchtitan-eager"},
        {"loss": "whole"},
        {"loss": "compiled"},
    ),
    "megatron": (
        {"loss": "fused"},
        {"overlap_grad_reduce": False},
        {"tp_overlap": True},
    ),
    "deepspeed": ({},),
}
STAGES = {"megatron": (0, 1), "torchtitan": (2, 3, 3), "accelerate": (0, 0, 1, 2, 3, 3)}
"""ZeRO stages that most layouts of a framework have. [1]"""
LORAS: tuple[dict[str, Any], ...] = (
    {},
    {"targets": "all-linear"},
    {"targets": "attention", "rank": 8},
    {"targets": ["q_proj", "v_proj"], "dropout": 0.05},
    {"precision": "fp32"},
)


PURE = {"stack": {"name": "hf-bf16"}, "precision": "bf16"}
FITS: Mapping[str, dict[str, Any]] = {
    "megatron": {"model": "llama-3.1-8b", "optimizer": "adamw"},
    "megatron-bridge": {"model": "llama-3.1-8b", "optimizer": "adamw"},
    "torchtitan": {"model": "llama-3.1-8b", "optimizer": "adamw"},
    "accelerate": {"optimizer": "adamw", "stack": {}},
    "llamafactory": {"stack": {"name": "hf-trainer"}, "optimizer": "adamw"},
    "trl": {"stack": {"loss": "chunked"}, "precision": "bf16", "optimizer": "adamw"},
    "axolotl": PURE | {"optimizer": "adamw"},
    "torchtune": PURE | {"model": "llama-3.2-1b", "optimizer": "adamw"},
    "deepspeed": {"model": "llama-3.2-1b", "optimizer": "adamw"},
}
"""What most plans that a target can write have. [text]"""
PLAIN = ("ep", "comm_dtype", "dp_shard")
"""Fields of a layout that few targets have. [text]"""


@dataclass(frozen=True)
class Case:
    """A job with a layout, for a target; legal or not."""

    target: str
    fields: dict[str, Any]
    layout: dict[str, Any]


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


@st.composite
def cases(draw: st.DrawFn, target: str) -> Case:
    """Draw a job for a target.

    Args:
        draw: Of hypothesis. [-]
        target: Name of the target. [text]

    Returns:
        The job. [-]
    """
    framework = TARGETS[target]
    node, nodes = draw(st.sampled_from(CLUSTERS))
    half = (
        "fp16"
        if "v100" in node
        else draw(st.sampled_from(("bf16",) * 5 + ("fp16", "fp8")))
    )
    stack: dict[str, Any] = {}
    if draw(st.booleans()):
        stack |= draw(st.sampled_from(STACKS[framework]))
    if draw(st.integers(0, 3)) == 0:
        stack["attention"] = draw(st.sampled_from(KERNELS))
    training: dict[str, Any] = {
        "seq_len": draw(st.sampled_from((512, 1024, 2048, 8192))),
        "precision": half,
        "optimizer": draw(
            st.sampled_from(
                ("adamw",) * 4
                + ("sgd", "sgd-momentum", "adamw-8bit", "adafactor", "muon")
            )
        ),
    }
    method = draw(st.sampled_from(("full", "full", "lora", "qlora")))
    if method != "full" and target not in ("megatron", "torchtitan", "deepspeed"):
        training |= {"method": method, "lora": draw(st.sampled_from(LORAS))}
    if draw(st.integers(0, 2)) == 0 and TARGETS[target] == "accelerate":
        training["padding"] = draw(st.sampled_from(("packed", "longest", "max")))
    layout = draw(_layouts(nodes * GPUS.get(node, 8), target))
    batch = layout["dp"] * layout["micro_batch"] * draw(st.sampled_from((1, 2, 4)))
    fields = {
        "model": draw(st.sampled_from(MODELS)),
        "cluster": {"node": node, "nodes": nodes},
        "training": training | {"global_batch": batch},
        "framework": framework,
        "stack": stack,
    }
    fits = draw(st.integers(0, 3)) > 0
    return (
        _fitting(Case(target, fields, layout)) if fits else Case(target, fields, layout)
    )


def _fitting(its: Case) -> Case:
    """A job like another that the target can more often write."""
    wanted = FITS[its.target]
    training = its.fields["training"] | {
        n: wanted[n] for n in wanted if n in OF_TRAINING
    }
    fields = its.fields | {n: wanted[n] for n in wanted if n not in OF_TRAINING}
    layout = {n: value for n, value in its.layout.items() if n not in PLAIN}
    if TARGETS[its.target] == "accelerate":
        layout |= {"zero_stage": 3 if layout["dp"] > 1 else 0, "tp": 1, "cp": 1}
        layout["dp"] *= its.layout["tp"] * its.layout["cp"]
        training["global_batch"] *= its.layout["tp"] * its.layout["cp"]
    return Case(its.target, fields | {"training": training}, layout)


OF_TRAINING = ("optimizer", "precision")


@st.composite
def _layouts(draw: st.DrawFn, gpus: int, target: str) -> dict[str, Any]:
    """Fields of a layout of some GPUs."""
    left, its = gpus, dict[str, Any]()
    for axis, chance in (("tp", 2), ("pp", 3), ("cp", 4)):
        has = axis == "tp" or target not in (
            "trl",
            "axolotl",
            "llamafactory",
            "torchtune",
        )
        has &= axis != "pp" or target != "accelerate"
        wanted = has and draw(st.integers(0, chance)) == 0
        its[axis] = draw(st.sampled_from(_divisors(left))) if wanted else 1
        left //= its[axis]
    its["dp"] = left
    if draw(st.integers(0, 3)) == 0 and TARGETS[target] != "accelerate":
        its["ep"] = draw(st.sampled_from((2, 4, 8)))
    its["zero_stage"] = draw(st.sampled_from(STAGES.get(TARGETS[target], (0, 1, 2, 3))))
    if its["zero_stage"] and draw(st.integers(0, 5)) == 0:
        its["dp_shard"] = draw(st.sampled_from(_divisors(left * its["cp"])))
    if its["zero_stage"] == 3 and draw(st.integers(0, 5)) == 0:
        its["hpz"] = draw(st.sampled_from(_divisors(left * its["cp"])))
    its["micro_batch"] = draw(st.sampled_from((1, 1, 2, 4)))
    kinds = (
        ("none", "full", "selective")
        if target.startswith("megatron")
        else ("none", "full")
    )
    its["recompute"] = draw(st.sampled_from(kinds))
    its["stages"] = "even"
    if its["pp"] > 1 and draw(st.booleans()):
        its |= draw(
            st.sampled_from(
                ({"schedule": "interleaved", "vpp": 2}, {"schedule": "gpipe"})
            )
        )
    if draw(st.integers(0, 7)) == 0:
        its["offload"] = draw(
            st.sampled_from(
                (
                    {"optimizer": 1.0, "parameters": 1.0, "gradients": 1.0},
                    {"activations": 1.0},
                    {"optimizer": 1.0},
                )
            )
        )
    if draw(st.integers(0, 9)) == 0:
        its["comm_dtype"] = draw(
            st.sampled_from(({"gradients": "fp32"}, {"gradients": "bf16"}))
        )
    return its


def figures(priced: RankedPlan) -> dict[str, float]:
    """Step time [s] and memory [GiB] of a plan."""
    its = priced.estimate
    return {
        "step": its.step_time_s.value,
        "allocated": its.memory.peak_allocated_gib.value,
        "device": its.memory.peak_device_gib.value,
    }


def planned(case: Case) -> tuple[PlanFile, RankedPlan]:
    """The plan of a case. Raises BadInputError where it is no job."""
    spec = JobSpec.model_validate(case.fields)
    (workload,) = resolve(spec, file="drawn", base=Path())
    priced = predict(workload, PartialLayout.model_validate(case.layout))
    plan = Plan(
        spec=resolved_spec(spec, workload, base=Path()),
        layout=priced.layout,
        estimate=priced.estimate,
        versions={"planner": "0"},
    )
    if rule_violations(workload, priced.layout):
        raise BadInputError("is no legal layout", field="layout")
    return plan_file(plan, workload, "drawn", None), priced


def read_back(found: PlanFile, case: Case) -> tuple[JobSpec, RankedPlan]:
    """What the folder of a plan says, with the cluster told."""
    written = {f.name: f.text for f in emit(found, case.target)}
    files = {n: t for n, t in written.items() if n not in (PLAN, README, CHECK)}
    told = UserOverrides(
        model=str(case.fields["model"]),
        node=case.fields["cluster"]["node"],
        nodes=case.fields["cluster"]["nodes"],
    )
    reading = settled(read_texts(files, None, "the folder"), told)
    spec = JobSpec.model_validate(import_spec(reading, told, ()))
    (workload,) = resolve(spec, file="read back", base=Path())
    assert isinstance(spec.layout, PartialLayout)
    return spec, predict(workload, spec.layout)


def outcome(case: Case) -> str:
    """Name what became of a case; figures that differ fail.

    Args:
        case: The case. [-]

    Returns:
        refused, unwritten, or same. [text]
    """
    try:
        found, priced = planned(case)
    except BadInputError as error:
        return f"refused {error.field}"
    try:
        spec, again = read_back(found, case)
    except UnsupportedPlanError:
        return "unwritten"
    assert figures(again) == figures(priced), (
        spec.model_dump(exclude_defaults=True),
        again.layout,
        priced.layout,
    )
    return "same"
