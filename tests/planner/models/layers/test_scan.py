"""Blocks with a scan count themselves: formulas, products, classes, saved tensors."""

import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.models import ModelConfigError, from_config, preset, read_preset
from planner.models.layers.blocks import GatedDelta, KimiDelta, StateSpace
from planner.models.layers.linears import linears

size = st.integers(1, 256)
deltas = st.builds(GatedDelta, size, size, size, size, size, st.integers(1, 8))
QWEN = read_preset("qwen3-next-80b-a3b").config


@given(deltas)
def test_parameters_of_a_gated_delta_block(block: GatedDelta) -> None:
    """h (2 K + 2 V + 2 n_v) + w (2 K + V) + 2 n_v + d_v + V h; the norm is whole."""
    h, keys = block.hidden, block.key_heads * block.key_dim
    values = block.value_heads * block.value_dim
    inputs = h * (2 * keys + 2 * values + 2 * block.value_heads)
    vectors = block.conv * (2 * keys + values) + 2 * block.value_heads
    assert block.sharded_parameters == inputs + vectors + values * h
    assert block.replicated_parameters == block.value_dim
    assert block.matmul_parameters == inputs + values * h


def test_a_scan_keeps_its_inputs_systems_and_outputs() -> None:
    """Qwen3-Next: K 2048, V 4096, 32 heads, chunks of 64: 34,944 numbers a token."""
    block = preset("qwen3-next-80b-a3b").kinds[0].attention
    assert isinstance(block, GatedDelta)
    widths = {tensor.name: tensor.width for tensor in block.saved()}
    assert widths == {
        "scan_input": 12_288,
        "qkv": 8_192,
        "scan_gates": 64,
        "scan_system": 2_048,
        "scan_output": 4_096,
        "attention_output": 4_096,
    }


def test_work_of_a_scan_is_the_same_at_every_length() -> None:
    """32 heads of 2 * 64 * 5 * 128 in a chunk and 6 * 128^2 with the state."""
    kind = preset("qwen3-next-80b-a3b").kinds[0]
    core = 32 * (2 * 64 * 5 * 128 + 6 * 128**2)
    for length in (1024, 131_072):
        flops = kind.forward_flops(length, causal=False) - 2 * kind.matmul_parameters
        assert flops == core
    half = kind.forward_flops(1024, causal=True) - 2 * kind.matmul_parameters
    assert half == core - 32 * 64 * 5 * 128


def test_an_output_gate_widens_the_queries() -> None:
    block = preset("qwen3-next-80b-a3b").kinds[1].attention
    plain = replace(block, output_gate=False)  # type: ignore[arg-type]
    assert block.parameters - plain.parameters == 2048 * 16 * 256
    assert block.gemms()[0].outputs == (2 * 16 + 2 * 2) * 256


def test_layer_types_overrule_the_interval_and_are_checked() -> None:
    types = ["full_attention", "linear_attention"]
    config = QWEN | {"num_hidden_layers": 2, "layer_types": types}
    kinds = from_config(config, source="").kinds
    assert [kind.name for kind in kinds] == ["attention-moe", "delta-moe"]
    with pytest.raises(ModelConfigError, match="layer_types has 4 entries"):
        from_config(config | {"layer_types": types * 2}, source="")
    with pytest.raises(ModelConfigError, match="num_value_heads 32 is not a multiple"):
        from_config(QWEN | {"linear_num_key_heads": 5}, source="")


def test_linear_layers_of_a_scan_have_names_of_their_own() -> None:
    model = preset("qwen3.5-9b")
    delta, attention = (
        {each.name for each in linears(k, model.family)} for k in model.kinds
    )
    assert {"in_proj_qkv", "in_proj_z", "in_proj_a", "in_proj_b", "out_proj"} <= delta
    assert {"q_proj", "o_proj"} <= attention
    assert not {"q_proj", "o_proj"} & delta


@given(st.builds(StateSpace, *[size] * 5, st.integers(1, 8), size, st.booleans()))
def test_parameters_of_a_state_space_block(block: StateSpace) -> None:
    """h (2 D + 2 g N + n) + (w [+ 1]) (D + 2 g N) + 3 n + D + D h with D = n p."""
    h, n, wide = block.hidden, block.state_heads, block.state_heads * block.head_dim
    mixed = wide + 2 * block.groups * block.state
    matrices = h * (wide + mixed + n) + wide * h
    vectors = (block.conv + block.conv_bias) * mixed + 3 * n + wide
    assert block.parameters == matrices + vectors
    assert block.matmul_parameters == matrices


def test_layers_of_nemotron_are_halves() -> None:
    """23 scans, 23 mixtures and 6 attentions, each behind one norm."""
    kinds = {kind.name: kind for kind in preset("nemotron-3-nano-30b-a3b").kinds}
    counts = Counter[str]()
    for kind, layers in preset("nemotron-3-nano-30b-a3b").runs:
        counts[kind.name] += layers
    assert counts == {"mamba": 23, "moe": 23, "attention": 6}
    regions = {name: {g.region for g in kind.gemms()} for name, kind in kinds.items()}
    halves = {"mamba": {"attention"}, "attention": {"attention"}, "moe": {"ffn"}}
    assert regions == halves
    assert {kind.norms for kind in kinds.values()} == {1}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"hybrid_override_pattern": "MX"},
            "has 'X'; allowed: mamba",
        ),
        ({"num_hidden_layers": 7}, "has 52 entries; num_hidden_layers is 7"),
        ({"moe_latent_size": 0}, "moe_latent_size is 0"),
        ({"mtp_hybrid_override_pattern": "ME"}, "mtp_hybrid_override_pattern is 'ME'"),
        ({"num_experts_per_tok": 129}, "129 is more than n_routed_experts 128"),
    ],
)
def test_wrong_layers_of_nemotron(wrong: dict[str, object], message: str) -> None:
    config = read_preset("nemotron-3-nano-30b-a3b").config | wrong
    if "hybrid_override_pattern" in wrong:
        config["num_hidden_layers"] = 2
    with pytest.raises(ModelConfigError, match=re.escape(message)):
        from_config(config, source="")


@given(size, size, size, st.integers(1, 8))
def test_parameters_of_kimis_delta(h: int, n: int, d: int, taps: int) -> None:
    """h (3 D + n) + 2 d (h + D) + 3 w D + D + n + d + D h; low ranks are whole."""
    block, wide = KimiDelta(h, n, n, d, d, taps), n * d
    matrices = h * (3 * wide + n) + 2 * d * (h + wide) + wide * h
    assert block.matmul_parameters == matrices
    assert block.parameters == matrices + 3 * taps * wide + wide + n + d
    assert block.replicated_parameters == 2 * h * d + d


def test_kimi_linear_lists_its_layers_from_one() -> None:
    """Latent attention in every fourth layer and the last; the first is dense."""
    runs = [(kind.name, count) for kind, count in preset("kimi-linear-48b-a3b").runs]
    assert runs[:3] == [("delta-dense", 1), ("delta-moe", 2), ("latent-moe", 1)]
    assert runs[-2:] == [("delta-moe", 2), ("latent-moe", 1)]
