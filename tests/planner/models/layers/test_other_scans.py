"""Lightning attention, selective scans, and a state space beside attention."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.hardware.catalog import gpu
from planner.hardware.kernels.scans import scan_rate
from planner.hardware.reading.files import SHIPPED
from planner.models import ModelConfigError, from_config, preset, read_preset
from planner.models.layers.blocks import (
    Attention,
    Lightning,
    SelectiveScan,
    SideBySide,
    StateSpace,
)

size = st.integers(1, 64)


@given(size, size, size)
def test_lightning_attention_counts_itself(h: int, n: int, d: int) -> None:
    """h 4 D + D h + D; scores and values of a block, a state written and read."""
    block, wide = Lightning(h, n, d, chunk=64), n * d
    assert block.parameters == 5 * h * wide + wide
    assert block.core_flops(64) == n * (4 * 64 * d + 4 * d * d)


@given(size, size, size, size, st.integers(1, 8))
def test_a_selective_scan_counts_itself(
    h: int, wide: int, state: int, rank: int, taps: int
) -> None:
    """Products, (w + 1) D + D N + 2 D and the norms of step, keys and queries."""
    block = SelectiveScan(h, wide, state, rank, taps)
    low = rank + 2 * state
    products = 3 * h * wide + wide * low + rank * wide
    assert block.matmul_parameters == products
    assert block.parameters == products + (taps + 1 + state + 2) * wide + low


@given(size, size, size)
def test_side_by_side_is_both(h: int, heads: int, d: int) -> None:
    beside = Attention(h, 2 * heads, heads, d)
    scan = StateSpace(h, heads, d, 1, 16, 4, 64)
    both = SideBySide(h, heads, d, 1, 16, 4, 64, beside=beside)
    assert both.parameters == scan.parameters + beside.parameters
    assert both.matmul_parameters == scan.matmul_parameters + beside.matmul_parameters
    assert both.core_flops(64) == scan.core_flops(64)
    assert both.index_flops(128, causal=True) == beside.core_flops(64)
    widths = {tensor.name: tensor.width for tensor in both.saved()}
    assert widths["attention_output"] == scan.out_width + beside.out_width
    assert widths["qkv"] == beside.qkv_width


def test_layers_of_jamba() -> None:
    """Attention in layer 4 of 8; experts in every odd one."""
    kinds = [k.name for k, n in preset("jamba-v0.1").runs for _ in range(n)]
    assert kinds[:5] == ["mamba-dense", "mamba-moe"] * 2 + ["attention-dense"]
    assert kinds.count("attention-dense") == 4
    assert sum(name.endswith("moe") for name in kinds) == 16


def test_numbers_of_attention_types_read_as_words() -> None:
    """The published file of MiniMax-M1 has 0 and 1, and classes of its own."""
    config = dict(read_preset("minimax-m1-80k").config)
    words = config.pop("layer_types")
    config["attn_type_list"] = [int(word == "full_attention") for word in words]
    named = {"architectures": ["MiniMaxM1ForCausalLM"], "model_type": "minimax_m1"}
    assert from_config(config | named, source="").runs == preset("minimax-m1-80k").runs


def test_rates_that_no_kernel_was_measured_for_say_so() -> None:
    chip = gpu("h200-sxm-141gb", SHIPPED)
    assert "borrowed from mamba2" in scan_rate("lightning", chip).source
    assert "derived, not measured" in scan_rate("selective", chip).source
    ratio = scan_rate("lightning", chip).flops / scan_rate("mamba2", chip).flops
    assert ratio == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("falcon-h1-7b", {"mamba_d_head": 64}, "times mamba_d_head 64 is not"),
        ("jamba-v0.1", {"attn_layer_offset": 8}, "8 is not below attn_layer_period 8"),
        ("minimax-m1-80k", {"shared_intermediate_size": 1}, "shared_intermediate_size"),
        ("gemma-4-26b-a4b", {"num_experts": None}, "enable_moe_block needs"),
        ("gemma-4-31b", {"num_kv_shared_layers": 61}, "is more than num_hidden_layers"),
        ("gemma-3n-e2b", {"intermediate_size": [1, 2]}, "intermediate_size"),
    ],
)
def test_fields_that_contradict(
    name: str, wrong: dict[str, object], message: str
) -> None:
    with pytest.raises(ModelConfigError, match=re.escape(message)):
        from_config(read_preset(name).config | wrong, source="")
