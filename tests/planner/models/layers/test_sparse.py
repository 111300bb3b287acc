"""Attention over chosen keys counts its indexer, its keys and the cheaper kernel."""

from dataclasses import fields

import pytest

from planner.cost.inference.cache import token_bytes
from planner.cost.inference.formats import formats
from planner.models import preset
from planner.models.layers.blocks import LatentAttention, SparseLatentAttention

KIND = preset("deepseek-v3.2").kinds[0]
BLOCK = KIND.attention
assert isinstance(BLOCK, SparseLatentAttention)
DENSE = LatentAttention(
    **{one.name: getattr(BLOCK, one.name) for one in fields(LatentAttention)}
)


def test_an_indexer_holds_queries_a_key_weights_and_a_norm() -> None:
    """1536 * 64 * 128 + 7168 * 128 + 7168 * 64 + 2 * 128, on every tensor rank."""
    index = 1536 * 64 * 128 + 7168 * (128 + 64) + 2 * 128
    assert BLOCK.parameters - DENSE.parameters == index
    assert BLOCK.sharded_parameters == DENSE.sharded_parameters


@pytest.mark.parametrize(
    ("length", "keys"), [(1024, 512), (4096, 1536), (131_072, 2032)]
)
def test_a_query_attends_to_its_top_2048_keys(length: int, keys: int) -> None:
    assert BLOCK.attended(length, causal=True) == keys
    assert BLOCK.attended(length, causal=False) == length


def test_index_scores_grow_with_the_square_of_the_length() -> None:
    """2 * 64 * 129 FLOP a key and token, half of the keys under the mask."""
    short, long = (KIND.forward_flops(n, causal=True) for n in (65_536, 131_072))
    core = 2 * 128 * (128 + 64 + 128)
    keys = [2048 * (1 - 1024 / n) for n in (65_536, 131_072)]
    scores = 2 * 64 * 129 * 32_768
    assert long - short == pytest.approx(core * (keys[1] - keys[0]) + scores)


def test_the_kernel_is_dense_where_few_keys_are_left_out() -> None:
    """320 columns a head of 2,048 keys, or 1,088 shared columns of 1,536."""
    assert BLOCK.kernel_flops(4096) == 2 * 128 * 320 * 2048
    assert BLOCK.kernel_flops(131_072) == 2 * 128 * (2 * 512 + 64) * 2032


def test_an_index_key_is_cached_and_chosen_keys_are_kept() -> None:
    """576 + 128 numbers of 2 B; 2,048 indices a token."""
    assert token_bytes(KIND, formats().cache["bf16"]) == 2 * (512 + 64 + 128)
    widths = {tensor.name: tensor.width for tensor in BLOCK.saved()}
    assert (widths["index"], widths["index_choice"]) == (65 * 128 + 64, 2048)
