"""Small jobs, and plans that the search found for them, as verify gets them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np
import pytest

from planner.cost.memory.buffers import (
    buffer_bytes,
    context_bytes,
    device_bytes,
)
from planner.cost.memory.cached_bytes import cached_bytes
from planner.cost.memory.communicators import communication_bytes
from planner.cost.meshes import ORDERS
from planner.cost.pipeline.memory_rows import passing_rows, rank_blocks
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.frameworks import FRAMEWORKS
from planner.hardware.calibration import calibration
from planner.hardware.catalog import resolve_cluster
from planner.hardware.fleets import ClusterSpec
from planner.hardware.graph.topology import ClusterTopology
from planner.hardware.reading.files import SHIPPED
from planner.models import Architecture, from_config
from planner.search.best_first import search
from planner.search.incumbents import Found
from planner.search.outcome import SearchOutcome
from planner.search.priced import stage_costs
from planner.specs.layouts.context import CP_KINDS
from planner.specs.layouts.layout import Layout, RecomputeRange, Stage
from planner.specs.search import SearchSpec
from planner.specs.table import BLOCK, StageCosts
from planner.specs.training import TrainingSpec
from planner.verify import violations

GIB = 2**30
DENSE = {
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 13,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "vocab_size": 32000,
    "tie_word_embeddings": True,
    "max_position_embeddings": 8192,
}
MOE = {
    "model_type": "mixtral",
    "hidden_size": 1024,
    "intermediate_size": 3584,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 8192,
}
DEEPSEEK = {
    "model_type": "deepseek_v3",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "moe_intermediate_size": 512,
    "num_hidden_layers": 6,
    "first_k_dense_replace": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "q_lora_rank": 256,
    "kv_lora_rank": 128,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 32,
    "v_head_dim": 64,
    "n_routed_experts": 16,
    "n_shared_experts": 1,
    "num_experts_per_tok": 4,
    "num_nextn_predict_layers": 1,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
    "max_position_embeddings": 8192,
}
HEADS = ("num_attention_heads", "num_key_value_heads", "intermediate_size")
MODELS = {
    "dense": DENSE,
    "moe": MOE,
    "deepseek": DEEPSEEK,
    "heads16": DENSE | dict(zip(HEADS, (16, 1, 6144), strict=True)),
    "kv4": DENSE | dict(zip(HEADS, (12, 4, 6144), strict=True)) | {"head_dim": 128},
    "ffn8192": DENSE | dict(zip(HEADS, (12, 3, 8192), strict=True)) | {"head_dim": 128},
}
"""The last three each have one width that three tensor ranks cannot share."""


@dataclass(frozen=True)
class Claim:
    """A plan with what was claimed for it."""

    pricing: Pricing
    layout: Layout
    step_s: float
    device_gib: tuple[float, ...]

    def objections(self) -> list[str]:
        return violations(
            self.pricing,
            self.layout,
            step_s=self.step_s,
            device_gib=self.device_gib,
        )


@cache
def architecture(name: str, layers: int | None) -> Architecture:
    config = MODELS[name] | ({"num_hidden_layers": layers} if layers else {})
    return from_config(config, source="test", name=name)


def make_workload(
    framework: str = "megatron",
    model: str = "dense",
    *,
    node: str = "dgx-h100",
    nodes: int = 2,
    layers: int | None = None,
    batch: int = 32,
    seq_len: int = 4096,
    stack: dict[str, Any] | None = None,
    scope: str = "plan",
    limits: dict[str, Any] | None = None,
    recipe: dict[str, Any] | None = None,
    reference: Any = None,
    **search_block: Any,
) -> Pricing:
    """A job on a few nodes, two in a rack whose uplinks are 3:1."""
    (its,) = (known for known in FRAMEWORKS if known.name == framework)
    profile = its.profile.model_copy(update=stack or {})
    can = replace(its.limits, **({"recompute_scope": scope, **(limits or {})}))
    habits = replace(its.recipe, **(recipe or {}))
    its = replace(its, profile=profile, limits=can, recipe=habits, writers=())
    tiers = ({"name": "rack", "gpus": 16, "oversubscription": 3},)
    spec = {"name": "test", "node": node, "nodes": nodes, "tiers": tiers}
    cluster = resolve_cluster(ClusterSpec.model_validate(spec), SHIPPED)
    job = Workload(
        model=architecture(model, layers),
        training=TrainingSpec(seq_len=seq_len, global_batch=batch, reference=reference),
        framework=its,
        topology=ClusterTopology(cluster),
        calibration=calibration(cluster.gpu.name, SHIPPED),
        search=SearchSpec(**search_block),
    )
    return Pricing.candidate(job)


def stages_of(outcome: SearchOutcome, found: Found) -> tuple[Stage, ...]:
    """Layers in model order; those of one kind take the menu's entries in turn."""
    space, pricing = outcome.space, outcome.pricing
    names = [space.recompute[entry] for entry in space.choices(found.candidate)]
    order = iter([kind for kind, count in pricing.runs for _ in range(count)])
    stages = []
    for counts in found.counts:
        left = [list(np.repeat(names, row))[::-1] for row in counts]
        used = [left[next(order)].pop() for _ in range(int(counts.sum()))]
        ends = [len(list(same)) for _, same in groupby(used)]
        spans = [
            (stop - n, stop)
            for n, stop in zip(ends, np.cumsum(ends).tolist(), strict=True)
        ]
        ranges = [RecomputeRange(start=a, stop=b, kind=used[a]) for a, b in spans]
        stages.append(Stage(layers=len(used), recompute=tuple(ranges)))
    return tuple(stages)


