"""Blocks count the same thing the same way: formulas, GEMMs, classes, saved tensors."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.models import (
    Attention,
    LatentAttention,
    LayerKind,
    Mlp,
    Moe,
    Norm,
    SavedTensor,
    preset,
)

size = st.integers(min_value=1, max_value=4096)
flag = st.booleans()
window = st.none() | size
norm: st.SearchStrategy[Norm] = st.sampled_from(
    ["rmsnorm", "layernorm", "layernorm-no-bias", "layernorm-plain"]
)
NU = {"rmsnorm": 1, "layernorm": 2, "layernorm-no-bias": 1, "layernorm-plain": 0}
"""Vectors of a norm: weight and bias, one of them, or none."""
attentions = st.builds(
    Attention,
    size,
    size,
    size,
    size,
    flag,
    flag,
    flag,
    window,
    wide_qk_norm=flag,
    sinks=flag,
    chunked=flag,
) | st.builds(LatentAttention, size, size, st.none() | size, size, size, size, size)
mlps = st.builds(Mlp, size, size, flag, flag)
moes = st.builds(Moe, size, size, size, size, st.just(0) | size, flag, flag, flag, flag)

BYTES = {"compute": 2, "fp32": 4}


@st.composite
def layers(draw: st.DrawFn) -> LayerKind:
    """Any layer whose halves have one width."""
    attention = draw(attentions)
    h = attention.hidden
    wide = st.just(h)
    ffn = draw(
        st.builds(Mlp, wide, size, flag, flag)
        | st.builds(
            Moe, wide, size, size, size, st.just(0) | size, flag, flag, flag, flag
        )
    )
    norms = draw(st.sampled_from([1, 2, 4]))
    return LayerKind("any", attention, ffn, draw(norm), norms, draw(flag))


def _attention_vectors(block: Attention) -> int:
    """Biases (a + 2g) d and h, QK-norm 2 d or (a + g) d, sinks a."""
    a, g, d = block.heads, block.kv_heads, block.head_dim
    bias = block.qkv_bias * (a + 2 * g) * d + block.out_bias * block.hidden
    norms = block.qk_norm * 2 * d + block.wide_qk_norm * (a + g) * d
    return bias + norms + block.sinks * a


@given(attentions.filter(lambda block: isinstance(block, Attention)))
def test_grouped_query_parameters(block: Attention) -> None:
    """P = h a d + 2 h g d + a d h, biases, QK-norm and sinks."""
    h, a, g, d = block.hidden, block.heads, block.kv_heads, block.head_dim
    matrices = h * a * d + 2 * h * g * d + a * d * h
    assert block.parameters == matrices + _attention_vectors(block)


@given(st.builds(LatentAttention, size, size, st.none() | size, size, size, size, size))
def test_latent_attention_parameters(block: LatentAttention) -> None:
    """P_attn(MLA) with and without a query latent; only its ends are replicated."""
    h, a, r_q, r_kv = block.hidden, block.heads, block.q_rank, block.kv_rank
    d_q, d_v, d_r = block.nope_dim + block.rope_dim, block.value_dim, block.rope_dim
    query = h * a * d_q if r_q is None else r_q * (h + a * d_q) + r_q
    up = r_kv * a * (block.nope_dim + d_v)
    assert block.parameters == query + h * (r_kv + d_r) + up + r_kv + a * d_v * h
    latent = 0 if r_q is None else h * r_q + r_q
    assert block.replicated_parameters == latent + h * (r_kv + d_r) + r_kv


@given(mlps)
def test_mlp_parameters(block: Mlp) -> None:
    """P = n_m h f, biases f (n_m - 1) + h, of which only h is replicated."""
    h, f, n_m = block.hidden, block.ffn, 3 if block.gated else 2
    assert block.parameters == n_m * h * f + block.bias * (f * (n_m - 1) + h)
    assert block.replicated_parameters == block.bias * h


@given(moes)
def test_moe_parameters(block: Moe) -> None:
    """P = E (n_m h f_e + biases) + n_m h f_s + E h + gate; a token meets k of E."""
    h, n_m = block.hidden, 3 if block.gated else 2
    rest = n_m * h * block.shared_ffn + block.experts * (h + block.router_bias)
    rest += block.shared_gate * h
    expert = n_m * h * block.ffn + block.bias * ((n_m - 1) * block.ffn + h)
    assert block.parameters == block.experts * expert + rest
    assert block.active_parameters == block.top_k * expert + rest


@given(layers())
def test_classes_sum_to_a_layer_and_layers_to_their_halves(layer: LayerKind) -> None:
    sharded, replicated = layer.sharded_parameters, layer.replicated_parameters
    total = sharded + replicated + layer.expert_parameters
    halves = layer.attention.parameters + layer.ffn.parameters
    vectors = layer.norms * layer.hidden * NU[layer.norm]
    assert total == layer.parameters == halves + vectors


@given(layers())
def test_gemms_hold_every_matrix_of_the_layer(layer: LayerKind) -> None:
    """Active parameters less the GEMMs' weights are vectors: norms and biases."""
    vectors = layer.active_parameters - layer.matmul_parameters
    attention, ffn = layer.attention, layer.ffn
    if isinstance(attention, Attention):
        inside = _attention_vectors(attention)
    else:
        inside = (attention.q_rank or 0) + attention.kv_rank
    if isinstance(ffn, Moe):
        inside += ffn.router_bias * ffn.experts
        biases = ffn.expert.inner_width + layer.hidden
        inside += ffn.bias * ffn.top_k * biases
    else:
        inside += ffn.bias * (ffn.inner_width + layer.hidden)
    assert vectors == inside + layer.norm_parameters


