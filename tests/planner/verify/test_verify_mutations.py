"""One formula, count or constraint broken at a time: verify objects to the plan."""

import sys
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from planner.cost.meshes import Meshes
from planner.cost.parameters import states
from planner.cost.pipeline import memory_rows
from planner.cost.pipeline import splits as pipeline
from planner.cost.table import table, units
from planner.cost.time import transfers
from planner.cost.time.columns import Parts
from planner.cost.time.ends import End
from planner.cost.time.layers import layer_time
from planner.hardware.graph.topology import ClusterTopology
from planner.schedules import pipeline_graph
from planner.search.solver.constraints import Constraints
from planner.search.space.space import Enumerator

MEGATRON = {"tp": 2, "pp": 2, "zero_stage": 1, "micro_batch": 1, "sp": True}
ZERO_2 = {
    "framework": "torchtitan",
    "tp": 1,
    "pp": 4,
    "zero_stage": 2,
    "micro_batch": 1,
    "recompute": "full",
}
SERIAL = ZERO_2 | {"stack": {"overlap_grad_reduce": False}}
ZERO_3 = {"framework": "torchtitan", "tp": 1, "pp": 1, "zero_stage": 3, "cp": 1}
CHUNKS = MEGATRON | {"vpp": 2, "layers": 12}
TIGHT = {"node": "dgx-a100-40gb", "nodes": 1, "layers": 60, "tp": 1, "pp": 4}
GRAPHS = {"cuda_graphs": "full"}
"""Small layers that the GPU, not the host, makes last."""
LOPSIDED = {
    "layers": 30,
    "tp": 1,
    "pp": 2,
    "cp": 1,
    "vpp": 1,
    "zero_stage": 1,
    "micro_batch": 1,
    "recompute": "none",
    "stack": {"context_gb": 67.5} | GRAPHS,
}
"""The fastest split, 16 14, is too large for the first rank: 14 16 fits."""
EXPERTS = {"model": "moe", "pp": 2, "tp": 2, "sp": True, "nodes": 4, "micro_batch": 1}

Break = Callable[[Any], Any]
"""From the true function to the broken one."""


def scaled(factor: float) -> Break:
    return lambda true: lambda *args, **named: factor * true(*args, **named)


def of(result: Any) -> Break:
    return lambda _: lambda *_, **__: result


def constant(value: int) -> Break:
    return lambda _: value


def half_the_states(true: Any) -> Any:
    def broken(workload: Any, owned: states.Owned, meshes: Any) -> Any:
        return true(workload, states.Owned(owned.dense / 2, owned.expert), meshes)

    return broken


def free_end(true: Any) -> Any:
    """The end computes nothing; its memory stays."""

    def broken(context: Any) -> End:
        nothing = Parts().plus("compute", np.zeros(len(context.meshes)))
        return replace(true(context), forward=nothing, backward=nothing)

    return broken


def without_gathers(_: Any) -> Any:
    """ZeRO-3 layers whose transfers cost nothing."""

    def broken(context: Any, _data: Any, layer: Any, _owned: Any, name: str) -> Any:
        return layer_time(context, layer, context.pricing.recipe.kind(name))

    return broken


def one_fewer_in_flight(true: Any) -> Any:
    def broken(*shape: Any) -> Any:
        at = true(*shape)
        return replace(at, in_flight=np.maximum(at.in_flight - 1, 0))

    return broken


def wrong_slot(true: Any) -> Any:
    """The forward of every stage in the slot of its backward, too."""

    def broken(costs: Any, vectors: Any) -> list[int]:
        x = true(costs, vectors)
        x[costs.stages : 2 * costs.stages] = x[: costs.stages]
        return list(x)

    return broken


def graph_once_a_step(_: Any) -> Any:
    """The graph of a job whose gradients leave once, after the last micro-batch."""

    def broken(costs: Any) -> Any:
        return pipeline_graph(
            costs.schedule,
            costs.pp,
            costs.vpp,
            costs.micro_batches,
            overlap_gather=costs.overlap_gather,
            overlap_scatter=costs.overlap_scatter,
            scatter_every=costs.micro_batches,
        )

    return broken


def once_a_step(_: Any) -> Any:
    return lambda _workload, meshes: meshes.micro_batches


def no_contention(_: Any) -> Any:
    return lambda _data, _owned, gather, _scatter: np.zeros_like(gather)


def zeros_of_context(_: Any) -> Any:
    return lambda context: np.zeros(len(context.meshes))


def ones(_: Any) -> Any:
    return lambda _workload, meshes: np.ones(len(meshes))


def to_microseconds(true: Any) -> Any:
    return lambda time: true(np.floor(time * 1e5) / 1e5)


def double_rings(true: Any) -> Any:
    def broken(self: Any, levels: Any) -> Any:
        view = true(self, levels)
        return replace(view, ring_bandwidth=2 * view.ring_bandwidth)

    return broken


def data_inside(_: Any) -> Any:
    """Data ranks always inside the pipeline, whatever the order."""
    return property(lambda self: self.tp * self.cp)


def stages_inside(_: Any) -> Any:
    return property(lambda self: self.tp * self.cp)


