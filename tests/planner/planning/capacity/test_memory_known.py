"""What is counted decides a verdict; GPUs are counted in nodes as they are used."""

from pathlib import Path

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cost.inference.estimate import serving_estimate
from planner.cost.inference.formats import formats
from planner.cost.pricing import Pricing
from planner.hardware import catalog
from planner.hardware.reading.files import SHIPPED
from planner.job.resolve import look_up, resolve
from planner.models import preset
from planner.planning.capacity.capacity import inference_memory, training_memory
from planner.planning.capacity.leanest import leanest
from planner.planning.reasons import gpus_words
from planner.specs.answer.estimate import Interval
from planner.specs.answer.memory import InferenceMemory
from planner.specs.inference import InferenceSpec
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout

GIB = 2.0**30
SERVED = ("gpt3-175b", "llama-3-8b", "llama-3.1-405b", "mixtral-8x7b", "deepseek-v3")
CLUSTERS = (
    "dgx-h100-8-nodes",
    "dgx-h100-1-node-partial",
    "rtx-4090-4",
    "gh200-32-nodes",
)


def served(model: str, cluster: str, **fields: object) -> InferenceMemory:
    asked = {"context": 2048, "weights": "int4", **fields}
    given = JobSpec.model_validate(
        {"model": model, "cluster": cluster, "inference": asked}
    )
    found, there = look_up(given, file="a test", base=Path(), catalog=SHIPPED)
    assert given.inference is not None
    return inference_memory(found, there, given.inference)


def agrees(verdict: str, probability: float | None) -> bool:
    """True where a verdict is that of a probability: a twentieth at either end."""
    ends = {"fits": (0.0, 0.05), "at-risk": (0.05, 0.95), "oom": (0.95, 1.0)}
    low, high = ends[verdict]
    return probability is not None and low - 1e-9 <= probability <= high + 1e-9


@given(
    model=st.sampled_from(SERVED),
    weights=st.sampled_from(sorted(formats().weights)),
    kv_cache=st.sampled_from(sorted(formats().cache)),
    batch=st.integers(1, 64),
    context=st.integers(1, 100_000),
    capacity=st.floats(1e9, 2e12),
)
@settings(max_examples=examples(60), deadline=None)
def test_no_interval_makes_weights_and_cache_less(
    model: str, weights: str, kv_cache: str, batch: int, context: int, capacity: float
) -> None:
    spec = InferenceSpec.model_validate(
        {"weights": weights, "kv_cache": kv_cache, "batch": batch, "context": context}
    )
    found = serving_estimate(preset(model), spec, capacity)
    assert agrees(found.verdict, found.oom_probability)
    (stage,) = found.stages
    counted, device = stage.weights + stage.kv_cache, found.peak_device_gib
    assert counted <= device.low <= device.value <= device.high
    if counted > capacity / GIB:
        assert found.verdict == "oom"


def test_weights_that_exceed_the_card_are_no_risk_but_a_fact() -> None:
    """GPT-3 in int4: 87.3 GiB of weights on a card of 79.6."""
    found = served("gpt3-175b", "dgx-h100-8-nodes").memory
    assert found.stages[0].weights == pytest.approx(87.3, abs=0.1)
    assert found.peak_device_gib.value < found.capacity_gib / 0.8
    assert found.verdict == "oom"


@given(
    value=st.floats(0.1, 1e3),
    low=st.floats(0.1, 1),
    high=st.floats(1, 2),
    known=st.floats(0, 1e3),
    capacity=st.floats(0.1, 2e3),
)
def test_a_known_part_bounds_an_interval_from_below(
    value: float, low: float, high: float, known: float, capacity: float
) -> None:
    plain = Interval(value=value, low=value * low, high=value * high)
    found = plain.at_least(min(known, value))
    assert min(known, value) <= found.low <= found.value <= found.high
    assert (found.low > capacity) == (found.verdict(capacity) == "oom")


@pytest.mark.parametrize("framework", ["megatron", "torchtitan", "accelerate"])
@pytest.mark.parametrize("cluster", ["rtx-4090-1", "dgx-a100-1-node"])
def test_states_that_exceed_the_card_are_oom_in_training(
    framework: str, cluster: str
) -> None:
    spec = {
        "model": "llama-2-13b",
        "cluster": cluster,
        "framework": framework,
        "training": {"seq_len": 2048, "global_batch": 64},
    }
    (workload,) = resolve(JobSpec.model_validate(spec), file="a test", base=Path())
    held = leanest(Pricing.candidate(workload))
    assert held is not None
    memory = held.memory
    worst = max(memory.stages, key=lambda stage: stage.device)
    step = next(at for at in worst.moments if at.moment == "optimizer step")
    counted = step.weights + step.gradients + step.optimizer
    assert 0 < counted <= memory.peak_device_gib.low
    assert (memory.verdict == "oom") >= (counted > memory.capacity_gib)
    assert agrees(memory.verdict, memory.oom_probability)


@pytest.mark.parametrize("model", SERVED)
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_groups_that_serve_fill_nodes_or_divide_one(model: str, cluster: str) -> None:
    there = catalog.cluster(cluster, SHIPPED)
    per_node = catalog.node(there.node, SHIPPED).gpus_per_node
    for weights in ("fp32", "bf16", "int4"):
        found = served(model, cluster, weights=weights)
        gpus = found.gpus_needed
        if gpus is None:
            assert found.nodes_needed is None
            continue
        part = per_node % gpus == 0 or (there.partial and gpus < per_node)
        assert part or gpus % per_node == 0, (model, cluster, gpus)
        assert found.nodes_needed == -(-gpus // per_node)


@pytest.mark.slow
@pytest.mark.usefixtures("own_method")
def test_training_counts_whole_nodes_and_says_so() -> None:
    def needed(cluster: str) -> tuple[int | None, int | None, str]:
        spec = {
            "model": "llama-3.2-1b",
            "cluster": cluster,
            "framework": "torchtitan",
            "training": {"seq_len": 2048, "global_batch": 840, "method": "lora"},
        }
        (workload,) = resolve(JobSpec.model_validate(spec), file="a test", base=Path())
        found = training_memory(workload, PartialLayout())
        (told,) = (line for line in found.assumptions if "fewest GPUs" in line)
        return found.gpus_needed, found.nodes_needed, told

    gpus, nodes, told = needed("dgx-h100-8-nodes")
    assert (gpus, nodes) == (8, 1)
    assert "whole nodes of 8" in told
    gpus, nodes, told = needed("dgx-h100-1-node-partial")
    assert (gpus, nodes) == (1, 1)
    assert "single GPUs" in told


@pytest.mark.parametrize(
    ("gpus", "per_node", "words"),
    [
        (1, 0, "1 GPU"),
        (1024, 0, "1,024 GPUs"),
        (8, 8, "8 GPUs (1 node of 8)"),
        (16, 8, "16 GPUs (2 nodes of 8)"),
        (3, 8, "3 GPUs (of a node of 8)"),
        (12, 8, "12 GPUs (of 2 nodes)"),
    ],
)
def test_gpus_are_told_with_their_nodes(gpus: int, per_node: int, words: str) -> None:
    assert gpus_words(gpus, per_node) == words
