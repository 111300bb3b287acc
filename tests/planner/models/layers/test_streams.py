"""Copies of the residual stream, layers' own inputs, and who keeps what of them."""

from hypothesis import given
from hypothesis import strategies as st

from planner.models import preset
from planner.models.layers.blocks import (
    AlternatingUpdates,
    Attention,
    HyperConnections,
    LayerInputs,
)

size = st.integers(1, 64)


@given(size, size)
def test_hyper_connections_count_themselves(h: int, n: int) -> None:
    """2 ((2 + n) n (n h + 1) + 3) parameters; n^2 products mix them in each half."""
    stream = HyperConnections(h, n)
    mixes = (2 + n) * n
    assert stream.parameters == 2 * (mixes * (n * h + 1) + 3)
    assert stream.matmul_parameters == 2 * mixes * n * h
    assert stream.mixed_flops == 4 * n * n * h


@given(size, size, size, size)
def test_alternating_updates_count_themselves(h: int, p: int, n: int, r: int) -> None:
    """2 h (p + r) + h n + n^3 + n^2 + h; the weights of the copies are made twice."""
    stream = AlternatingUpdates(h, p, n, r)
    products = 2 * h * (p + r) + h * n + n**3 + n**2
    assert stream.parameters == products + h
    assert stream.matmul_parameters == products + h * n


def test_a_layer_hands_all_copies_on() -> None:
    """DeepSeek-V4 sends four copies; Gemma 3n's halves work on one of its four."""
    deep, small = preset("deepseek-v4-flash"), preset("gemma-3n-e4b")
    assert deep.stream_width == 4 * 4096
    assert small.stream_width == 4 * 2048
    saved = [
        {tensor.name: tensor.width for tensor in model.kinds[0].saved()}
        for model in (deep, small)
    ]
    assert [s["attention_norm_input"] for s in saved] == [4 * 4096, 4 * 2048]
    assert [s["ffn_norm_input"] for s in saved] == [4 * 4096, 6 * 2048]


def test_inputs_of_a_layer_of_gemma_4() -> None:
    """A table of 262,144 x 42 x 256, and 2 x 2560 x 256 in each layer."""
    model = preset("gemma-4-e4b")
    assert model.input_table == 262_144 * 42 * 256
    assert model.outer_weights == 2560 * 42 * 256
    assert {kind.stream for kind in model.kinds} == {LayerInputs(2560, 256)}
    dense = preset("gemma-4-31b")
    assert dense.input_parameters == 0
    assert dense.stream_width == dense.hidden


def test_keys_of_an_earlier_layer_have_no_weights() -> None:
    """Gemma 4 E4B: of 42 layers the last 18 make queries alone."""
    model = preset("gemma-4-e4b")
    counts = {0: 0, 2: 0}
    for kind, layers in model.runs:
        assert isinstance(kind.attention, Attention)
        counts[kind.attention.key_matrices] += layers
    assert counts == {0: 18, 2: 24}
    shared = next(k.attention for k in model.kinds if "shared" in k.name)
    assert shared.gemms()[0].outputs == 8 * 256
    assert shared.saved()[0].width == 8 * 256


def test_values_that_are_keys_have_no_weights() -> None:
    """Gemma 4 31B: global layers project 32 queries and 4 keys, and keep values too."""
    model = preset("gemma-4-31b")
    wide = next(k.attention for k in model.kinds if k.name == "global-dense")
    assert isinstance(wide, Attention)
    assert wide.gemms()[0].outputs == (32 + 4) * 512
    assert wide.saved()[0].width == (32 + 2 * 4) * 512
