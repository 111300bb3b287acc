"""Configs of unknown architectures: nearest family, fields lost, towers left out."""

from typing import Any

import pytest

from planner.models import ModelConfigError, from_config

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "vocab_size": 100,
}


def refusal(config: dict[str, Any]) -> str:
    """Message with which a config is refused."""
    with pytest.raises(ModelConfigError) as caught:
        from_config(config, source="here")
    return str(caught.value)


ALIEN = LLAMA | {
    "architectures": ["AlienForCausalLM"],
    "model_type": "alien",
    "laser_rank": 32,
    "memory_slots": 0,
    "use_cache": True,
}


def test_an_unknown_architecture_names_the_family_that_its_fields_are_of() -> None:
    """And the fields that it would lose, but those switched off or without work."""
    message = refusal(ALIEN)
    assert "by its fields it is like llama" in message
    assert "understands all but laser_rank: --as llama plans it so" in message


def test_a_family_stands_in_where_the_user_says_so_and_only_there() -> None:
    model = from_config(ALIEN | {"planned_as": "llama"}, source="here")
    assert model.runs == from_config(LLAMA, source="here").runs
    (sentence,) = model.left_out
    assert sentence.endswith("not understood and left out: laser_rank")
    assert "families: llama" in refusal(ALIEN | {"planned_as": "lama"})
    assert from_config(LLAMA, source="here").left_out == ()


def test_towers_beside_the_text_model_are_said_to_be_left_out() -> None:
    whole = {"text_config": LLAMA, "vision_config": {"depth": 27}, "audio_config": None}
    (sentence,) = from_config(whole, source="here").left_out
    assert "weights and work of vision_config are left out" in sentence
