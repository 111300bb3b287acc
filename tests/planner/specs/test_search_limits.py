"""Limits of a search block, and tensor groups as wide as they name."""

import pytest
from strategies import small_job

from planner.search.space.space import enumerate_space
from planner.specs.search import IntLimit, SearchSpec, Span

WIDE = {"num_attention_heads": 64, "num_key_value_heads": 64, "hidden_size": 4096}


@pytest.mark.parametrize(
    ("limit", "most"),
    [(None, None), (4, 4), ((2, 8, 4), 8), (Span(min=2), None), (Span(max=16), 16)],
)
def test_the_largest_value_that_a_limit_names(
    limit: IntLimit, most: int | None
) -> None:
    assert SearchSpec(tp=limit).largest("tp") == most


@pytest.mark.parametrize(
    ("space", "limit", "widest"),
    [
        ("default", None, 8),
        ("default", Span(max=32), 8),
        ("full", None, 16),
        ("full", 4, 4),
        ("full", Span(min=2), 16),
        ("full", Span(max=32), 32),
        ("full", (8, 64), 64),
    ],
)
def test_tensor_groups_are_as_wide_as_the_space(
    space: str, limit: IntLimit, widest: int
) -> None:
    """A domain of 8; two in the full space, or as many as the limit names there."""
    search = SearchSpec(space=space, tp=limit, pp=1, cp=1, micro_batch=1)
    meshes = enumerate_space(small_job(search, nodes=8, config=WIDE)).meshes
    assert int(meshes.tp.max()) == widest
