"""What one block keeps for the backward pass, against closed forms per token.

h is the stream, f the feed-forward, a and g the heads of queries and keys, d their
length; the sums follow from the tensors that each derivative in PyTorch's
tools/autograd/derivatives.yaml reads.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.eager import EagerCase, Unsupported, block_memory, ends_memory, replay
from planner.frameworks.profiles import read_options

LLAMA = {
    "family": "llama",
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "vocab_size": 8000,
}
H, F, A, G, D, S = 1024, 3072, 16, 4, 64, 512
TABLE = 16 * H + 8 + 4 * A * D + 4 * G * D + 4 * A + 8 * F
"""Llama in bf16 with flash attention: norms 2 (8h + 4), q k v o, the gated layer."""
RNG = 1024
"""Two random states of the flash kernel, 512 B each."""


def saved(**changes: Any) -> float:
    """Bytes per token that a block keeps, without the random state."""
    case = EagerCase(**{"model": LLAMA, "seq": S, **changes})
    flash = case.attention == "sdpa" and case.recompute == "none"
    return (block_memory(case).saved - (RNG if flash else 0)) / S


def test_a_llama_block_keeps_the_sum_of_its_tensors() -> None:
    assert saved() == TABLE


def test_full_recomputation_keeps_the_stream_alone() -> None:
    assert saved(recompute="full") == 2 * H


def test_full_recomputation_under_autocast_keeps_it_in_fp32() -> None:
    assert saved(recompute="full", precision="amp_bf16") == 4 * H


def test_selective_recomputation_keeps_products_and_attention() -> None:
    kept = 2 * H + 2 * (A * D + 2 * G * D) + 2 * A * D + 4 * A + 2 * H + 4 * F + 2 * H
    assert saved(recompute="selective") - RNG / S == kept


def test_autocast_keeps_fp32_norms_and_a_cast_per_consumer() -> None:
    weights = 2 * (H * (A * D) * 2 + 2 * H * G * D + 3 * H * F)
    rest = 4 * A * D + 4 * G * D + 4 * A + 8 * F
    assert saved(precision="amp_bf16") - weights / S == 26 * H + 8 + rest


def test_eager_attention_keeps_scores_of_every_pair() -> None:
    kept = TABLE - 4 * A - 4 * G * D + 4 * A * D + 6 * A * S
    assert saved(attention="eager") == kept


def test_qwen3_adds_a_norm_per_head() -> None:
    model = {**LLAMA, "family": "qwen3", "head_dim": D}
    assert saved(model=model) == TABLE + (6 * D + 4) * (A + G)


def test_gpt2_keeps_fifty_six_bytes_per_element_of_the_stream() -> None:
    model = {
        "family": "gpt2",
        "n_embd": H,
        "n_layer": 4,
        "n_head": A,
        "vocab_size": 8000,
        "attn_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
    }
    assert saved(model=model) == 56 * H + 4 * A + 16


def test_lora_saves_the_inputs_that_frozen_weights_do_not_read() -> None:
    kept = TABLE - 2 * 2 * H - 2 * H - 2 * F + 8 * 16
    assert saved(lora={"r": 16}) == kept


def test_lora_in_fp32_keeps_a_cast_input_per_adapter() -> None:
    casts = 3 * 4 * H + 4 * A * D
    low = 4 * 4 * 16
    frozen = TABLE - 3 * 2 * H - 2 * F - 2 * H - 2 * A * D
    shared = 2 * A * D
    assert saved(lora={"r": 16, "fp32": True}) == frozen + casts + low + shared


def test_padding_repeats_keys_and_values_and_keeps_a_bias() -> None:
    bias = 2 * S
    kept = TABLE - 4 * G * D + 4 * A * D + bias
    assert saved(padding=True) == pytest.approx(kept, abs=4)


@pytest.mark.parametrize(("tp", "sp"), [(2, True), (4, True), (2, False), (4, False)])
def test_tensor_parallelism_divides_what_is_split(tp: int, *, sp: bool) -> None:
    split = 4 * A * D + 4 * G * D + 4 * A + 8 * F
    gathered = 4 * H * (1 - 1 / tp)
    kept = TABLE / tp + gathered if sp else 16 * H + 8 + split / tp
    assert saved(tp=tp, sp=sp) == pytest.approx(kept, abs=2)


def test_the_loss_holds_twelve_bytes_of_vocabulary_per_token() -> None:
    """Log-softmax and its gradient in fp32, and the gradient of the loss."""
    ends = ends_memory(EagerCase(model=LLAMA, seq=S))
    logits = 8000 * S
    in_backward = ends.saved + ends.head_transient
    stream = (6 * H + 4 + 2 * H) * S
    assert in_backward == pytest.approx(12 * logits + stream, rel=1e-3)


@pytest.mark.parametrize(
    ("loss", "forward", "backward"),
    [("chunked_logits", 2 + 4 + 4 / 8, 5), ("chunked_head", 4 + 6 / 8, 5)],
)
def test_a_loss_in_pieces_keeps_the_log_probabilities_of_all(
    loss: str, forward: float, backward: float
) -> None:
    """fp32 log-probabilities stay; the rest is of one piece, or 16-bit logits of all.

    The larger of both is what the formula takes of a logit.
    """
    narrow = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4}
    model = LLAMA | narrow | {"head_dim": 16, "vocab_size": 32768}
    case = EagerCase.model_validate({"model": model, "seq": 4096, "loss": loss})
    ends, logits = ends_memory(case), 32768 * 4096
    most = (ends.saved + ends.forward, ends.saved + ends.head_transient)
    assert most == pytest.approx((forward * logits, backward * logits), rel=0.01)
    words = read_options("accelerate")["loss"][loss].recipe
    assert words is not None
    assert words.logits_bytes == max(forward, backward)


def test_parts_compose_to_the_replay() -> None:
    """States, blocks and ends sum to what the whole replay finds, to the byte."""
    case = EagerCase(model=LLAMA, seq=S)
    told, block, ends = replay(case), block_memory(case), ends_memory(case)
    states = sum(
        told.after["forward"][name] for name in ("params", "buffers", "optimizer")
    )
    standing = states + told.after["forward"]["inputs"] + 4 * block.saved
    standing += ends.constants + ends.saved
    assert standing == sum(told.after["forward"].values())
    assert standing + ends.forward == told.phases["forward"].total
    assert standing + ends.head_transient == told.phases["backward"].total


def test_parts_of_a_recomputed_model_compose_where_the_first_block_peaks() -> None:
    model = {**LLAMA, "vocab_size": 512}
    case = EagerCase(model=model, seq=S, recompute="full")
    told, block, ends = replay(case), block_memory(case), ends_memory(case)
    names = ("params", "buffers", "optimizer", "inputs")
    states = sum(told.after["forward"][name] for name in names)
    gradients = 4 * block.gradients + ends.head_gradients
    kept = block.saved + ends.constants + block.transient
    assert states + gradients + kept == told.phases["backward"].total


@given(
    st.sampled_from(["seq", "mbs", "layers"]),
    st.sampled_from(["none", "full", "selective"]),
    st.sampled_from(["bf16", "amp_bf16", "fp32"]),
    st.integers(1, 4),
)
def test_more_of_anything_takes_no_less(
    field: str, recompute: str, precision: str, size: int
) -> None:
    base = {"seq": 96, "mbs": 1, "layers": 1}
    common = {"model": LLAMA, "recompute": recompute, "precision": precision}
    small = EagerCase(**{**common, **base, field: base[field] * size})
    large = EagerCase(**{**common, **base, field: base[field] * (size + 1)})
    assert replay(small).peak.total <= replay(large).peak.total


def test_recomputation_takes_no_more_where_activations_rule() -> None:
    peaks = [
        replay(EagerCase(model=LLAMA, seq=4096, recompute=how)).peak.total
        for how in ("full", "selective", "none")
    ]
    assert peaks == sorted(peaks)


def test_an_unknown_family_is_refused_by_name() -> None:
    with pytest.raises(Unsupported, match="t5"):
        replay(EagerCase(model={**LLAMA, "family": "t5"}))


def test_capped_scores_have_no_fused_kernel() -> None:
    model = {**LLAMA, "family": "gemma2", "head_dim": D}
    with pytest.raises(Unsupported, match="caps its scores"):
        replay(EagerCase(model=model, seq=64))
    assert replay(EagerCase(model=model, seq=64, attention="eager")).peak.total > 0


def test_experts_that_depend_on_the_routing_are_refused() -> None:
    model = {**LLAMA, "family": "mixtral"}
    with pytest.raises(Unsupported, match="which tokens go to which expert"):
        replay(EagerCase(model=model, seq=64, experts_implementation="eager"))
    with pytest.raises(Unsupported, match="bf16"):
        replay(EagerCase(model=model, seq=64, precision="fp32"))
    told = replay(EagerCase(model=model, seq=64, experts_implementation="grouped_mm"))
    assert told.peak.total > 0
