"""Cached keys and values by family: grouped, latent, windowed, absent."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cost.inference.cache import cache_bytes, cached_tokens, token_bytes
from planner.cost.inference.formats import formats
from planner.models import Architecture, preset

BF16 = formats().cache["bf16"]


def whole(model: Architecture) -> float:
    return sum(n * token_bytes(kind, BF16) for kind, n in model.runs)


@pytest.mark.parametrize(
    ("name", "kib"),
    [
        ("llama-3-8b", 128),
        ("llama-2-7b", 512),
        ("llama-3.1-70b", 320),
        ("llama-3.1-405b", 504),
        ("octocoder", 20),
        ("deepseek-v3", 61 * (512 + 64) * 2 / 1024),
    ],
)
def test_a_token_caches_what_its_heads_say(name: str, kib: float) -> None:
    """2 x groups x width x layers x 2 bytes; the latent and its key for MLA."""
    assert whole(preset(name)) == kib * 1024


def test_a_window_holds_no_more_than_itself() -> None:
    """Gemma 2: every other layer sees 4,096 tokens."""
    model = preset("gemma-2-9b")
    windows = {kind.attention.window: n for kind, n in model.runs}
    assert 4096 in windows
    local, glob = (
        next(k for k in model.kinds if (k.attention.window is None) is full)
        for full in (False, True)
    )
    assert (cached_tokens(local, 8192), cached_tokens(glob, 8192)) == (4096, 8192)
    short, long = (cache_bytes(model, BF16, batch=1, context=n) for n in (4096, 8192))
    assert long == 1.5 * short


def test_a_layer_without_attention_caches_nothing() -> None:
    (kind,) = preset("llama-2-7b").kinds
    bare = replace(kind, attention=replace(kind.attention, head_dim=0))
    assert token_bytes(bare, formats().cache["int8"]) == 0


def test_more_gpus_than_heads_repeat_them_and_latents_are_whole_on_each() -> None:
    (kind,) = preset("llama-3-8b").kinds
    assert token_bytes(kind, BF16, tp=8) == token_bytes(kind, BF16, tp=16)
    assert token_bytes(kind, BF16, tp=4) == 2 * token_bytes(kind, BF16, tp=8)
    latent = preset("deepseek-v3").kinds[0]
    assert token_bytes(latent, BF16, tp=8) == token_bytes(latent, BF16)


def test_narrow_caches_pay_for_their_scales() -> None:
    """LMDeploy: a 16-bit scale and zero for each head and token."""
    (kind,) = preset("llama-3-8b").kinds
    sixteen, eight = (token_bytes(kind, formats().cache[f]) for f in ("bf16", "int8"))
    assert eight / sixteen == (128 + 4) / 256


@given(batch=st.integers(1, 64), context=st.integers(1, 10**6))
def test_the_cache_grows_with_batch_and_never_falls_with_context(
    batch: int, context: int
) -> None:
    model = preset("gemma-3-4b")
    one = cache_bytes(model, BF16, batch=1, context=context)
    assert cache_bytes(model, BF16, batch=batch, context=context) == batch * one
    assert cache_bytes(model, BF16, batch=1, context=context + 1) > one
