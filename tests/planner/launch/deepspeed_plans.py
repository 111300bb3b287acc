"""Plans for DeepSpeed: one for every axis on a tiny model, and many drawn ones."""

import random
from pathlib import Path
from typing import Any

from many_plans import drawn_stages, many_plans

from planner.job.resolve import resolve
from planner.launch import PlanFile, read_plan
from planner.planning.prediction.predict import predict
from planner.specs.answer.result import Plan
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout

MODEL: dict[str, Any] = {
    "name": "tiny",
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "rms_norm_eps": 1e-5,
    "initializer_range": 0.02,
}
DEEP = MODEL | {"num_hidden_layers": 8}
EXPERTS = MODEL | {
    "model_type": "mixtral",
    "architectures": ["MixtralForCausalLM"],
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
}
CLUSTERS = {2: "a6000-2", 4: "rtx-4090-4", 8: "dgx-a100-1-node", 32: "dgx-h100-4-nodes"}
FULL = {"recompute": "full"}
HOST = {"optimizer": 1.0}

LAYOUTS: dict[str, tuple[int, dict[str, Any], dict[str, Any]]] = {
    "zero 0": (2, MODEL, {"zero_stage": 0}),
    "zero 1": (2, MODEL, {"zero_stage": 1}),
    "zero 2": (2, MODEL, {"zero_stage": 2}),
    "zero 3": (2, MODEL, {"zero_stage": 3}),
    "zero 3, checkpointed": (8, MODEL, {"zero_stage": 3, **FULL}),
    "micro-batch 2": (2, MODEL, {"zero_stage": 2, "micro_batch": 2}),
    "hpz": (32, MODEL, {"zero_stage": 3, "hpz": 8}),
    "optimizer on the host": (2, MODEL, {"zero_stage": 2, "offload": HOST}),
    "half of it": (8, MODEL, {"zero_stage": 3, "offload": {"optimizer": 0.5}}),
    "both on the host": (
        2,
        MODEL,
        {"zero_stage": 3, "offload": HOST | {"parameters": 1.0}},
    ),
    "on drives": (
        8,
        MODEL,
        {"zero_stage": 3, "offload": HOST | {"parameters": 1.0, "device": "nvme"}},
    ),
    "pipeline": (2, MODEL, {"pp": 2, "zero_stage": 1}),
    "pipeline, plain": (4, MODEL, {"pp": 2, "zero_stage": 0}),
    "pipeline, uneven": (
        4,
        DEEP,
        {"pp": 4, "zero_stage": 1, "stages": [{"layers": n} for n in (1, 3, 3, 1)]},
    ),
    "pipeline, checkpointed": (4, DEEP, {"pp": 2, "zero_stage": 1, **FULL}),
    "pipeline of experts": (2, EXPERTS, {"pp": 2, "zero_stage": 1}),
    "tp": (2, MODEL, {"tp": 2, "zero_stage": 1}),
    "tp under zero 3": (8, MODEL, {"tp": 2, "zero_stage": 3}),
    "ulysses": (2, MODEL, {"cp": 2, "zero_stage": 2}),
    "ulysses under zero 3": (4, MODEL, {"cp": 2, "zero_stage": 3, **FULL}),
    "experts": (8, EXPERTS, {"ep": 4, "zero_stage": 2}),
    "experts with tp": (8, EXPERTS, {"ep": 2, "tp": 2, "zero_stage": 1}),
}
"""(GPUs, model, layout) by name."""


def spec_of(gpus: int, model: dict[str, Any], **training: Any) -> JobSpec:
    """The job of a plan."""
    block = {"seq_len": 32, "global_batch": 64 if gpus > 8 else 8} | training
    return JobSpec.model_validate(
        {
            "model": model,
            "cluster": CLUSTERS[gpus],
            "training": block,
            "framework": "deepspeed",
        }
    )


def plan_of(name: str, **training: Any) -> Plan:
    """A plan by name, priced."""
    gpus, model, fields = LAYOUTS[name]
    spec = spec_of(gpus, model, **training)
    (workload,) = resolve(spec, file="tiny", base=Path())
    plain = {"micro_batch": 1, "recompute": "none"}
    if "stages" in fields:
        del plain["recompute"]
    priced = predict(workload, PartialLayout.model_validate(plain | fields))
    return Plan.model_validate(
        {
            "schema": "planner/plan@1",
            "spec": spec.model_dump(mode="json", by_alias=True) | {"model": model},
            "layout": priced.layout.model_dump(mode="json", by_alias=True),
            "estimate": priced.estimate.model_dump(mode="json", by_alias=True),
            "versions": {"planner": "0"},
        }
    )


def plan_file(name: str, folder: Path, **training: Any) -> PlanFile:
    """The same as a file that was read back."""
    path = folder / "plan.json"
    path.write_text(plan_of(name, **training).model_dump_json(by_alias=True, indent=2))
    return read_plan(path)


def drawn_plans(folder: Path, count: int, seed: int = 7) -> list[PlanFile]:
    """Legal plans of one golden folder's job.

    Args:
        folder: A golden folder, for the job. [-]
        count: How many at most. [1]
        seed: Of the draw. [1]

    Returns:
        Plans, no layout twice. [-]
    """
    return many_plans(folder, count, seed, draw=_fields)


def _fields(found: PlanFile, rng: random.Random) -> dict[str, Any]:
    """Fields of a layout of the job's GPUs, legal or not: one axis, or tp with ep."""
    gpus, its = found.plan.layout.gpus, found.pricing.model
    axis = rng.choice(("", "tp", "pp", "cp", "ep"))
    tp, pp, cp = (rng.choice((2, 4, 8)) if axis == n else 1 for n in ("tp", "pp", "cp"))
    experts = axis == "ep" and its.expert_parameters
    if experts:
        tp = rng.choice((1, 1, 2))
    dp, micro = gpus // (tp * pp * cp), rng.choice((1, 1, 2, 4))
    zero = rng.choice((0, 1, 2, 3))
    ranks = dp * cp if zero else 1
    stages = drawn_stages(its.layers, pp, rng)
    return {
        "tp": tp,
        "pp": pp,
        "cp": cp,
        "cp_kind": "ulysses" if cp > 1 else "all-gather",
        "ep": rng.choice((2, 4, 8)) if experts else 1,
        "dp": dp,
        "dp_shard": ranks,
        "zero_stage": zero,
        "hpz": rng.choice((1, 1, 2, 4, ranks)) if zero == 3 else 1,
        "micro_batch": micro,
        "grad_accum": found.pricing.training.sequences // (dp * micro),
        "comm_dtype": found.plan.layout.comm_dtype.model_dump(),
        "offload": _drawn_offload(rng, zero),
        "stages": stages,
    }


def _drawn_offload(rng: random.Random, zero: int) -> dict[str, Any]:
    if not zero or rng.random() < 0.6:
        return {}
    part = rng.choice((0.25, 0.5, 1.0)) if zero == 3 else 1.0
    return {
        "optimizer": part,
        "parameters": rng.choice((0.0, 1.0)) if zero == 3 else 0.0,
        "device": rng.choice(("cpu", "cpu", "nvme")) if zero == 3 else "cpu",
    }
