"""Rows of kinds that no published sample has; every number in them is made up."""

from typing import Any

import pytest
from measured_rows import MakeRow

from planner.calibration.accuracy.price import price_row
from planner.calibration.mapping.case import Case
from planner.calibration.mapping.cases import case_of
from planner.calibration.mapping.gpus import gpu_named
from planner.calibration.mapping.software import stack_rule
from planner.calibration.rows.normalise import normalised
from planner.hardware.reading.files import SHIPPED


def software(make_row: MakeRow, framework: str, **blocks: Any) -> str:
    row = make_row(
        source={"title": "made up for this test"},
        job={"framework": framework},
        **blocks,
    )
    return stack_rule(row, "hopper").stack


@pytest.mark.parametrize(
    ("framework", "stack"),
    [
        ("Unsloth 2025.3", "unsloth"),
        ("HF Trainer with Liger kernels", "hf-liger"),
        ("HAI-LLM", "megatron-2026"),
        ("DeepSpeed-Ulysses", "deepspeed-2022"),
        ("HF PEFT + DeepSpeed ZeRO-3", "hf-trainer"),
        ("HF Trainer (FSDP)", "hf-fsdp2"),
        ("llm.c", "torchtitan"),
        ("PyTorch FSDP + torch.compile", "torchtitan"),
        ("Primus (torchtitan backend)", "torchtitan"),
        ("Megatron-DeepSpeed (ROCm)", "megatron-deepspeed"),
        ("MegaScale", "megatron-2024"),
    ],
)
def test_software_that_no_sample_has(
    make_row: MakeRow, framework: str, stack: str
) -> None:
    assert software(make_row, framework) == stack


@pytest.mark.parametrize(
    ("framework", "tp", "stack"),
    [
        ("Abacus 2021", 2, "megatron-2021"),
        ("Abacus 2024", 2, "megatron-2024"),
        ("Abacus 2024", 1, "torchtitan-eager"),
    ],
)
def test_unknown_software_is_priced_by_year_and_layout(
    make_row: MakeRow, framework: str, tp: int, stack: str
) -> None:
    layout = {"tp": tp, "dp": 16 // tp}
    assert software(make_row, framework, layout=layout) == stack


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("gradient checkpointing", "full"),
        ("no gradient checkpointing", "none"),
        ("fine-grained", "selective"),
        ("save_dot_except_mlp", "unknown"),
    ],
)
def test_prose_of_recomputation(text: str, kind: str) -> None:
    assert normalised({"layout": {"recompute": text}})["recompute"]["kind"] == kind


def test_modules_in_prose_get_their_names() -> None:
    words = normalised({"layout": {"recompute": "selective: RMSNorm, MLA up-proj"}})
    assert words["recompute"]["modules"] == ["layernorm", "mla_up_proj"]


def test_offload_that_names_only_the_place() -> None:
    row = {"layout": {"offload": "cpu", "zero_stage": 3}}
    assert normalised(row)["offload"] == {"optimizer": 1.0, "parameters": 1.0}


def test_fsdp_inside_a_pipeline_keeps_parameters() -> None:
    row = {"layout": {"sharding": "FSDP2", "pp": 4}}
    assert normalised(row)["sharding"]["reshard_after_forward"] is False


def test_an_unknown_module_in_prose_is_left_out() -> None:
    row = {"layout": {"recompute": "selective: layernorm, flux capacitor"}}
    assert normalised(row)["recompute"]["modules"] == ["layernorm"]


def test_a_superchips_name_has_the_memory_of_its_host() -> None:
    assert gpu_named("NVIDIA GH200 480GB", None, catalog=SHIPPED).name == "gh200-96gb"


def slingshot(make_row: MakeRow, gpu: str) -> Case:
    hardware = {"gpu": gpu, "gpus_per_node": 4, "inter_node": "Slingshot-11"}
    return case_of(make_row(hardware=hardware), SHIPPED)


def test_slingshot_is_no_faster_than_its_nic(make_row: MakeRow) -> None:
    topology = slingshot(make_row, "GH200").workload.topology
    assert topology.cluster.nic.bandwidth == pytest.approx(200e9 / 8)


def test_ulysses_beyond_the_heads_runs_as_a_ring(make_row: MakeRow) -> None:
    layout = {"tp": 1, "cp": 32, "dp": 1, "cp_comm": "ulysses", "micro_batch": 1}
    case = case_of(make_row(hardware={"gpus": 32}, layout=layout), SHIPPED)
    assert case.layout.cp_kind == "ring"
    assert "ulysses priced as ring: heads do not divide" in case.flags


def test_a_vocabulary_may_be_missing(make_row: MakeRow) -> None:
    assert (
        case_of(make_row(model={"vocab": None}), SHIPPED).workload.model.vocab == 32000
    )


@pytest.mark.parametrize(("precision", "times"), [("tf32", 1.5), ("fp32", 4.0)])
def test_wide_formats_are_slower(
    make_row: MakeRow, precision: str, times: float
) -> None:
    job = {"framework": "PyTorch DDP", "global_batch": 64}
    half, wide = (
        price_row(
            make_row(job={**job, "precision": word}), catalog=SHIPPED
        ).predicted_step_s
        for word in ("bf16", precision)
    )
    assert half is not None
    assert wide is not None
    assert wide > times * half


def test_a_bare_unit_is_an_unknown_counter() -> None:
    row = {"measured": {"peak_memory_gb": 48, "memory_kind": "GB"}}
    assert normalised(row)["memory"]["counter"] == "unknown"


def test_a_batch_that_nearly_divides_is_rounded(make_row: MakeRow) -> None:
    case = case_of(make_row(job={"global_batch": 1000}), SHIPPED)
    assert (case.layout.grad_accum or 0) * 16 == 992
    assert "batch 992 priced for 1000, which does not divide" in case.flags


@pytest.mark.parametrize(("memory", "dies"), [(64, 1), (128, 2)])
def test_a_module_of_two_dies_has_both(
    make_row: MakeRow, memory: float, dies: int
) -> None:
    hardware = {"gpu": "MI250X", "gpu_memory_gb": memory}
    workload = case_of(make_row(hardware=hardware), SHIPPED).workload
    assert workload.peak_flops == pytest.approx(dies * 191.5e12)
