"""Frugal layouts: legal, not beaten by brute force, and on the fewest GPUs."""

from dataclasses import replace
from pathlib import Path

import pytest

from planner.cost.estimate.estimate import memory_estimate
from planner.cost.estimate.layouts import layout_of
from planner.cost.estimate.pricing import price
from planner.cost.pricing import Pricing
from planner.cost.table.table import fill_table
from planner.job.resolve import resolve
from planner.planning.capacity import leanest as frugal
from planner.planning.capacity.leanest import fewest_gpus, leanest, resized, weigh
from planner.search.bounds.paths import even_counts, in_class
from planner.search.space.space import Space, enumerate_space
from planner.search.stop import Stop
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import Layout
from planner.verify.legality import rule_violations


def job(model: str, cluster: str, **fields: object) -> Pricing:
    own = {k: v for k, v in fields.items() if k in JobSpec.model_fields}
    step = {k: v for k, v in fields.items() if k not in own}
    spec = {
        "model": model,
        "cluster": cluster,
        "framework": "torchtitan",
        **own,
        "training": {"seq_len": 2048, "global_batch": 64, **step},
    }
    found = JobSpec.model_validate(spec)
    (workload,) = resolve(found, file="a test", base=Path())
    return Pricing.candidate(workload)


def peaks(pricing: Pricing) -> list[float]:
    """Device memory of every legal mesh and recompute kind under even stages."""
    space = enumerate_space(pricing)
    table = fill_table(pricing, space.meshes, space.recompute)
    found = []
    for candidate in range(len(space)):
        row, vpp = int(space.mesh[candidate]), int(space.vpp[candidate])
        costs = table.stage_costs(
            row,
            schedule=space.schedule(candidate),
            vpp=vpp,
            menu=space.choices(candidate)[:1],
        )
        counts = even_counts(costs)
        if in_class(costs, counts):
            menu = costs.menu
            layout = layout_of(
                pricing,
                space.meshes,
                row,
                schedule=costs.schedule,
                vpp=vpp,
                menu=menu,
                counts=counts,
            )
            found.append(weigh(pricing, layout).peak_device_gib.value)
    return found


@pytest.mark.parametrize(
    ("model", "framework", "method"),
    [
        ("llama-3.2-1b", "torchtitan", "full"),
        pytest.param("llama-3.2-1b", "megatron", "full", marks=pytest.mark.slow),
        pytest.param("olmoe-1b-7b", "megatron", "full", marks=pytest.mark.slow),
    ],
)
def test_no_legal_layout_holds_less(model: str, framework: str, method: str) -> None:
    """Brute force over every mesh, chunk and recompute kind of four GPUs.

    A second sequence in a micro-batch only adds.
    """
    search = {"micro_batch": 1, "pp": [1, 2]}
    fields = {"framework": framework, "method": method, "search": search}
    workload = job(model, "a100-pcie-4", global_batch=8, **fields)
    held = leanest(workload)
    assert held is not None
    assert rule_violations(workload, held.layout) == []
    least = min(peaks(workload))
    assert held.memory.peak_device_gib.value <= 1.01 * least


def test_memory_without_times_is_the_memory_with_them() -> None:
    workload = job("mixtral-8x7b", "dgx-h100-4-nodes", framework="megatron")
    held = leanest(workload)
    assert held is not None
    assert held.memory == memory_estimate(price(workload, held.layout))


@pytest.mark.parametrize("pp", [1, 4])
def test_more_micro_batches_than_fill_the_pipeline_hold_no_more(pp: int) -> None:
    workload = job(
        "llama-3.2-3b", "a100-pcie-4", framework="megatron", global_batch=256
    )
    held = leanest(
        replace(workload, search=workload.search.model_copy(update={"pp": pp}))
    )
    assert held is not None
    assert held.layout.grad_accum > 4 * pp
    assert weigh(workload, held.layout) == memory_estimate(price(workload, held.layout))


def test_limits_of_the_search_bind_the_frugal_layout_too() -> None:
    workload = job("llama-3.2-1b", "a100-pcie-4", search={"tp": 2, "recompute": "none"})
    held = leanest(workload)
    assert held is not None
    kinds = {part.kind for part in held.layout.stages[0].recompute}
    assert (held.layout.tp, kinds) == (2, {"none"})


