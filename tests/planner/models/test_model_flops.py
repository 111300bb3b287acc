"""FLOPs per token and per step against published conventions."""

from dataclasses import replace

import pytest
from each import each

from planner.models import Architecture, preset, preset_names

GPT = [name for name in preset_names() if name.startswith(("megatron", "gpt3"))]


@pytest.mark.parametrize(
    ("name", "full", "causal"),
    [
        ("llama-3-8b", 5.791e10, 5.147e10),
        ("llama-3-70b", 4.814e11, 4.492e11),
        ("llama-3.1-405b", 2.625e12, 2.524e12),
    ],
)
def test_llama_flops_per_token_at_8192(name: str, full: float, causal: float) -> None:
    model = preset(name)
    assert model.model_flops_per_token(8192, "full") == pytest.approx(full, rel=1e-3)
    assert model.model_flops_per_token(8192, "causal") == pytest.approx(
        causal, rel=1e-3
    )


def test_deepseek_v3_flops_per_token_at_4096_causal() -> None:
    """The published convention leaves multi-token prediction out."""
    model = replace(preset("deepseek-v3"), mtp_layers=0)
    flops = model.model_flops_per_token(4096, "causal")
    assert flops == pytest.approx(2.505e11, rel=1e-3)


def test_mtp_adds_a_layer_a_projection_and_a_head() -> None:
    model = preset("deepseek-v3")
    without = replace(model, mtp_layers=0)
    layer = model.layer_flops(model.kinds[1], 4096, "causal")
    h, V = model.hidden, model.vocab
    added = 3 * (layer + 2 * (2 * h * h) + 2 * h * V)
    difference = model.model_flops_per_token(
        4096, "causal"
    ) - without.model_flops_per_token(4096, "causal")
    assert difference == pytest.approx(added, rel=1e-12)


def _hardware_flops(model: Architecture, sequences: int) -> float:
    """FLOPs of a step with full recomputation: the model's and one more forward."""
    s = model.learned_positions
    again = sum(
        model.layer_flops(kind, s, "full") * count for kind, count in model.runs
    )
    return sequences * s * (model.model_flops_per_token(s, "full") + again)


@pytest.mark.parametrize(
    ("name", "sequences", "flops", "rate", "seconds"),
    [
        ("megatron-gpt-145b", 2304, 5.642e18, 1536 * 148e12, 24.82),
        ("megatron-gpt-530b", 2520, 2.222e19, 2520 * 163e12, 54.08),
        ("megatron-gpt-1t", 3072, 5.139e19, 3072 * 163e12, 102.63),
    ],
)
def test_narayanan_step(
    name: str, sequences: int, flops: float, rate: float, seconds: float
) -> None:
    """Step FLOPs of Narayanan's Table 1, and the step time its TFLOP/s imply."""
    step = _hardware_flops(preset(name), sequences)
    assert step == pytest.approx(flops, rel=5e-4)
    assert step / rate == pytest.approx(seconds, abs=0.01)


@pytest.mark.parametrize("name", GPT)
def test_hardware_flops_follow_narayanan_equation_3(name: str) -> None:
    """96 B L s h^2 (1 + s / (6 h) + V / (16 L h)) with full recomputation."""
    model = preset(name)
    L, h, V, s = model.layers, model.hidden, model.vocab, model.learned_positions
    closed = 96 * 8 * L * s * h**2 * (1 + s / (6 * h) + V / (16 * L * h))
    assert _hardware_flops(model, 8) == pytest.approx(closed, rel=1e-12)


@pytest.mark.parametrize("name", GPT)
def test_model_flops_follow_korthikanti_equation_7(name: str) -> None:
    """72 L h^2 (1 + s / (6 h) + V / (12 h L)) a token, full attention."""
    model = preset(name)
    L, h, V, s = model.layers, model.hidden, model.vocab, model.learned_positions
    closed = 72 * L * h**2 * (1 + s / (6 * h) + V / (12 * h * L))
    flops = model.model_flops_per_token(s, "full")
    assert flops == pytest.approx(closed, rel=1e-12)


@each("name", preset_names())
def test_flops_are_six_per_weight_plus_three_cores(name: str) -> None:
    """Without MTP: 6 N_mm + 3 F_core; of indexers and stream copies 3 F each."""
    model = replace(preset(name), mtp_layers=0)
    blocks = [(kind.attention, count) for kind, count in model.runs]
    core = sum(
        block.core_flops(block.attended(4096, causal=True)) * count
        + block.index_flops(4096, causal=True) * count
        for block, count in blocks
    )
    mixed = sum(k.stream.mixed_flops * n for k, n in model.runs if k.stream)
    flops = model.model_flops_per_token(4096, "causal")
    expected = 6 * model.matmul_parameters + 3 * (core + mixed)
    assert flops == pytest.approx(expected, rel=1e-12)


def test_unknown_convention_is_refused() -> None:
    """A typo does not fall back on the full convention."""
    with pytest.raises(KeyError):
        preset("gpt2").model_flops_per_token(1024, "casual")  # type: ignore[arg-type]
