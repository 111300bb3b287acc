"""The flow of planner memory: what is judged, the most that fits, other methods."""

from dataclasses import replace
from pathlib import Path

import pytest

from planner.cost.pricing import Pricing
from planner.errors import BadInputError
from planner.hardware.reading.files import SHIPPED
from planner.job.resolve import look_up, resolve
from planner.models import preset, preset_names, preset_sizes, read_preset
from planner.planning.capacity.alternatives import (
    METHODS,
    largest_model,
    method_answers,
)
from planner.planning.capacity.capacity import inference_memory, training_memory
from planner.planning.capacity.leanest import leanest, weigh
from planner.planning.prediction.predict import predict
from planner.specs.answer.memory import TrainingMemory
from planner.specs.inference import InferenceSpec
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout
from planner.specs.reading.layout_line import read_layout


def spec(**fields: object) -> JobSpec:
    own = {k: v for k, v in fields.items() if k in JobSpec.model_fields}
    step = {k: v for k, v in fields.items() if k not in own}
    plain = {
        "model": "llama-3.2-1b",
        "cluster": "a100-pcie-4",
        "framework": "torchtitan",
        **own,
        "training": {"seq_len": 2048, "global_batch": 64, **step},
    }
    return JobSpec.model_validate(plain)


def answer(layout: str = "", **fields: object) -> TrainingMemory:
    (workload,) = resolve(spec(**fields), file="a test", base=Path())
    given = read_layout(layout) if layout else PartialLayout()
    return training_memory(workload, given)


def fits(layout: str, **fields: object) -> bool:
    """Whether a whole prediction of a job is within the memory."""
    (workload,) = resolve(spec(**fields), file="a test", base=Path())
    memory = predict(workload, read_layout(layout)).estimate.memory
    return memory.peak_device_gib.value <= memory.capacity_gib


@pytest.mark.usefixtures("own_method")
def test_a_given_layout_holds_what_a_prediction_says() -> None:
    layout = "tp=2,pp=2,recompute=full,stages=even"
    (workload,) = resolve(spec(), file="a test", base=Path())
    found = answer(layout)
    assert not found.chosen
    assert found.memory == predict(workload, read_layout(layout)).estimate.memory


@pytest.mark.slow
@pytest.mark.usefixtures("own_method")
def test_without_a_layout_the_most_frugal_one_is_judged_and_said() -> None:
    (workload,) = resolve(spec(), file="a test", base=Path())
    found, held = answer(), leanest(Pricing.candidate(workload))
    assert held is not None
    assert found.chosen
    assert found.layout == held.layout
    assert any("most frugal" in told for told in found.assumptions)


@pytest.mark.slow
@pytest.mark.usefixtures("own_method")
def test_the_largest_micro_batch_fits_and_one_more_does_not() -> None:
    layout = "dp=4,zero_stage=3,recompute=none"
    most = answer(layout).largest.micro_batch
    assert most > 1
    for size, expected in ((most, True), (most + 1, False)):
        changed = f"{layout},micro_batch={size},grad_accum=16"
        assert fits(changed, global_batch=size * 4 * 16) is expected


@pytest.mark.slow
@pytest.mark.usefixtures("own_method")
def test_the_longest_sequence_fits_and_a_longer_one_does_not() -> None:
    layout = "tp=2,cp=2,dp=1,recompute=full"
    most = answer(layout).largest.seq_len
    assert most % 64 == 0
    assert most > 2048
    assert fits(layout, seq_len=most)
    assert not fits(layout, seq_len=most + 64)


@pytest.mark.slow
@pytest.mark.usefixtures("own_method")
def test_nothing_fits_on_a_card_that_is_too_small() -> None:
    found = answer(model="llama-3.1-70b", cluster="rtx-4090-1")
    assert found.memory.verdict == "oom"
    assert (found.largest.micro_batch, found.largest.seq_len) == (0, 0)
    assert found.gpus_needed is not None
    assert found.gpus_needed > 1


@pytest.mark.slow
def test_every_method_is_answered_and_the_jobs_own_comes_first() -> None:
    found = answer(method="lora", optimizer="sgd-momentum", cluster="rtx-4090-1")
    ways = [(way.method, way.optimizer, way.offloaded) for way in found.methods]
    assert ways == [("lora", "sgd-momentum", False), *METHODS]
    assert found.gpus_needed == found.methods[0].gpus_needed
    device = dict(zip(ways, (way.device_gib for way in found.methods), strict=True))
    full, away, eight, lora, qlora = (device[way] for way in METHODS)
    assert qlora < lora < full
    assert away < full
    assert lora < eight < full