@given(layers())
def test_gemms_and_saved_tensors_have_names_of_their_own(layer: LayerKind) -> None:
    gemms = [gemm.name for gemm in layer.gemms()]
    saved = [tensor.name for tensor in layer.saved()]
    assert len(set(gemms)) == len(gemms)
    assert len(set(saved)) == len(saved)


@given(layers())
def test_gemms_read_and_write_the_residual_stream(layer: LayerKind) -> None:
    """Each half's row-split GEMMs end at the model width."""
    rows = [g for g in layer.gemms() if g.split in {"row", "expert-row"}]
    assert {g.region for g in rows} == {"attention", "ffn"}
    assert {g.outputs for g in rows} == {layer.hidden}


@given(st.integers(min_value=2, max_value=1 << 20), window)
def test_attended_keys_are_the_mean_of_the_mask(
    seq_len: int, window: int | None
) -> None:
    """Causal is half of s; a window w gives w (1 - w / 2s), continuous at w = s."""
    attention = Attention(64, 1, 1, 64, window=window)
    causal = attention.attended(seq_len, causal=True)
    assert attention.attended(seq_len, causal=False) == seq_len
    assert causal <= seq_len / 2
    if window is not None and window < seq_len:
        exact = sum(min(i, window) for i in range(min(seq_len, window)))
        exact += window * (seq_len - window)
        assert causal == pytest.approx((exact + window / 2) / seq_len)
    else:
        assert causal == seq_len / 2


@given(st.integers(1, 64), st.integers(1, 64))
def test_chunks_attend_to_half_of_themselves(chunk: int, chunks: int) -> None:
    """The mean over whole chunks of c is c / 2, short of the half key."""
    attention = Attention(64, 1, 1, 64, window=chunk, chunked=True)
    seq_len = chunk * chunks
    exact = sum(i % chunk + 1 for i in range(seq_len)) / seq_len
    assert attention.attended(seq_len, causal=True) == pytest.approx(exact - 0.5)


def test_core_flops() -> None:
    """4 a d s for grouped queries, whatever g; 2 a (d_n + d_r + d_v) s for MLA."""
    assert Attention(8, 4, 2, 16).core_flops(10) == 4 * 4 * 16 * 10
    latent = LatentAttention(8, 4, None, 3, nope_dim=5, rope_dim=2, value_dim=6)
    assert latent.core_flops(10) == 2 * 4 * (5 + 2 + 6) * 10


