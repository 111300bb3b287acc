"""A pipeline stage by its own arithmetic: blocks, ends, what is in flight."""

from typing import Any

import pytest

from planner.eager import EagerCase, Replay, Unsupported, replay

LLAMA: dict[str, Any] = {
    "family": "llama",
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 16000,
}
SEQ = 512
"""Tokens of a case. [tokens]"""
BLOCK = 2 * 1024 * 1024 + 2 * 1024 * 512 + 3 * 1024 * 2816 + 2 * 1024
"""Parameters of a block. [parameters]"""
TABLE = 16000 * 1024
"""Parameters of the embedding, and of the head. [parameters]"""


def told(stage: int, pp: int = 4, **keys: Any) -> Replay:
    """A replay of one stage."""
    options = {"seq": SEQ} | keys
    return replay(EagerCase(model=LLAMA, pp=pp, stage=stage, **options))


@pytest.mark.parametrize(
    ("stage", "ends"), [(0, TABLE), (1, 0), (2, 0), (3, TABLE + 1024)]
)
def test_a_stage_holds_its_blocks_and_its_end(stage: int, ends: int) -> None:
    assert told(stage).parameters == 2 * BLOCK + ends


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_pp_less_stage_micro_batches_are_in_flight(stage: int) -> None:
    """16h + 8 + 4ad + 4gd + 4a + 8f bytes a token and block, each time."""
    h, ad, gd, a, f = 1024, 1024, 512, 8, 2816
    block = 16 * h + 8 + 4 * ad + 4 * gd + 4 * a + 8 * f
    kept = told(stage).after["forward"]["activations"]
    flight = 4 - stage
    # Besides the blocks: the stream it hands on, angles, positions, token ids.
    besides = 2 * h + 2 * 2 * 128 + 64
    assert kept == pytest.approx(flight * SEQ * 2 * block, rel=0.03)
    assert kept <= flight * SEQ * (2 * block + besides) + flight * 64 * 512


def test_the_last_stage_has_one_in_flight_and_the_loss() -> None:
    assert told(3).phases["backward"].total > told(2).phases["backward"].total


def test_tied_ends_on_two_stages_are_two_tables() -> None:
    tied = LLAMA | {"tie_word_embeddings": True}
    ends = [
        replay(EagerCase(model=tied, pp=2, stage=stage, seq=64)).parameters
        for stage in (0, 1)
    ]
    assert ends == [4 * BLOCK + TABLE, 4 * BLOCK + TABLE + 1024]


def test_recomputation_keeps_the_stream_alone() -> None:
    kept = [
        told(stage, recompute="full").after["forward"]["activations"]
        for stage in (1, 2)
    ]
    assert kept[0] > kept[1] >= 2 * 2 * 2 * 1024 * SEQ


@pytest.mark.parametrize(
    ("stage", "pp", "words"), [(0, 16, "8 blocks make no 16"), (4, 4, "stage 4 of 4")]
)
def test_stages_that_do_not_exist_are_refused(stage: int, pp: int, words: str) -> None:
    with pytest.raises(Unsupported, match=words):
        told(stage, pp)


def test_a_stage_may_be_split_over_ranks_as_well() -> None:
    whole, half = told(3), told(3, tp=2)
    assert half.parameters == whole.parameters
    assert half.peak.total < 0.7 * whole.peak.total
