"""Weights by format: exact for known models, split over GPUs, dearer by scales."""

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from planner.cost.inference.formats import WeightFacts, formats
from planner.cost.inference.weights import largest_linear, weight_bytes
from planner.models import preset, preset_names

MODELS = ("llama-2-7b", "mixtral-8x7b", "deepseek-v3", "gemma-2-9b", "octocoder")


@each("name", preset_names())
def test_16_bits_are_two_bytes_of_every_parameter(name: str) -> None:
    model = preset(name)
    assert weight_bytes(model, formats().weights["bf16"]) == 2 * model.parameters
    assert weight_bytes(model, formats().weights["fp32"]) == 4 * model.parameters


def test_int8_holds_a_byte_a_weight_a_scale_a_row_and_the_rest_in_16_bits() -> None:
    """Llama 2 7B by hand: 32 layers of seven linears, two tables, 65 norms."""
    h, f, layers, vocab = 4096, 11008, 32, 32000
    linears = layers * (4 * h * h + 3 * h * f)
    rows = layers * (5 * h + 2 * f)
    rest = 2 * vocab * h + (2 * layers + 1) * h
    found = weight_bytes(preset("llama-2-7b"), formats().weights["int8"])
    assert found == linears + 4 * rows + 2 * rest


def test_int4_adds_a_scale_and_a_zero_for_128_weights() -> None:
    facts = formats().weights["int4"]
    assert facts.linear_bytes(256, 10) == 10 * (256 / 2 + 2 * 4)
    assert facts.linear_bytes(129, 1) == 129 / 2 + 2 * 4


def test_nf4_is_double_quantised() -> None:
    """Dettmers et al. 2023, section 3: 0.127 bits a weight for the constants."""
    each = formats().weights["nf4"].linear_bytes(4096, 4096) * 8 / 4096**2
    assert each == pytest.approx(4.127, abs=0.0005)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("form", ["bf16", "int8", "int4"])
def test_a_group_divides_what_tensor_parallelism_splits(name: str, form: str) -> None:
    model, facts = preset(name), formats().weights[form]
    one, two = (weight_bytes(model, facts, tp) for tp in (1, 2))
    assert one / 2 < two < 0.55 * one


@pytest.mark.parametrize("name", MODELS)
def test_fewer_bits_never_weigh_more(name: str) -> None:
    model, known = preset(name), formats().weights
    order = ("fp32", "bf16", "int8", "fp4", "int4", "nf4")
    sizes = [weight_bytes(model, known[form]) for form in order]
    assert sizes == sorted(sizes, reverse=True)


@given(
    inputs=st.integers(1, 5000), outputs=st.integers(1, 5000), bits=st.integers(1, 32)
)
def test_scales_only_add(inputs: int, outputs: int, bits: int) -> None:
    plain = WeightFacts(bits=bits, others=16, source="a test")
    scaled = plain.model_copy(update={"row_bits": 32, "group": 64, "group_bits": 16})
    bare = plain.linear_bytes(inputs, outputs)
    assert bare == pytest.approx(inputs * outputs * bits / 8)
    assert scaled.linear_bytes(inputs, outputs) > bare


def test_the_largest_linear_is_the_one_that_is_made_wider() -> None:
    assert largest_linear(preset("octocoder")) == 6144 * 24576
    assert largest_linear(preset("octocoder"), tp=2) == 6144 * 12288


def test_every_format_names_its_source() -> None:
    known = formats()
    facts = [*known.weights.values(), *known.cache.values(), known.runtime]
    assert all(len(fact.source) > 5 for fact in facts)