def layout_of(outcome: SearchOutcome, found: Found) -> Layout:
    space, at = outcome.space, int(outcome.space.mesh[found.candidate])
    names = ("tp", "sp", "pp", "cp", "ep", "etp", "dp", "dp_shard", "micro_batch")
    meshes = space.meshes
    return Layout(
        **{name: int(getattr(meshes, name)[at]) for name in names},
        zero_stage=int(meshes.zero[at]),
        grad_accum=int(meshes.micro_batches[at]),
        cp_kind=CP_KINDS[meshes.cp_kind[at]],
        order=ORDERS[meshes.order[at]],
        vpp=int(space.vpp[found.candidate]),
        schedule=space.schedule(found.candidate),
        stages=stages_of(outcome, found),
    )


def costs_of(outcome: SearchOutcome, found: Found) -> StageCosts:
    return stage_costs(outcome.pricing, outcome.space, found.candidate)


def device_gib(outcome: SearchOutcome, found: Found) -> tuple[float, ...]:
    """Device memory of every pipeline rank as the table has it. [GiB]."""
    pricing, space = outcome.pricing, outcome.space
    row = space.meshes.take(space.mesh[found.candidate : found.candidate + 1])
    costs = costs_of(outcome, found)
    held = rank_blocks(costs, found.counts) * BLOCK
    fixed = float(communication_bytes(pricing, row)[0]) + context_bytes(pricing)
    allocated = (held + buffer_bytes(pricing, row)).tolist()
    used = np.flatnonzero(found.counts.sum(axis=(0, 1)))
    cached = cached_bytes(pricing, row, {costs.menu[entry] for entry in used})
    return tuple(
        device_bytes(pricing, each, fixed, cached=cached) / GIB for each in allocated
    )


def make_claims(pricing: Pricing, top: int = 3) -> list[Claim]:
    """The best plans of a job, as the search claims them."""
    outcome = search(pricing, top=top)
    return [
        Claim(
            pricing,
            layout_of(outcome, found),
            found.step_s,
            device_gib(outcome, found),
        )
        for found in outcome.ranked
    ]


@pytest.fixture(autouse=True)
def _own_rows() -> Iterator[None]:
    """Memory rows made with a mistake stay in their own test."""
    passing_rows.cache_clear()
    yield
    passing_rows.cache_clear()


@pytest.fixture(scope="session")
def workload_of() -> Callable[..., Pricing]:
    return make_workload


@pytest.fixture(scope="session")
def claims_of() -> Callable[..., list[Claim]]:
    return make_claims
