"""Words for what lies in host memory, and the sets that a framework can offload."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from planner.specs.layouts.layout import Offload, PartialLayout
from planner.specs.layouts.offload import (
    CATEGORIES,
    offload_text,
    parts_of,
    unions,
    word_for,
)
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec

SUBSETS = st.sets(st.sampled_from(CATEGORIES))


def test_the_categories_are_those_of_a_layouts_block() -> None:
    shares = {
        name
        for name, field in Offload.model_fields.items()
        if field.annotation is float
    }
    assert shares == set(CATEGORIES)


@given(SUBSETS)
def test_a_word_says_its_set_in_any_order(parts: set[str]) -> None:
    assert parts_of(word_for(parts)) == parts
    for order in permutations(parts):
        if order:
            assert parts_of("+".join(order)) == parts


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("optimiser", "did you mean optimizer?"),
        ("optimizer+none", "nothing called 'none'"),
        ("optimizer+optimizer", "twice"),
        ("", "nothing called ''"),
    ],
)
def test_a_wrong_word_names_the_nearest(word: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("?", r"\?")):
        parts_of(word)


@given(st.sets(st.sampled_from(CATEGORIES), min_size=1))
def test_what_moves_alone_can_be_combined_at_will(groups: set[str]) -> None:
    """n groups of one category each make 2^n sets, the empty one first."""
    found = unions(groups)
    assert len(set(found)) == len(found) == 2 ** len(groups)
    assert found[0] == frozenset()
    assert sorted(map(len, found)) == list(map(len, found))


def test_what_moves_together_is_never_split() -> None:
    assert unions({"parameters+gradients+optimizer", "activations"}) == (
        frozenset(),
        frozenset({"optimizer", "parameters", "gradients"}),
        frozenset({"activations"}),
        frozenset(CATEGORIES),
    )


def test_an_offload_in_words_has_its_shares() -> None:
    assert offload_text(Offload()) == ""
    both = Offload(optimizer=1.0, activations=0.5)
    assert offload_text(both) == "offload optimizer 1.0 + activations 0.5"


def test_a_search_block_keeps_its_words_in_one_form() -> None:
    """The order of categories is no difference; true and false stay what they are."""
    listed = SearchSpec(offload=["none", "parameters+optimizer"])
    assert listed.choices("offload") == ("none", "optimizer+parameters")
    assert SearchSpec(offload="activations").choices("offload") == ("activations",)
    for plain in (True, False, None):
        assert SearchSpec(offload=plain).choices("offload") == ()


def test_what_widens_the_space_is_no_limit() -> None:
    open_to = SearchSpec(offload=True, method=["full", "lora"], optimizer="adamw", tp=2)
    assert open_to.limits() == {"tp": 2}


def test_a_search_says_only_the_settings_that_it_chose() -> None:
    training = TrainingSpec(seq_len=1024, global_batch=8, method="lora")
    assert SearchSpec().settings_of(training) == {}
    chosen = SearchSpec(method=["full", "lora"]).settings_of(training)
    assert chosen == {"method": "lora"}


@pytest.mark.parametrize("name", ["gradients", "activations"])
@pytest.mark.parametrize("zero", [1, 2])
def test_no_stage_keeps_anything_on_the_host_alone(name: str, zero: int) -> None:
    """No framework does that, and no price would read it."""
    stage = {"layers": 2, "offload": {name: 0.5}}
    with pytest.raises(ValidationError, match="less than or equal to 0"):
        PartialLayout.model_validate({"zero_stage": zero, "stages": [stage]})
