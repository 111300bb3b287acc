"""The Llama-shaped decoder: rotary attention, gated feed-forward, blocks, head.

Locals live as long as in the modules of transformers. A name that stays bound until
the end of a forward keeps its tensor until then.
"""

from __future__ import annotations

from planner.eager.engine.checkpoint import checkpoint
from planner.eager.engine.storage import F32, Tensor
from planner.eager.engine.tape import Tape
from planner.eager.models.families import Architecture
from planner.eager.modules import FixedLayerNorm, LayerNorm, Linear, Module, RMSNorm
from planner.eager.ops.attention import by_hand, sdpa
from planner.eager.ops.masks import causal_mask
from planner.eager.ops.pointwise import add, dropout, gelu, mul, relu, scale, silu
from planner.eager.ops.rotary import Angles, made_positions, rotary, rotary_angles
from planner.eager.ops.views import reshape, transpose

Attended = tuple[Tensor, Tensor | None]
Shared = tuple[Angles | None, list[Tensor | None], Tensor]
"""Tensors that all blocks read: angles, masks by turn, positions."""
ACTIVATIONS = {
    "silu": silu,
    "gelu": gelu,
    "gelu_pytorch_tanh": gelu,
    "gelu_fast": gelu,
    "relu": relu,
}


class Setting:
    """Settings that all blocks of a model share: tape, sizes, type and attention."""

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

    def norm(self, width: int) -> Module:
        """A norm of the family's kind.

        Args:
            width: Size of the last dimension. [elements]

        Returns:
            The norm. [module]
        """
        kind = self.arch.traits.norm
        if kind == "layer":
            return LayerNorm(self.tape, width, self.dtype)
        if kind == "layer_fixed":
            return FixedLayerNorm()
        return RMSNorm(self.tape, width, self.dtype, kind)

    def masks(self, embedded: Tensor) -> list[Tensor | None]:
        """The causal masks that blocks read by turn, where the attention needs them.

        Args:
            embedded: [b, s, h]. [tensor]

        Returns:
            One mask, or two where windows alternate; None for ``sdpa`` without padding.
            Each is [b, 1, s, s], additive for ``eager``, else boolean. [tensors]
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
        traits = arch.traits
        bias, out_bias = arch.qkv_bias, arch.out_bias
        self.setting, self.d = setting, arch.d
        self.q_proj = Linear(tape, arch.h, arch.a * arch.d, dtype, bias=bias)
        self.k_proj = Linear(tape, arch.h, arch.g * arch.d, dtype, bias=bias)
        self.v_proj = Linear(tape, arch.h, arch.g * arch.d, dtype, bias=bias)
        self.o_proj = Linear(tape, arch.a * arch.d, arch.h, dtype, bias=out_bias)
        self.normed = traits.qk_norm
        if self.normed is not None:
            whole = self.normed == "whole"
            self.q_norm = setting.norm(arch.a * arch.d if whole else arch.d)
            self.k_norm = setting.norm(arch.g * arch.d if whole else arch.d)

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
        if self.normed == "turned_head":
            q = self.q_norm(q)
            k = self.k_norm(k)
        q, k = rotary(q, k, angles, self.setting.arch.traits.rotary)
        out, weights = attend(self.setting, q, k, v, mask)
        out = reshape(out, *x.shape[:2], out.shape[2] * out.shape[3])
        return self.o_proj(out), weights

    def _heads(self, x: Tensor, norm: str | None) -> Tensor:
        if norm is not None and self.normed == "whole":
            x = getattr(self, norm)(x)
        x = reshape(x, *x.shape[:2], x.shape[2] // self.d, self.d)
        if norm is not None and self.normed == "head":
            x = getattr(self, norm)(x)
        return transpose(x, 1, 2)


def attend(
    setting: Setting, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
) -> Attended:
    """Attention by the implementation the model was loaded with.

    Args:
        setting: Settings that the blocks share. [setting]
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
        arch = setting.arch
        self.self_attn, self.mlp = attention, mlp
        self.drop = arch.residual_drop
        self.scaled = arch.traits.scaled == "by_number"
        self.input_layernorm = setting.norm(arch.h)
        self.post_attention_layernorm = setting.norm(arch.h)

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
        x = add(residual, self.joining(x))
        residual = x
        x = self.post_attention_layernorm(x)
        x = self.mlp(x)
        return add(residual, self.joining(x))

    def joining(self, x: Tensor) -> Tensor:
        """Scale or thin, where the family does so, a result that joins the stream.

        Args:
            x: [b, s, h]. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        if self.scaled:
            return scale(x)
        return dropout(x) if self.drop else x


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
            tape.new((arch.rotary // 2,), F32, category="buffers")
            for _ in range(2 * arch.traits.angles)
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
        x = self.entering(embedded)
        angles = [self.angles(x, positions) for _ in range(len(self.buffers) // 2)]
        for i, layer in enumerate(self.layers):
            turn = angles[i % len(angles)]
            x = self.run_layer(i, layer, x, (turn, masks, positions))
        return self.norm(x)  # type: ignore[no-any-return]

    def entering(self, x: Tensor) -> Tensor:
        """Hand the embedded tokens to the first block; families may override this.

        Args:
            x: [b, s, h]. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        return x

    def angles(self, x: Tensor, positions: Tensor) -> Angles:
        """Cosines and sines of the positions, as the family makes them.

        Args:
            x: The stream, whose type the angles get unless made in fp32. [tensor]
            positions: [1, s]. [tensor]

        Returns:
            cos and sin. [tensors]
        """
        arch = self.setting.arch
        dtype = F32 if arch.traits.rotary == "fp32" else x.dtype
        return rotary_angles(positions, arch.rotary, dtype)

    def embedded(self, ids: Tensor) -> Tensor:
        """Embed the tokens; the result gets a gradient where adapters need one.

        Args:
            ids: [b, s], or [b, s, h] without an embedding. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        if self.embed_tokens is None:
            return ids
        made: Tensor = self.embed_tokens(ids)
        if self.grad_inputs and not made.requires_grad:
            made.requires_grad = True
            made.tape.leaves.append(made)
        return made

    def run_layer(self, i: int, layer: Module, x: Tensor, shared: Shared) -> Tensor:
        """One block, recomputed in the backward pass where asked.

        Args:
            i: Number of the block, from 0. [1]
            layer: The block. [module]
            x: [b, s, h]. [tensor]
            shared: Angles, masks by turn and positions. [tensors]

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


class CausalModel(Module):
    """A decoder with its language-model head."""

    def __init__(self, model: Decoder, head: Module, *, final_cap: bool) -> None:
        self.model, self.lm_head, self.final_cap = model, head, final_cap
        self.scaled = False