STEP = "the step takes"
DEVICE = "GiB of device memory"
MUTATIONS: dict[str, tuple[Any, str, Break, dict[str, Any], str]] = {
    "saved bytes halved": (table, "saved_bytes", scaled(0.5), MEGATRON, DEVICE),
    "transient dropped": (table, "transient_bytes", scaled(0.0), MEGATRON, DEVICE),
    "states halved": (units, "state_bytes", half_the_states, MEGATRON, DEVICE),
    "blocks halved": (table, "BLOCK", constant(1024), MEGATRON, DEVICE),
    "waiting gradients dropped": (units, "waiting_bytes", scaled(0.0), ZERO_2, DEVICE),
    "p2p dropped": (table, "stage_transfer", zeros_of_context, MEGATRON, STEP),
    "straggler ignored": (table, "straggler_factor", ones, MEGATRON, STEP),
    "optimizer halved": (units, "optimizer_time", scaled(0.5), MEGATRON, STEP),
    "contention dropped": (units, "contention_time", no_contention, MEGATRON, STEP),
    "gather halved": (transfers, "gather_time", scaled(0.5), MEGATRON, STEP),
    "scatter halved": (transfers, "scatter_time", scaled(0.5), MEGATRON, STEP),
    "scatter once a step": (transfers, "scatter_every", once_a_step, ZERO_2, STEP),
    "ZeRO-3 transfers free": (table, "layer_parts", without_gathers, ZERO_3, STEP),
    "embedding free": (table, "embedding_end", free_end, MEGATRON, STEP),
    "head free": (table, "head_end", free_end, MEGATRON, STEP),
    "times rounded twice": (table, "nanoseconds", to_microseconds, MEGATRON, STEP),
    "one fewer in flight": (
        memory_rows,
        "peak_columns",
        one_fewer_in_flight,
        MEGATRON,
        DEVICE,
    ),
    "one fewer chunk in flight": (
        memory_rows,
        "peak_columns",
        one_fewer_in_flight,
        CHUNKS,
        DEVICE,
    ),
    "first gather dropped": (pipeline, "edge_gather", of(0), MEGATRON, STEP),
    "a wrong slot": (pipeline, "durations", wrong_slot, MEGATRON, STEP),
    "a wrong slot of chunks": (pipeline, "durations", wrong_slot, CHUNKS, STEP),
    "scatters joined": (pipeline, "graph_of", graph_once_a_step, SERIAL, STEP),
    "budget raised": (table, "budget_bytes", scaled(1.5), TIGHT, "its budget is"),
    "no rank has to fit": (
        Constraints,
        "_every_rank_fits",
        of(None),
        LOPSIDED,
        "its budget is",
    ),
    "heads not checked": (
        Enumerator,
        "_tensor_legal",
        of(result=True),
        {"model": "heads16", "tp": 3, "nodes": 3, "batch": 24, "seq_len": 6144},
        "tp 3 does not divide the 16 heads",
    ),
    "sequence not checked": (
        Enumerator,
        "_context_legal",
        of(result=True),
        {"cp": 3, "nodes": 3, "batch": 24},
        "a sequence of 4096 tokens does not split",
    ),
    "order not checked": (
        Enumerator,
        "_orders",
        of((1,)),
        EXPERTS | {"ep": 4, "etp": 1},
        "order tp-cp-ep-pp-dp needs ep * etp = 4 to be tp * cp",
    ),
    "rings twice as fast": (
        ClusterTopology,
        "group",
        double_rings,
        MEGATRON,
        "ring_bandwidth is",
    ),
    "data placed inside the pipeline": (
        Meshes,
        "dp_stride",
        data_inside,
        EXPERTS | {"order": "tp-cp-ep-pp-dp", "cp": 1},
        "expert data groups:",
    ),
    "stages placed inside data": (
        Meshes,
        "pp_stride",
        stages_inside,
        {"nodes": 4, "pp": 2, "tp": 1, "cp": 1, "order": "tp-cp-ep-dp-pp"},
        "stages in two domains: True by their ranks, False priced",
    ),
}


def users_of(place: Any, attribute: str) -> list[ModuleType]:
    """Rooms of table and search that hold the same name: all are broken alike."""
    true = getattr(place, attribute)
    tables = ("planner.cost.table", "planner.cost.time.transfers")
    ours = ("planner.search", "planner.cost.pipeline.duration_lines", *tables)
    rooms = [m for name, m in sys.modules.items() if name.startswith(ours)]
    return [room for room in rooms if vars(room).get(attribute) is true]


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mistake_is_objected_to(
    name: str,
    workload_of: Callable[..., Any],
    claims_of: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The best plan of a broken planner; the objection names what is wrong."""
    place, attribute, breaks, job, objection = MUTATIONS[name]
    true = getattr(place, attribute)
    for user in {place, *users_of(place, attribute)}:
        monkeypatch.setattr(user, attribute, breaks(true))
    (claim, *_) = claims_of(workload_of(**job), top=1)
    assert any(objection in sentence for sentence in claim.objections())


@pytest.mark.parametrize(
    "job",
    [
        MEGATRON,
        ZERO_2,
        SERIAL,
        ZERO_3,
        CHUNKS,
        TIGHT,
        LOPSIDED,
        EXPERTS | {"ep": 2, "cp": 1},
    ],
)
def test_the_same_jobs_are_sound_unbroken(
    job: dict[str, Any], workload_of: Callable[..., Any], claims_of: Callable[..., Any]
) -> None:
    (claim, *_) = claims_of(workload_of(**job), top=1)
    assert claim.objections() == []
