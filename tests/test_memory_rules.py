"""The worked examples of the rules of thumb: each figure pinned to its source.

Whoever moves one regenerates benchmarks/memory/README.md in the same commit.
"""

from pathlib import Path

import pytest

from benchmarks.memory import rules
from benchmarks.memory.__main__ import page
from benchmarks.memory.jobs import A100, RTX_4090, job
from planner.cost.inference.estimate import cache_bytes_per_token
from planner.models import preset
from planner.specs.inference import InferenceSpec

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_the_page_is_what_the_code_prints() -> None:
    written = ROOT / "benchmarks" / "memory" / "README.md"
    assert written.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize(
    ("framework", "stack", "precision", "total"),
    [
        ("torchtitan", {"name": "deepspeed-zero3"}, "fp16", 16),
        ("torchtitan", None, "bf16", 16),
        ("megatron", None, "bf16", 18),
    ],
)
def test_a_parameter_takes_16_bytes_or_the_sum_of_its_framework(
    framework: str, stack: dict[str, object] | None, precision: str, total: float
) -> None:
    """ZeRO, arXiv 1910.02054, section 3.1: 2 + 2 + 12; Megatron-Core 6 + 12."""
    found = job("llama-2-7b", framework=framework, stack=stack, precision=precision)
    assert rules.bytes_per_parameter(found).total == total


@pytest.mark.parametrize(
    ("optimizer", "rule"), [("adamw", 12), ("adamw-8bit", 6), ("sgd-momentum", 8)]
)
def test_an_optimizer_takes_the_rules_bytes_with_its_master_copy(
    optimizer: str, rule: float
) -> None:
    """EleutherAI, Transformer Math 101."""
    found = job("llama-2-7b", framework="megatron", optimizer=optimizer)
    assert rules.bytes_per_parameter(found).optimizer == pytest.approx(rule, rel=0.02)


def test_a_step_holds_more_than_its_states() -> None:
    """The limit of 16 bytes a parameter: activations, less under recompute."""
    one = job("llama-2-7b", gpus=1)
    none, full = (rules.on_one_gpu(one, recompute=kind) for kind in ("none", "full"))
    assert none.allocated > full.allocated > full.states > 107.8


@pytest.mark.parametrize(
    ("model", "fp32", "fp16", "int8", "int4"),
    [
        ("llama-2-7b", 26.95, 13.48, 7.01, 3.97),
        ("llama-2-13b", 52.06, 26.03, 13.35, 7.40),
        ("llama-2-70b", 275.91, 137.95, 69.53, 37.42),
    ],
)
def test_llama_2_weighs_what_its_formats_say(
    model: str, fp32: float, fp16: float, int8: float, int4: float
) -> None:
    found = [rules.weights_gb(model, form) for form in rules.RULE_BYTES]
    assert found == pytest.approx([fp32, fp16, int8, int4], abs=0.005)
    assert found[0] == 2 * found[1]


def test_octocoder_peaks_where_the_guide_measured_it() -> None:
    """Hugging Face, Optimizing LLMs for speed and memory: 29.03, 15.22, 9.54 GiB."""
    errors = {
        form: rules.octocoder_peak(form) / measured - 1
        for form, (_, measured) in rules.OCTOCODER.items()
    }
    assert abs(errors["bf16"]) < 0.01
    assert abs(errors["fp4"]) < 0.01
    assert -0.03 < errors["int8"] < 0.0
    assert rules.weights_gb("octocoder", "bf16") == pytest.approx(31.03, abs=0.01)


def test_gpt3_weighs_350_gb_in_bf16() -> None:
    assert rules.weights_gb("gpt3-175b", "bf16") == pytest.approx(350, rel=0.005)


def test_llama_3_8b_caches_128_kib_a_token() -> None:
    cached = cache_bytes_per_token(preset("llama-3-8b"), InferenceSpec(context=1))
    assert cached == 128 * 2**10


@pytest.mark.parametrize(
    ("model", "states", "gpus"), [("llama-2-7b", 112, 2), ("llama-2-70b", 1120, 14)]
)
def test_states_of_a_full_fine_tuning_are_those_of_the_rule(
    model: str, states: float, gpus: int
) -> None:
    """Below the rule by the rounding of a model's name, never above."""
    found = rules.states_gb(model)
    assert found == pytest.approx(states, rel=0.04)
    assert -(-found // 80) == gpus
    assert rules.fewest_a100(model) >= gpus


def test_seven_billion_fit_two_a100_as_the_rule_says() -> None:
    assert rules.fewest_a100("llama-2-7b") == 2


def test_a_70b_checkpoint_is_about_700_gb_without_a_master_copy() -> None:
    pure = rules.checkpoint_gb("llama-2-70b", stack=rules.PURE_BF16)
    assert pure == pytest.approx(700, rel=0.02)
    master = rules.checkpoint_gb("llama-2-70b", framework="megatron")
    assert master / pure == pytest.approx(1.4, rel=1e-3)


@pytest.mark.parametrize(
    ("cluster", "least", "most"), [(RTX_4090, 1.0, 1.6), (A100, 3.0, 5.1)]
)
def test_the_largest_model_of_one_gpu_is_below_the_rule(
    cluster: str, least: float, most: float
) -> None:
    """1.5 B in 24 GB and 5 B in 80 GB by states alone; less with activations."""
    found = rules.largest_on(cluster)
    alone, priced = (
        preset(name).parameters / 1e9 for name in (found.states_alone, found.priced)
    )
    assert least < priced <= alone < most


def test_the_rule_of_gpt2_is_far_too_low() -> None:
    """60 GB by ZeRO's 24 bytes; 287 GB by Korthikanti's 34 + 5 a s / h."""
    rule, formula = rules.gpt2_by_zero(), rules.gpt2_by_korthikanti()
    assert rule == pytest.approx(60.4, abs=0.1)
    assert formula == pytest.approx(286.9, abs=0.1)
    then = rules.gpt2_activations("megatron-2021")
    # The logits are beyond the formula: 10 bytes each of 50,257 x 32 x 1,024.
    assert then == pytest.approx(formula + 16.5, rel=0.02)
    assert rule < rules.gpt2_activations("megatron-2026") < then / 3
