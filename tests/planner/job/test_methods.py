"""Methods that a model or a GPU lacks: one message each."""

import re

import pytest

from planner.errors import BadInputError
from planner.hardware import catalog
from planner.hardware.reading.files import SHIPPED
from planner.job.methods import check_method, frozen_model
from planner.models import preset
from planner.specs.training import TrainingSpec

GPU = "h100-sxm5-80gb"


def training(**fields: object) -> TrainingSpec:
    return TrainingSpec.model_validate({"seq_len": 512, "global_batch": 8, **fields})


def lora(*targets: str) -> TrainingSpec:
    return training(method="lora", lora={"targets": targets})


def check(spec: TrainingSpec, model: str = "llama-3.1-8b", gpu: str = GPU) -> None:
    check_method(spec, preset(model), catalog.gpu(gpu, SHIPPED))


@pytest.mark.parametrize(
    ("targets", "model", "told"),
    [
        (("c_attn",), "llama-3.1-8b", "c_attn.*q_proj, k_proj, v_proj"),
        (("gate_proj",), "gpt2", "gate_proj.*c_attn, c_proj, c_fc"),
        (("gate_proj",), "mixtral-8x7b", "q_proj, k_proj, v_proj, o_proj"),
        (("q_a_proj",), "deepseek-v2-lite", "q_proj, kv_a_proj_with_mqa"),
        (("qkv", "k_proj"), "llama-3.1-8b", "two adapters"),
        (("q_proj", "q_proj"), "llama-3.1-8b", "two adapters"),
    ],
)
def test_a_target_that_the_model_lacks_is_answered_with_those_it_has(
    targets: tuple[str, ...], model: str, told: str
) -> None:
    with pytest.raises(BadInputError) as caught:
        check(lora(*targets), model)
    assert caught.value.field == "training.lora.targets"
    assert re.search(told, str(caught.value))


@pytest.mark.parametrize(
    ("targets", "model"),
    [
        (("q_proj", "v_proj"), "llama-3.1-8b"),
        (("q_proj", "fc1"), "llama-3.1-8b"),
        (("query_key_value",), "bloom-7.1b"),
        (("gate_proj",), "deepseek-v2-lite"),
        (("fc1", "fc2", "q_proj"), "opt-6.7b"),
    ],
)
def test_a_target_that_the_model_has_is_taken(
    targets: tuple[str, ...], model: str
) -> None:
    check(lora(*targets), model)


@pytest.mark.parametrize(
    ("fields", "model", "told"),
    [
        ({"freeze": {"layers": 33}}, "llama-3.1-8b", "has 32 layers"),
        (
            {"freeze": {"embedding": True, "layers": 32, "head": True}},
            "llama-3.1-8b",
            "nothing is left to train",
        ),
        ({"method": "lora", "freeze": {"layers": 32}}, "llama-3.1-8b", "nothing is"),
        ({"freeze": {"embedding": True}}, "llama-3.2-1b", "are one table"),
        (
            {"method": "lora", "lora": {"modules_to_save": ["lm_head"]}},
            "llama-3.2-1b",
            "are one table",
        ),
        (
            {"method": "qlora", "quantized_experts": True},
            "llama-3.1-8b",
            "no routed experts",
        ),
        (
            {"method": "lora", "optimizer": "galore-adamw"},
            "llama-3.1-8b",
            "whole matrices, not of adapters",
        ),
    ],
)
def test_a_part_that_cannot_be_frozen_or_quantised_is_refused(
    fields: dict[str, object], model: str, told: str
) -> None:
    with pytest.raises(BadInputError, match=told):
        check(training(**fields), model)


@pytest.mark.parametrize(
    ("fields", "gpu", "told"),
    [
        (
            {"method": "qlora", "quantization": "int8"},
            "v100-sxm2-32gb",
            "cannot train on int8 weights.*allowed: nf4, fp4",
        ),
        (
            {"method": "qlora", "quantization": "fp4"},
            "gaudi3",
            "cannot train on fp4 weights.*allowed: nf4",
        ),
        ({"optimizer": "adamw-8bit"}, "gaudi2", "no 8-bit optimizers"),
        ({"optimizer": "paged-adamw"}, "gaudi2", "no paged optimizers"),
    ],
)
def test_a_gpu_without_kernels_is_refused(
    fields: dict[str, object], gpu: str, told: str
) -> None:
    with pytest.raises(BadInputError) as caught:
        check(training(**fields), gpu=gpu)
    assert re.search(told, str(caught.value))


@pytest.mark.parametrize("gpu", ["rtx-4090", "a100-sxm4-80gb", "mi300x"])
def test_a_gpu_with_kernels_is_taken(gpu: str) -> None:
    check(training(method="qlora", optimizer="paged-adamw-8bit"), gpu=gpu)


@pytest.mark.parametrize(
    ("fields", "role"),
    [
        ({"freeze": {"layers": 4}}, "passed"),
        ({"freeze": {"layers": 4, "embedding": True}}, "below"),
        ({"method": "lora", "freeze": {"layers": 4}}, "below"),
    ],
)
def test_frozen_layers_are_kinds_of_their_own(
    fields: dict[str, object], role: str
) -> None:
    """Without anything below that trains they have no backward."""
    model = preset("llama-3.1-8b")
    frozen = frozen_model(training(**fields), model)
    assert [(kind.role, count) for kind, count in frozen.runs] == [
        (role, 4),
        ("trained", 28),
    ]
    assert frozen.parameters == model.parameters


def test_a_job_that_freezes_nothing_keeps_its_model() -> None:
    model = preset("llama-3.1-8b")
    assert frozen_model(training(), model) is model
