"""Attention over a window and compressed keys: keys met, products, cache."""

import re

import pytest

from planner.cost.inference.cache import cached_tokens, state_bytes
from planner.models import ModelConfigError, from_config, preset, read_preset
from planner.models.layers.blocks import CompressedAttention

CONFIG = read_preset("deepseek-v4-flash").config


def _attention(name: str) -> CompressedAttention:
    kinds = {kind.name: kind for kind in preset("deepseek-v4-flash").kinds}
    attention = kinds[name].attention
    assert isinstance(attention, CompressedAttention)
    return attention


@pytest.mark.parametrize(
    ("name", "length", "keys"),
    [
        ("sliding-hash-moe", 64, 32),
        ("sliding-hash-moe", 1024, 128 * (1 - 128 / 2048)),
        # 8 entries of 128 tokens, half of them before a token on average.
        ("hca-moe", 1024, 128 * (1 - 128 / 2048) + 4),
        # 256 entries of 4 tokens, fewer than the 512 that a query may choose.
        ("csa-moe", 1024, 128 * (1 - 128 / 2048) + 128),
        ("csa-moe", 8192, 128 * (1 - 128 / 16384) + 512 * (1 - 512 / 4096)),
    ],
)
def test_keys_that_a_token_meets(name: str, length: int, keys: float) -> None:
    assert _attention(name).attended(length, causal=True) == pytest.approx(keys)


def test_every_score_of_the_full_convention() -> None:
    assert _attention("hca-moe").attended(1024, causal=False) == 1024 + 8
    assert _attention("csa-moe").attended(1024, causal=False) == 1024 + 256


def test_an_index_scores_compressed_keys() -> None:
    """64 heads of 128 over a quarter of the keys; none where all are attended to."""
    assert _attention("csa-moe").index_flops(4096, causal=False) == 2 * 64 * 128 * 1024
    assert _attention("hca-moe").index_flops(4096, causal=False) == 0


def test_layers_of_flash_alternate_behind_two_windows() -> None:
    """Ratios 0, 0, 4, 128, 4, ...; three layers choose experts by token."""
    kinds = [k.name for k, n in preset("deepseek-v4-flash").runs for _ in range(n)]
    assert kinds[:4] == ["sliding-hash-moe"] * 2 + ["csa-hash-moe", "hca-moe"]
    assert kinds[4:6] == ["csa-moe", "hca-moe"]
    assert len(kinds) == 43


def test_compressed_keys_are_cached_with_a_window() -> None:
    kinds = {kind.name: kind for kind in preset("deepseek-v4-flash").kinds}
    assert cached_tokens(kinds["csa-moe"], 100_000) == 100_000
    assert cached_tokens(kinds["sliding-hash-moe"], 100_000) == 128
    assert state_bytes(kinds["csa-moe"]) == 2 * 128 * 512


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"compress_ratios": [0, 4]}, "layer_types has 2 entries"),
        ({"compress_ratios": [7] * 43}, "layer_types.0 is 7"),
        ({"o_groups": 7}, "num_attention_heads 64 is not a multiple of o_groups 7"),
        ({"compress_rates": {}}, "compress_rates has no"),
    ],
)
def test_wrong_layers_of_deepseek(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ModelConfigError, match=re.escape(message)):
        from_config(CONFIG | wrong, source="")
