"""Blocks that differ from Llama's: fused projections (Phi-3), four norms (Gemma 2)."""

from __future__ import annotations

from planner.eager.decoder import (
    ACTIVATIONS,
    Angles,
    Attended,
    Attention,
    Block,
    GatedMlp,
    Setting,
    attend,
    rotated,
)
from planner.eager.modules import Embedding, Linear, Module, RMSNorm
from planner.eager.moe import ExpertLayer, has_experts
from planner.eager.ops.pointwise import add, mul
from planner.eager.ops.views import cat, narrow, reshape, split, transpose
from planner.eager.storage import Tensor
from planner.eager.tape import Tape


def partly_rotary(q: Tensor, k: Tensor, angles: Angles) -> tuple[Tensor, Tensor]:
    """Rotary position embedding of the first part of each head, joined with the rest.

    Args:
        q: [b, a, s, d]. [tensor]
        k: [b, g, s, d]. [tensor]
        angles: cos and sin of the part. [tensors]

    Returns:
        Both, rotated, in row-major copies. [tensors]
    """
    part = angles[0].shape[-1]
    q_turned, q_rest = narrow(q, -1, part), narrow(q, -1, q.shape[-1] - part)
    k_turned, k_rest = narrow(k, -1, part), narrow(k, -1, k.shape[-1] - part)
    turned = cat((rotated(q_turned, angles), q_rest), -1)
    return turned, cat((rotated(k_turned, angles), k_rest), -1)


class FusedAttention(Module):
    """Attention whose queries, keys and values are slices of one projection."""

    def __init__(self, setting: Setting) -> None:
        tape, arch, dtype = setting.tape, setting.arch, setting.dtype
        self.setting, self.d = setting, arch.d
        self.widths = (arch.a * arch.d, arch.g * arch.d)
        width = self.widths[0] + 2 * self.widths[1]
        self.o_proj = Linear(tape, arch.a * arch.d, arch.h, dtype)
        self.qkv_proj = Linear(tape, arch.h, width, dtype)

    def forward(self, x: Tensor, angles: Angles, mask: Tensor | None) -> Attended:
        """Attend over the sequence.

        Args:
            x: [b, s, h]. [tensor]
            angles: cos and sin. [tensors]
            mask: Added to the scores, or for padding. [tensor]

        Returns:
            [b, s, h], and the probabilities where they exist. [tensors]
        """
        qkv = self.qkv_proj(x)
        q = narrow(qkv, 2, self.widths[0])
        k = narrow(qkv, 2, self.widths[1])
        v = narrow(qkv, 2, self.widths[1])
        q, k, v = self._heads(q), self._heads(k), self._heads(v)
        q, k = partly_rotary(q, k, angles)
        out, weights = attend(self.setting, q, k, v, mask)
        out = reshape(out, *x.shape[:2], out.shape[2] * out.shape[3])
        return self.o_proj(out), weights

    def _heads(self, x: Tensor) -> Tensor:
        return transpose(reshape(x, *x.shape[:2], x.shape[2] // self.d, self.d), 1, 2)


class FusedMlp(Module):
    """down(up * act(gate)) with gate and up from one projection."""

    def __init__(self, setting: Setting, f: int) -> None:
        tape, arch, dtype = setting.tape, setting.arch, setting.dtype
        self.act, self.f = ACTIVATIONS[arch.activation], f
        self.gate_up_proj = Linear(tape, arch.h, 2 * f, dtype)
        self.down_proj = Linear(tape, f, arch.h, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer.

        Args:
            x: [b, s, h]. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        up = self.gate_up_proj(x)
        gate, up = split(up, 2, (self.f, self.f))
        up = mul(up, self.act(gate))
        return self.down_proj(up)  # type: ignore[no-any-return]


class SandwichBlock(Block):
    """Gemma 2: a norm before and after both attention and feed-forward."""

    def __init__(self, setting: Setting) -> None:
        tape, arch, dtype = setting.tape, setting.arch, setting.dtype
        self.self_attn = Attention(setting)
        self.mlp = GatedMlp(setting, arch.f)
        names = ("input", "post_attention", "pre_feedforward", "post_feedforward")
        for name in names:
            norm = RMSNorm(tape, arch.h, dtype, plus_one=True)
            setattr(self, f"{name}_layernorm", norm)

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
        x = self.post_attention_layernorm(x)
        x = add(residual, x)
        residual = x
        x = self.pre_feedforward_layernorm(x)  # type: ignore[attr-defined]
        x = self.mlp(x)
        x = self.post_feedforward_layernorm(x)  # type: ignore[attr-defined]
        return add(residual, x)


class ScaledEmbedding(Embedding):
    """Rows multiplied by a buffer, the root of h."""

    def __init__(self, tape: Tape, rows: int, h: int, dtype: str) -> None:
        super().__init__(tape, rows, h, dtype)
        self.buffers = [tape.new((), dtype, category="buffers")]

    def forward(self, ids: Tensor) -> Tensor:
        """Look up rows and scale them.

        Args:
            ids: Which rows. [tensor]

        Returns:
            The scaled rows. [tensor]
        """
        return mul(super().forward(ids), self.buffers[0])


def block(setting: Setting, layer: int) -> Module:
    """The block of a family at a depth.

    Args:
        setting: What the model shares. [setting]
        layer: Which, from 0. [1]

    Returns:
        The block. [module]
    """
    traits = setting.arch.traits
    if traits.sandwich:
        return SandwichBlock(setting)
    attention = (FusedAttention if traits.fused_qkv else Attention)(setting)
    return Block(setting, attention, feed_forward(setting, layer))


def feed_forward(setting: Setting, layer: int) -> Module:
    """The feed-forward of a block at a depth.

    Args:
        setting: What the model shares. [setting]
        layer: Which, from 0. [1]

    Returns:
        The layer. [module]
    """
    if has_experts(setting.arch, layer):
        return ExpertLayer(setting)
    kind = FusedMlp if setting.arch.traits.mlp == "gated_fused" else GatedMlp
    return kind(setting, setting.arch.f)
