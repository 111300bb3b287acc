"""The Llama-shaped decoder: rotary attention, gated feed-forward, blocks, head.

Locals live as long as in the modules of transformers: a name that stays bound until the
end of a forward keeps its tensor until then.
"""

from __future__ import annotations

from planner.eager.checkpoint import checkpoint
from planner.eager.families import Architecture
from planner.eager.modules import Linear, Module, RMSNorm
from planner.eager.ops.attention import by_hand, sdpa
from planner.eager.ops.masks import causal_mask
from planner.eager.ops.pointwise import add, dropout, gelu, mul, relu, scale, silu
from planner.eager.ops.views import cat, narrow, reshape, transpose
from planner.eager.storage import F32, Tensor
from planner.eager.tape import Tape

Angles = tuple[Tensor, Tensor]
Attended = tuple[Tensor, Tensor | None]
Shared = tuple[Angles | None, list[Tensor | None], Tensor]
"""What all blocks read: angles, masks by turn, positions."""
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
    turned = rotated(q, angles)
    return turned, rotated(k, angles)


def rotated(x: Tensor, angles: Angles) -> Tensor:
    """Heads times cosines plus their rotated halves times sines.

    Args:
        x: [b, a, s, d]. [tensor]
        angles: cos and sin. [tensors]

    Returns:
        The rotated heads. [tensor]
    """
    return add(mul(x, angles[0]), mul(rotate_half(x), angles[1]))


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

    def masks(self, embedded: Tensor) -> list[Tensor | None]:
        """The causal masks that blocks read by turn, where the attention needs them.

        Args:
            embedded: [b, s, h]. [tensor]

        Returns:
            One, or two where windows alternate; [b, 1, s, s], additive for ``eager``,
            boolean for padded ``sdpa``. [tensors]
        """
        if self.attention == "sdpa" and not self.padding:
            return [None]
        additive = self.attention == "eager"
        turns = 2 if self.arch.traits.alternating_masks else 1
        return [causal_mask(embedded, additive=additive) for _ in range(turns)]


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

    def forward(self, x: Tensor, angles: Angles, mask: Tensor | None) -> Attended:
        """Attend over the sequence.

        Args:
            x: [b, s, h]. [tensor]
            angles: cos and sin. [tensors]
            mask: Added to the scores, or for padding. [tensor]

        Returns:
            [b, s, h], and the probabilities where they exist. [tensors]
        """
        q = self._heads(self.q_proj(x), "q_norm")
        k = self._heads(self.k_proj(x), "k_norm")
        v = self._heads(self.v_proj(x), None)
        q, k = rotary(q, k, angles)
        out, weights = attend(self.setting, q, k, v, mask)
        out = reshape(out, *x.shape[:2], out.shape[2] * out.shape[3])
        return self.o_proj(out), weights

    def _heads(self, x: Tensor, norm: str | None) -> Tensor:
        x = reshape(x, *x.shape[:2], x.shape[2] // self.d, self.d)
        if norm is not None and hasattr(self, norm):
            x = getattr(self, norm)(x)
        return transpose(x, 1, 2)


def attend(
    setting: Setting, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
) -> Attended:
    """Attention by the implementation the model was loaded with.

    Args:
        setting: What the model shares. [setting]
        q: [b, a, s, d]. [tensor]
        k: [b, g, s, d]. [tensor]
        v: [b, g, s, d]. [tensor]
        mask: Added to the scores, or for padding. [tensor]

    Returns:
        [b, s, a, d], and the probabilities where they exist. [tensors]
    """
    fields = setting.arch.fields
    drop = bool(fields.get("attention_dropout", 0.0))
    if setting.attention == "sdpa":
        return sdpa(q, k, v, mask, drop=drop), None
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

    def __init__(self, setting: Setting, attention: Module, mlp: Module) -> None:
        tape, arch, dtype = setting.tape, setting.arch, setting.dtype
        self.self_attn, self.mlp = attention, mlp
        self.drop = bool(arch.fields.get("resid_pdrop", 0.0))
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
        x, _ = self.self_attn(x, angles, mask)
        x = add(residual, dropout(x) if self.drop else x)
        residual = x
        x = self.post_attention_layernorm(x)
        x = self.mlp(x)
        return add(residual, dropout(x) if self.drop else x)


class Decoder(Module):
    """Embedding, blocks and final norm."""

    def __init__(
        self, setting: Setting, embedding: Module, layers: list[Module], norm: Module
    ) -> None:
        tape, arch = setting.tape, setting.arch
        self.setting = setting
        self.recompute = "none"
        self.grad_inputs = False
        self.embed_tokens: Module | None = embedding
        self.layers, self.norm = layers, norm
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
        embedded = self.embedded(ids)
        if positions is None:
            positions = made_positions(embedded)
        masks = self.setting.masks(embedded)
        x = embedded
        angles = rotary_angles(x, positions, self.setting.arch.rotary)
        for i, layer in enumerate(self.layers):
            x = self.run_layer(i, layer, x, (angles, masks, positions))
        return self.norm(x)  # type: ignore[no-any-return]

    def embedded(self, ids: Tensor) -> Tensor:
        """The stream's start, with a gradient of its own where adapters need one.

        Args:
            ids: [b, s], or [b, s, h] without an embedding. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        if self.embed_tokens is None:
            return ids
        made: Tensor = self.embed_tokens(ids)
        made.requires_grad = made.requires_grad or self.grad_inputs
        return made

    def run_layer(self, i: int, layer: Module, x: Tensor, shared: Shared) -> Tensor:
        """One block, recomputed in the backward pass where asked.

        Args:
            i: Which, from 0. [1]
            layer: The block. [module]
            x: [b, s, h]. [tensor]
            shared: What all blocks read. [tensors]

        Returns:
            [b, s, h]. [tensor]
        """
        angles, masks, _ = shared
        mask = masks[i % len(masks)]
        if self.recompute == "none":
            return layer(x, angles, mask)  # type: ignore[no-any-return]

        def again(y: Tensor) -> Tensor:
            return layer.forward(y, *shared[:1], mask)  # type: ignore[no-any-return]

        return checkpoint(again, x, selective=self.recompute == "selective")


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

    def __init__(self, model: Decoder, head: Module, *, final_cap: bool) -> None:
        self.model, self.lm_head, self.final_cap = model, head, final_cap
