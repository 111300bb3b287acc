"""Tensor parallelism by its own arithmetic: what a rank keeps a token and a layer."""

from typing import Any

import pytest

from planner.eager import EagerCase, Replay, Unsupported, replay

LLAMA_8B: dict[str, Any] = {
    "family": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
}
SEQ = 1024
"""Tokens of a case. [tokens]"""


def told(layers: int, model: dict[str, Any] = LLAMA_8B, **keys: Any) -> Replay:
    """A replay of a few layers of Llama-3-8B's shape."""
    shape = model | {"num_hidden_layers": layers}
    return replay(EagerCase(model=shape, **{"seq": SEQ} | keys))


def kept_a_token(**keys: Any) -> float:
    """Bytes that one more layer keeps for the backward pass, a token."""
    two, three = (told(n, **keys).after["forward"]["activations"] for n in (2, 3))
    return (three - two) / SEQ


def closed_form(t: int, *, sp: bool) -> float:
    """Saved bytes a token and layer; h, a, d, g, f of the model."""
    h, ad, gd, a, f = 4096, 4096, 1024, 32, 14336
    split = 4 * ad + 4 * gd + 4 * a + 8 * f
    if sp:
        return (16 * h + 8 + split) / t + 4 * h * (1 - 1 / t)
    return 16 * h + 8 + split / t


@pytest.mark.parametrize(("t", "bytes_"), [(2, 108_612), (4, 62_498), (8, 39_441)])
def test_sequence_parallel_keeps_gathered_inputs_whole(t: int, bytes_: int) -> None:
    """All of a layer's bytes over t, and what qkv and gate/up read on every rank."""
    kept = kept_a_token(tp=t)
    assert kept == pytest.approx(closed_form(t, sp=True), abs=2)
    assert kept == pytest.approx(bytes_, abs=2)


@pytest.mark.parametrize(("t", "bytes_"), [(2, 133_192), (4, 99_368), (8, 82_456)])
def test_without_it_the_norms_stay_whole(t: int, bytes_: int) -> None:
    kept = kept_a_token(tp=t, sp=False)
    assert kept == pytest.approx(closed_form(t, sp=False), abs=2)
    assert kept == pytest.approx(bytes_, abs=2)


def test_recomputation_keeps_a_ranks_tokens_of_the_stream() -> None:
    assert kept_a_token(tp=8, recompute="full") == 2 * 4096 / 8


def test_the_tables_gradient_is_whole_on_every_rank() -> None:
    """[V, h] in bf16, where a shard would have V/t rows."""
    half = told(2, tp=4).after["backward"]["grads"]
    shards = told(2, tp=4).phases["step"].by_category["params"]
    assert half - shards == 2 * 32000 * 4096 * (1 - 1 / 4)


def test_the_loss_needs_16_bytes_a_token_and_logit_of_a_rank() -> None:
    """Log probabilities, and zeros, exponentials and their sum at once."""
    few, many = (
        told(1, LLAMA_8B | {"vocab_size": v}, tp=4, seq=4096, optimizer="none")
        for v in (64000, 128000)
    )
    states = 2 * 2 * (128000 - 64000) * 4096 / 4
    logits = 16 * 4096 * (128000 - 64000) / 4
    grown = many.phases["backward"].total - few.phases["backward"].total
    assert grown == states + logits


def test_a_fused_step_cuts_the_whole_gradient_first() -> None:
    """One copy of the table's shard, beside its gradient on every rank."""
    run = told(2, tp=4)
    states = run.phases["step"].by_category
    cut = 2 * 32000 * 4096 / 4
    norms = 5 * 2 * 4096
    moments = 2 * states["params"]
    assert states["optimizer"] == pytest.approx(moments + cut + norms, abs=64 * 512)


@pytest.mark.parametrize(
    ("model", "keys", "words"),
    [
        ({"num_key_value_heads": 2}, {"tp": 4}, "2 key-value heads"),
        ({}, {"tp": 2, "seq": 1023}, "1023 tokens"),
        ({}, {"tp": 2, "attention": "eager"}, "eager attention"),
        ({}, {"tp": 2, "loss": "chunked"}, "chunked loss"),
        ({}, {"tp": 2, "lora": {"r": 8}}, "adapters"),
        ({"family": "phi3"}, {"tp": 2}, "phi3 has no q_proj"),
        ({"family": "olmo2"}, {"tp": 2}, "olmo2 normalises queries"),
        ({"family": "stablelm"}, {"tp": 2}, "stablelm views queries"),
    ],
)
def test_what_the_plan_cannot_split_is_refused_with_the_reason(
    model: dict[str, Any], keys: dict[str, Any], words: str
) -> None:
    with pytest.raises(Unsupported, match=words):
        told(2, LLAMA_8B | model, **keys)


def test_odd_vocabularies_give_the_first_rank_the_larger_part() -> None:
    odd, even = (
        told(1, LLAMA_8B | {"vocab_size": v}, tp=2).phases["step"].by_category
        for v in (32001, 32002)
    )
    assert odd["params"] == even["params"]