def test_no_layout_is_legal_where_the_batch_does_not_divide() -> None:
    workload = job("llama-3.2-1b", "a100-pcie-4", global_batch=3, search={"dp": 4})
    assert leanest(workload) is None


@pytest.mark.parametrize(
    ("model", "method", "gpus"),
    [
        ("llama-3.1-8b", "qlora", 1),
        pytest.param("llama-2-70b", "full", 17, marks=pytest.mark.slow),
        ("gpt2", "full", 1),
    ],
)
def test_the_fewest_gpus_hold_the_job_and_fewer_hold_nothing(
    model: str, method: str, gpus: int
) -> None:
    """Single A100s joined by their network; 70 B need 14 for their states alone."""
    workload = job(model, "rtx-4090-1", method=method, global_batch=720)
    found = fewest_gpus(workload)
    assert found is not None
    assert found.fits
    assert rule_violations(resized(workload, found.layout.gpus, 1), found.layout) == []
    assert found.layout.gpus >= gpus
    for fewer in range(max(1, found.layout.gpus - 6), found.layout.gpus):
        held = leanest(resized(workload, fewer, 1))
        assert held is None or not held.fits


def test_less_to_hold_never_needs_more_gpus() -> None:
    """Full Adam, 8-bit Adam, LoRA, QLoRA hold less and less of one job."""
    ways = [("full", "adamw"), ("full", "adamw-8bit"), ("lora", "adamw")]
    needed = []
    for method, optimizer in [*ways, ("qlora", "adamw")]:
        workload = job("qwen3-14b", "rtx-4090-4", method=method, optimizer=optimizer)
        found = fewest_gpus(workload)
        assert found is not None
        needed.append(found.layout.gpus)
    assert needed == sorted(needed, reverse=True)
    assert needed[0] > needed[-1] == 4


def test_part_of_a_node_counts_where_the_cluster_is_partial() -> None:
    whole = fewest_gpus(job("llama-3.1-8b", "dgx-h100-8-nodes", method="lora"))
    part = fewest_gpus(job("llama-3.1-8b", "dgx-h100-1-node-partial", method="lora"))
    assert whole is not None
    assert part is not None
    assert (whole.layout.gpus, part.layout.gpus) == (8, 1)


def test_no_number_of_gpus_holds_a_sequence_that_is_too_long() -> None:
    """A quarter of a billion tokens, which context parallelism cannot split enough."""
    workload = job("llama-2-7b", "rtx-4090-4", seq_len=2**28, global_batch=4)
    assert fewest_gpus(workload) is None


def test_resizing_changes_the_cluster_alone() -> None:
    workload = job("llama-3.1-405b", "llama3-h100-16k", global_batch=2048)
    small = resized(workload, 3, 4)
    node = small.topology.cluster.node
    assert (small.gpus, node.gpus_per_node, node.scale_up_domain) == (12, 4, 4)
    assert small.training is workload.training
    assert resized(workload, 2048, 8).gpus == workload.gpus


def test_one_gpu_has_the_trivial_layout() -> None:
    held = leanest(job("llama-3.2-1b", "rtx-4090-1"))
    assert held is not None
    trivial = Layout()
    axes = ("tp", "pp", "cp", "ep", "dp", "dp_shard", "vpp")
    assert all(getattr(held.layout, a) == getattr(trivial, a) for a in axes)


def test_a_search_for_the_fewest_gpus_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Experts with many divisors have thousands of meshes at every size."""
    workload, sizes = job("qwen3-235b-a22b", "dgx-h100-4-nodes"), list[int]()

    def counted(there: Pricing, stop: Stop) -> Space:
        space = enumerate_space(there, stop)
        sizes.append(len(space.meshes.tp))
        return space

    monkeypatch.setattr(frugal, "enumerate_space", counted)
    monkeypatch.setattr(frugal, "MESHES", 2000)
    fewest_gpus(workload)
    assert sum(sizes) <= 2000 + max(sizes)
