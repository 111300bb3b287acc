"""What FSDP2's groups gather and reduce, by hand."""

import pytest

from planner.eager import EagerCase, Unsupported, groups_memory, replay

LLAMA = {
    "family": "llama",
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 16000,
}
BLOCK = 2 * 1024 * 1024 + 2 * 1024 * 512 + 3 * 1024 * 2816 + 2 * 1024
ENDS = 2 * 16000 * 1024 + 1024


def case(**keys: object) -> EagerCase:
    """A case of this model under FSDP2 over 8 ranks, all lengths divided."""
    return EagerCase(model=LLAMA, **{"zero": 3, "world": 8, "seq": 64} | keys)


def test_a_group_is_kept_in_fp32_gathered_in_bf16_and_reduced_in_fp32() -> None:
    groups = groups_memory(case())
    assert len(groups.blocks) == 3
    for group, count in ((groups.blocks[0], BLOCK), (groups.ends, ENDS)):
        assert group.shard == group.reduced == 4 * count / 8
        assert group.whole == group.gathered == 2 * count
        assert group.copy_in == 2 * count / 8
        assert group.reduce == 4 * count


def test_one_type_for_all_needs_no_copy_before_the_gather() -> None:
    groups = groups_memory(case(mp=False))
    assert groups.ends.copy_in == 0
    assert groups.ends.reduce == groups.ends.gathered == 2 * ENDS


def test_tensor_parallel_ranks_gather_their_part() -> None:
    whole, half = groups_memory(case()), groups_memory(case(tp=2, world=16))
    norms = 2 * 2 * 1024
    assert half.blocks[0].whole - norms == (whole.blocks[0].whole - norms) / 2


def test_frozen_weights_are_gathered_but_not_reduced() -> None:
    groups = groups_memory(case(lora={"r": 8}))
    assert groups.ends.reduce == 0
    assert groups.ends.whole == 2 * ENDS
    assert 0 < groups.blocks[0].reduce < groups.blocks[0].whole


def test_groups_account_for_what_the_replay_shards() -> None:
    groups = groups_memory(case())
    stored = sum(group.shard for group in (*groups.blocks, groups.ends))
    replayed = replay(case()).phases["step"].by_category["params"]
    assert stored == pytest.approx(replayed, rel=1e-3)


def test_a_case_that_does_not_shard_has_no_groups() -> None:
    with pytest.raises(Unsupported, match="zero 0"):
        groups_memory(case(zero=0, tp=2))