def test_query_key_norms_are_replicated_and_biases_follow_their_matrix() -> None:
    """QK-norm adds 2 d; the QKV bias is sharded, the output bias is not."""
    plain = Attention(8, 4, 2, 16)
    full = Attention(8, 4, 2, 16, qkv_bias=True, out_bias=True, qk_norm=True)
    assert full.sharded_parameters - plain.sharded_parameters == (4 + 2 * 2) * 16
    assert full.replicated_parameters - plain.replicated_parameters == 8 + 2 * 16


def test_an_absent_half_holds_and_computes_nothing() -> None:
    """Heads of width 0, or an inner width of 0: no weights, GEMMs, saved tensors."""
    attention, mlp = Attention(8, 4, 2, 0), Mlp(8, 0, gated=True)
    for block in (attention, mlp):
        assert (block.parameters, block.gemms(), block.saved()) == (0, (), ())
    assert attention.core_flops(100) == 0


def _widths(layer: LayerKind) -> dict[str, int]:
    norms = ("norm_input", "norm_output")
    return {t.name: t.width for t in layer.saved() if t.name.endswith(norms)}


def test_a_layer_keeps_the_inputs_of_its_norms() -> None:
    """Two norms: 4 h. Four: 6 h. Parallel halves: one input, an output per norm."""
    halves = Attention(8, 4, 2, 2), Mlp(8, 16, gated=True)
    plain = LayerKind("plain", *halves, "rmsnorm")
    assert list(_widths(plain).values()) == [8, 8, 8, 8]
    assert sum(_widths(replace(plain, norms=4)).values()) == 6 * 8
    shared = replace(plain, norms=1, parallel=True)
    assert list(_widths(shared)) == ["attention_norm_input", "attention_norm_output"]
    assert sum(_widths(replace(plain, parallel=True)).values()) == 3 * 8


def test_a_layer_of_one_half_keeps_its_input_and_one_norm_output() -> None:
    """The input has the name under which full recompute keeps it."""
    attention, mlp = Attention(8, 4, 2, 2), Mlp(8, 16, gated=True)
    pruned = LayerKind("a", replace(attention, head_dim=0), mlp, "rmsnorm", norms=1)
    assert list(_widths(pruned)) == ["attention_norm_input", "ffn_norm_output"]
    pruned = LayerKind("b", attention, replace(mlp, ffn=0), "rmsnorm", norms=1)
    assert list(_widths(pruned)) == ["attention_norm_input", "attention_norm_output"]


def _bytes(saved: tuple[SavedTensor, ...]) -> int:
    return sum(tensor.width * BYTES[tensor.precision] for tensor in saved)


def test_llama_8b_saves_139392_bytes_a_token() -> None:
    """8h + 2(a + 2g)d + 2ad + 4a + 2 n_m f = 34.0 h with flash attention in bf16."""
    assert _bytes(preset("llama-3-8b").kinds[0].saved()) == 139_392


def test_gpt_saves_32_h_and_the_logsumexp() -> None:
    """Korthikanti's 34 h, less 2 h of dropout masks, plus 4 a of flash attention."""
    model = preset("gpt3-175b")
    saved = _bytes(model.kinds[0].saved())
    assert saved == 32 * model.hidden + 4 * 96


def test_latent_attention_saves_latents_and_decompressed_heads() -> None:
    """2 (r_q + r_kv + d_r) + 2 a (2 (d_n + d_r) + 2 d_v) + 4 a."""
    saved = preset("deepseek-v3").kinds[0].attention.saved()
    heads = 2 * 128 * (2 * (128 + 64) + 2 * 128)
    assert _bytes(saved) == 2 * (1536 + 512 + 64) + heads + 4 * 128


def test_moe_saves_k_copies_and_the_router_in_fp32() -> None:
    """8E + k (2h + 2 (n_m - 1) f_e + 2 f_e) + 2 n_m f_s."""
    saved = Moe(64, experts=8, top_k=2, ffn=32, shared_ffn=48).saved()
    routed = 2 * (2 * 64 + 2 * 2 * 32 + 2 * 32)
    assert _bytes(saved) == 8 * 8 + routed + 2 * 3 * 48
