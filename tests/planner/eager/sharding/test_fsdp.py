"""FSDP2 by its own arithmetic: shards, what is gathered, what is reduced."""

from typing import Any

import pytest

from planner.eager import EagerCase, Replay, Unsupported, replay

LLAMA: dict[str, Any] = {
    "family": "llama",
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "vocab_size": 32000,
}
BLOCK = 2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 5632 + 2 * 2048
"""Parameters of one of its blocks. [parameters]"""


def told(layers: int = 4, **keys: Any) -> Replay:
    """A replay of this model under FSDP2."""
    model = LLAMA | {"num_hidden_layers": layers}
    options = {"seq": 256, "zero": 3, "world": 4} | keys
    return replay(EagerCase(model=model, **options))


@pytest.mark.parametrize("world", [2, 4, 8, 64])
def test_a_step_holds_16_bytes_a_parameter_over_all_ranks(world: int) -> None:
    """fp32 shards and gradients and two moments: 4 * 4 bytes where ranks divide."""
    run = told(world=world)
    expected = 16 * run.parameters / world
    assert run.phases["step"].total == pytest.approx(expected, rel=1e-3)


def test_shards_are_padded_to_whole_rows() -> None:
    """Over 1,000 ranks a norm of 2,048 takes 3 elements, a matrix 3 rows of 2,048."""
    one, two = (told(n, world=1000).phases["step"].by_category for n in (1, 2))
    rows = 3 * 2048 * 2 + 2048 + 2048
    rows += 6 * 2048 * 2 + 3 * 5632
    small = 512 * 2
    assert two["params"] - one["params"] == 4 * rows + small


def test_zero_2_keeps_two_bytes_a_parameter_of_the_blocks() -> None:
    """After the forward pass; the last block's buffers are gone in both."""
    kept = told(zero=2).after["forward"]["unsharded_params"]
    freed = told(zero=3).after["forward"]["unsharded_params"]
    everything = 2 * (4 * BLOCK + 2 * 32000 * 2048 + 2048)
    assert kept == pytest.approx(everything, abs=4096)
    assert freed == 0


def test_pure_bf16_shards_take_half() -> None:
    mixed, pure = told(), told(mp=False)
    halved = pure.phases["step"].by_category["params"]
    assert mixed.phases["step"].by_category["params"] == 2 * halved


def test_gradients_of_shards_stay_over_micro_steps() -> None:
    """The second backward pass starts with fp32 gradients of every shard."""
    run = told(ga=2)
    assert run.after["forward1"]["grads"] == pytest.approx(
        4 * run.parameters / 4, rel=1e-3
    )


def test_reduction_takes_the_gradients_of_a_group_in_fp32() -> None:
    """The ends are the largest group and are reduced last."""
    ends = 2 * 32000 * 2048 + 2048
    held = told(1, seq=16, world=64).phases["backward"].by_category
    assert held["reduce_scatter"] == 4 * ends


def test_nothing_but_states_stays_after_a_step() -> None:
    left = told().after["step"]
    others = {"all_gather", "reduce_scatter", "unsharded_params", "activations"}
    assert all(left.get(category, 0) == 0 for category in others)


def test_more_sharding_can_take_more_memory() -> None:
    """Two blocks: ZeRO-3 gathers ahead what ZeRO-2 never let go."""
    two, three = (told(2, zero=zero, world=2, mp=False).peak.total for zero in (2, 3))
    assert three > two


def test_more_sharding_saves_memory_in_a_deep_model() -> None:
    two, three = (told(16, zero=zero, world=8).peak.total for zero in (2, 3))
    assert three < 0.75 * two


def test_a_frozen_weight_is_sharded_and_has_no_gradient() -> None:
    run = told(lora={"r": 8})
    adapters = 4 * run.trainable / 4
    assert run.after["backward"]["grads"] == pytest.approx(adapters, rel=0.02)


def test_a_loss_past_the_root_is_refused() -> None:
    with pytest.raises(Unsupported, match="chunked loss"):
        told(loss="chunked")


def test_a_fused_loss_under_the_root_is_replayed() -> None:
    assert told(loss="liger").peak.total < told(seq=4096).peak.total
