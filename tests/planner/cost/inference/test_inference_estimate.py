"""Serving: moments, verdicts, the most that fits, the fewest GPUs."""

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cost.inference.estimate import (
    gpus_to_serve,
    largest_request,
    legal_groups,
    serves,
    serving_estimate,
    serving_memory,
)
from planner.cost.inference.formats import formats
from planner.cost.inference.workspace import layer_bytes, logit_bytes
from planner.models import preset
from planner.specs.inference import InferenceSpec

H100 = 80e9


def asked(**fields: object) -> InferenceSpec:
    return InferenceSpec.model_validate({"context": 8192, **fields})


def test_categories_add_up_and_prefill_is_the_fullest() -> None:
    found = serving_estimate(preset("llama-3-8b"), asked(batch=8), H100)
    (stage,) = found.stages
    parts = (stage.weights, stage.kv_cache, stage.activations, stage.context)
    assert stage.device == pytest.approx(sum(parts))
    assert stage.kv_cache == pytest.approx(8 * 8192 * 128 / 2**20)
    assert stage.moment == "prefill"
    assert found.moments["prefill"] > found.moments["decode"]


@pytest.mark.parametrize(
    ("batch", "verdict"), [(1, "fits"), (55, "at-risk"), (200, "oom")]
)
def test_the_verdict_follows_the_interval(batch: int, verdict: str) -> None:
    model = preset("llama-3-8b")
    assert serving_estimate(model, asked(batch=batch), H100).verdict == verdict


@given(
    weights=st.sampled_from(sorted(formats().weights)),
    kv_cache=st.sampled_from(sorted(formats().cache)),
    batch=st.integers(1, 32),
    context=st.integers(1, 40_000),
)
@settings(max_examples=examples(30))
def test_the_largest_fits_and_one_more_does_not(
    weights: str, kv_cache: str, batch: int, context: int
) -> None:
    model = preset("qwen3-8b")
    spec = asked(weights=weights, kv_cache=kv_cache, batch=batch, context=context)
    found = largest_request(model, spec, 24e9)
    for field, most in (("batch", found.batch), ("context", found.context)):
        if most:
            at_most = spec.model_copy(update={field: most})
            assert serves(model, at_most, 24e9)
        beyond = spec.model_copy(update={field: most + 1})
        assert not serves(model, beyond, 24e9)


def test_nothing_fits_where_the_weights_do_not() -> None:
    found = largest_request(preset("llama-3.1-405b"), asked(), H100)
    assert (found.batch, found.context) == (0, 0)


@pytest.mark.parametrize(
    ("weights", "gpus"), [("bf16", 2), ("fp8", 1), ("int4", 1), ("fp32", 4)]
)
def test_70b_needs_the_gpus_that_its_weights_fill(weights: str, gpus: int) -> None:
    found = gpus_to_serve(
        preset("llama-3.1-70b"), asked(weights=weights), H100, (1, 2, 4, 8)
    )
    assert found == gpus


def test_no_group_holds_405b_in_16_bits_on_eight() -> None:
    assert gpus_to_serve(preset("llama-3.1-405b"), asked(), H100, [1, 2, 4, 8]) is None


def test_groups_divide_the_heads() -> None:
    """OctoCoder has 48 query heads and one key-value head, which repeats."""
    assert list(legal_groups(preset("octocoder"), 8)) == [1, 2, 3, 4, 6, 8]
    assert list(legal_groups(preset("llama-3-8b"), 8)) == [1, 2, 4, 8]


def test_a_layer_at_work_holds_the_wider_half() -> None:
    """Llama 3 8B: gate, up and their product over 2 h, in 2 bytes."""
    (kind,) = preset("llama-3-8b").kinds
    assert layer_bytes(kind, 100, 2.0) == 100 * 2 * (2 * 4096 + 3 * 14336)
    assert layer_bytes(kind, 100, 2.0, tp=2) == 100 * 2 * (2 * 4096 + 3 * 7168)


def test_a_wide_vocabulary_makes_logits_the_peak_of_a_large_batch() -> None:
    model, runtime = preset("gemma-2-2b"), formats().runtime
    spec = asked(batch=512, context=16, chunk=512)
    held = serving_memory(model, spec, "decode").activations
    assert held * 2**30 == logit_bytes(model, runtime, 512) == 512 * 256000 * 6


def test_a_block_quantised_linear_is_made_wide_to_multiply() -> None:
    model = preset("octocoder")
    plain, wide = (
        serving_memory(model, asked(weights=form, context=10), "decode").activations
        for form in ("int4", "fp4")
    )
    assert (wide - plain) * 2**30 == pytest.approx(6 * 6144 * 24576, rel=0.05)