@pytest.mark.slow
def test_offload_is_not_asked_about_where_the_job_rules_it_out() -> None:
    found = answer(search={"offload": False})
    assert [way.offloaded for way in found.methods].count(True) == 0


@pytest.mark.slow
def test_a_larger_model_than_the_largest_does_not_fit() -> None:
    (job,) = resolve(
        spec(cluster="rtx-4090-1", method="qlora"), file="a test", base=Path()
    )
    pricing = Pricing.candidate(job)
    name = largest_model(pricing, lambda w: leanest(w, enough=True))
    assert name is not None
    sizes = preset_sizes()
    larger = [n for n in sizes if sizes[name] < sizes[n] < 2 * sizes[name]]
    assert larger
    for other in larger:
        held = leanest(replace(pricing, model=preset(other)))
        assert held is None or not held.fits


@pytest.mark.slow
def test_the_given_layout_is_kept_for_other_models() -> None:
    """Eight stages hold no model of fewer layers; eight heads split no further."""
    (workload,) = resolve(
        spec(cluster="dgx-h100-1-node-partial", model="llama-3.1-8b"),
        file="a test",
        base=Path(),
    )
    layout = predict(workload, read_layout("tp=8,recompute=full")).layout
    ways = method_answers(Pricing.of(workload, layout), layout)
    named = {preset(way.largest_model) for way in ways if way.largest_model}
    assert named
    assert all(k.attention.heads % 8 == 0 for model in named for k in model.kinds)


def test_published_sizes_are_read_without_the_rest_of_a_file() -> None:
    sizes = preset_sizes()
    assert list(sizes) == list(preset_names())
    for name in ("llama-2-7b", "gpt2", "deepseek-v3"):
        assert sizes[name] == read_preset(name).published_parameters


@pytest.mark.usefixtures("own_method")
def test_an_unequal_split_is_solved_where_the_even_one_does_not_fit() -> None:
    """Without stages the even split is judged first; it is what fits here."""
    (workload,) = resolve(spec(), file="a test", base=Path())
    found = answer("pp=4,recompute=full")
    counts = found.layout.layers_per_stage
    assert max(counts) - min(counts) <= 1
    assert found.memory == weigh(workload, found.layout)


def test_a_layout_that_is_not_legal_is_refused() -> None:
    with pytest.raises(BadInputError, match="cluster's 4 GPUs"):
        answer("tp=8")


def test_limits_that_leave_no_layout_are_refused() -> None:
    with pytest.raises(BadInputError, match="no legal layout"):
        answer(search={"dp": 4}, global_batch=3)


def test_inference_answers_with_its_own_categories() -> None:
    given = JobSpec.model_validate(
        {
            "model": "llama-3-8b",
            "cluster": "rtx-4090-1",
            "inference": {"context": 8192, "batch": 4},
        }
    )
    model, cluster = look_up(given, file="a test", base=Path(), catalog=SHIPPED)
    assert given.inference is not None
    found = inference_memory(model, cluster, given.inference)
    dumped = found.model_dump(mode="json", by_alias=True)
    assert dumped["schema"] == "planner/memory@1"
    assert {"kv_cache", "weights"} <= dumped["memory"]["stages"][0].keys()
    assert found.gpus_needed == 1
    assert found.largest.batch >= 4


@pytest.mark.parametrize(
    ("cluster", "fields", "told"),
    [
        ("rtx-4090-1", {"tp": 2}, "cannot be split so"),
        ("dgx-h100-1-node-partial", {"tp": 3}, "cannot be split so"),
        ("azure-nd40rs-8-nodes", {"weights": "fp8"}, "cannot compute with fp8"),
        ("azure-nd40rs-8-nodes", {"weights": "bf16"}, "cannot compute with bf16"),
    ],
)
def test_what_a_gpu_or_model_cannot_do_is_refused(
    cluster: str, fields: dict[str, object], told: str
) -> None:
    asked = InferenceSpec.model_validate({"context": 2048, **fields})
    given = JobSpec.model_validate(
        {"model": "llama-3-8b", "cluster": cluster, "inference": asked.model_dump()}
    )
    model, there = look_up(given, file="a test", base=Path(), catalog=SHIPPED)
    with pytest.raises(BadInputError, match=told):
        inference_memory(model, there, asked)


def test_a_context_beyond_the_models_positions_is_warned_of() -> None:
    given = spec(model="llama-2-7b")
    model, cluster = look_up(given, file="a test", base=Path(), catalog=SHIPPED)
    short, long = (
        inference_memory(model, cluster, InferenceSpec(context=n)).warnings
        for n in (4096, 5000)
    )
    assert short == ()
    assert "beyond 4,096" in long[0]
