"""The Llama-shaped decoder: rotary attention, gated feed-forward, blocks, head.

Locals live as long as in the modules of transformers: a name that stays bound until the
end of a forward keeps its tensor until then.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.eager.checkpoint import checkpoint
from planner.eager.families import Architecture
from planner.eager.modules import Embedding, Linear, Module, RMSNorm
from planner.eager.ops.attention import by_hand, sdpa
from planner.eager.ops.pointwise import add, gelu, mul, relu, scale, silu
from planner.eager.ops.views import cat, narrow, reshape, transpose
from planner.eager.storage import F32, Tensor
from planner.eager.tape import Tape

Angles = tuple[Tensor, Tensor]
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
ACTIVATIONS = {
    "silu": silu,
    "gelu": gelu,
    "gelu_pytorch_tanh": gelu,
    "gelu_fast": gelu,
    "relu": relu,
}


def rotary_angles(like: Tensor, positions: Tensor, d: int) -> Angles:
    """Cosines and sines of the positions, outside the graph.

    Args:
        like: A tensor of the type they get. [tensor]
        positions: [1, s]. [tensor]
        d: Head length. [elements]

    Returns:
        cos and sin as [1, 1, s, d]. [tensors]
    """
    tape, s = like.tape, positions.shape[-1]
    halves = tape.new((1, s, 1), F32)
    halves = tape.new((1, s, d // 2), F32)
    angles = tape.new((1, s, d), F32)
    cos = tape.pointwise(angles)
    cos = tape.pointwise(cos)
    sin = tape.pointwise(angles)
    sin = tape.pointwise(sin)
    if like.dtype != F32:
        cos, sin = (
            tape.pointwise(cos, dtype=like.dtype),
            tape.pointwise(sin, dtype=like.dtype),
        )
    del halves
    return cos.alias((1, 1, s, d)), sin.alias((1, 1, s, d))


def rotate_half(x: Tensor) -> Tensor:
    """The second half negated, then the first.

    Args:
        x: Heads [..., d]. [tensor]

    Returns:
        The rotated heads. [tensor]
    """
    half = x.shape[-1] // 2
    first = narrow(x, -1, half)
    second = narrow(x, -1, half)
    return cat((scale(second), first), -1)


def rotary(q: Tensor, k: Tensor, angles: Angles) -> tuple[Tensor, Tensor]:
    """Rotary position embedding of queries and keys.

    Args:
        q: [b, a, s, d]. [tensor]
        k: [b, g, s, d]. [tensor]
        angles: cos and sin. [tensors]

    Returns:
        Both, rotated. [tensors]
    """
    cos, sin = angles
    turned = add(mul(q, cos), mul(rotate_half(q), sin))
    return turned, add(mul(k, cos), mul(rotate_half(k), sin))


class Setting:
    """What every block of a model shares: how it attends and where it computes."""

    def __init__(
        self,
        tape: Tape,
        arch: Architecture,
        dtype: str,
        attention: str,
        *,
        padding: bool = False,
    ) -> None:
        self.tape, self.arch, self.dtype = tape, arch, dtype
        self.attention, self.padding = attention, padding


class Attention(Module):
    """Rotary grouped-query attention with separate projections."""

    def __init__(self, setting: Setting) -> None:
        tape, arch, dtype = setting.tape, setting.arch, setting.dtype
        traits, fields = arch.traits, arch.fields
        bias = traits.qkv_bias or bool(fields.get("attention_bias", False))
        out_bias = bool(fields.get("attention_bias", False))
        self.setting, self.d = setting, arch.d
        self.q_proj = Linear(tape, arch.h, arch.a * arch.d, dtype, bias=bias)
        self.k_proj = Linear(tape, arch.h, arch.g * arch.d, dtype, bias=bias)
        self.v_proj = Linear(tape, arch.h, arch.g * arch.d, dtype, bias=bias)
        self.o_proj = Linear(tape, arch.a * arch.d, arch.h, dtype, bias=out_bias)
        if traits.qk_norm == "head":
            self.q_norm = RMSNorm(tape, arch.d, dtype)
            self.k_norm = RMSNorm(tape, arch.d, dtype)

    def forward(self, x: Tensor, angles: Angles, mask: Tensor | None) -> Tensor:
        """Attend over the sequence.

        Args:
            x: [b, s, h]. [tensor]
            angles: cos and sin. [tensors]
            mask: Added to the scores, or for padding. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        q = self._heads(self.q_proj(x), "q_norm")
        k = self._heads(self.k_proj(x), "k_norm")
        v = self._heads(self.v_proj(x), None)
        q, k = rotary(q, k, angles)
        out = attend(self.setting, q, k, v, mask)
        out = reshape(out, *x.shape[:2], out.shape[2] * out.shape[3])
        return self.o_proj(out)  # type: ignore[no-any-return]

    def _heads(self, x: Tensor, norm: str | None) -> Tensor:
        x = reshape(x, *x.shape[:2], x.shape[2] // self.d, self.d)
        if norm is not None and hasattr(self, norm):
            x = getattr(self, norm)(x)
        return transpose(x, 1, 2)


def attend(
    setting: Setting, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
) -> Tensor:
    """Attention by the implementation the model was loaded with.

    Args:
        setting: What the model shares. [setting]
        q: [b, a, s, d]. [tensor]
        k: [b, g, s, d]. [tensor]
        v: [b, g, s, d]. [tensor]
        mask: Added to the scores, or for padding. [tensor]

    Returns:
        [b, s, a, d]. [tensor]
    """
    fields = setting.arch.fields
    drop = bool(fields.get("attention_dropout", 0.0))
    if setting.attention == "sdpa":
        return sdpa(q, k, v, mask, drop=drop)
    cap = fields.get("attn_logit_softcapping") is not None
    return by_hand(q, k, v, mask, drop=drop, softcap=cap)


class GatedMlp(Module):
    """down(act(gate(x)) * up(x))."""

    def __init__(self, setting: Setting, f: int) -> None:
        tape, arch, dtype = setting.tape, setting.arch, setting.dtype
        bias = bool(arch.fields.get("mlp_bias", False))
        self.act = ACTIVATIONS[arch.activation]
        self.gate_proj = Linear(tape, arch.h, f, dtype, bias=bias)
        self.up_proj = Linear(tape, arch.h, f, dtype, bias=bias)
        self.down_proj = Linear(tape, f, arch.h, dtype, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer.

        Args:
            x: [b, s, h]. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        return self.down_proj(  # type: ignore[no-any-return]
            mul(self.act(self.gate_proj(x)), self.up_proj(x))
        )


class Block(Module):
    """Attention and feed-forward, each normalised before and added to the stream."""

    def __init__(self, setting: Setting) -> None:
        tape, arch, dtype = setting.tape, setting.arch, setting.dtype
        self.self_attn: Module = Attention(setting)
        self.mlp: Module = GatedMlp(setting, arch.f)
        self.input_layernorm: Module = RMSNorm(tape, arch.h, dtype)
        self.post_attention_layernorm: Module = RMSNorm(tape, arch.h, dtype)

    def forward(self, x: Tensor, angles: Angles, mask: Tensor | None) -> Tensor:
        """Apply the block.

        Args:
            x: [b, s, h]. [tensor]
            angles: cos and sin. [tensors]
            mask: Added to the scores, or for padding. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        residual = x
        x = self.input_layernorm(x)
        x = self.self_attn(x, angles, mask)
        x = add(residual, x)
        residual = x
        x = self.post_attention_layernorm(x)
        x = self.mlp(x)
        return add(residual, x)


class Decoder(Module):
    """Embedding, blocks and final norm."""

    def __init__(self, setting: Setting, layers: int) -> None:
        tape, arch, dtype = setting.tape, setting.arch, setting.dtype
        self.setting = setting
        self.recompute = "none"
        self.embed_tokens: Module | None = Embedding(
            tape, arch.vocabulary, arch.h, dtype
        )
        self.layers: list[Module] = [Block(setting) for _ in range(layers)]
        self.norm: Module = RMSNorm(tape, arch.h, dtype)
        self.buffers = [
            tape.new((arch.d // 2,), F32, category="buffers") for _ in range(2)
        ]

    def forward(self, ids: Tensor, positions: Tensor | None = None) -> Tensor:
        """From token ids (or a stage's input) to the normalised stream.

        Args:
            ids: [b, s], or [b, s, h] without an embedding. [tensor]
            positions: [1, s]; made here when left out. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        embedded = ids if self.embed_tokens is None else self.embed_tokens(ids)
        if positions is None:
            positions = made_positions(embedded)
        mask = None
        x = embedded
        angles = rotary_angles(x, positions, self.setting.arch.d)
        for layer in self.layers:
            x = self.run_layer(layer, x, angles, mask)
        return self.norm(x)  # type: ignore[no-any-return]

    def run_layer(
        self, layer: Module, x: Tensor, angles: Angles, mask: Tensor | None
    ) -> Tensor:
        """One block, recomputed in the backward pass where asked.

        Args:
            layer: The block. [module]
            x: [b, s, h]. [tensor]
            angles: cos and sin. [tensors]
            mask: Added to the scores, or for padding. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        if self.recompute == "none":
            return layer(x, angles, mask)  # type: ignore[no-any-return]
        return checkpoint(
            lambda y: layer.forward(y, angles, mask),
            x,
            selective=self.recompute == "selective",
        )


def made_positions(embedded: Tensor) -> Tensor:
    """Positions 0 to s-1, made in two steps.

    Args:
        embedded: [b, s, h]. [tensor]

    Returns:
        [1, s]. [tensor]
    """
    tape, s = embedded.tape, embedded.shape[1]
    counted = tape.new((s,), "i64")
    return tape.pointwise(counted).alias((1, s))


class CausalModel(Module):
    """A decoder with its language-model head."""

    def __init__(self, model: Decoder, head: Module) -> None:
        self.model, self.lm_head = model, head
