"""Blocks that differ from Llama's: fused projections, other places of the norms."""

from __future__ import annotations

from planner.eager.engine.storage import Tensor
from planner.eager.engine.tape import Tape
from planner.eager.models.decoder import (
    ACTIVATIONS,
    Attended,
    Attention,
    Block,
    GatedMlp,
    Setting,
    attend,
)
from planner.eager.models.moe import ExpertLayer, has_experts
from planner.eager.modules import Embedding, Linear, Module
from planner.eager.ops.pointwise import add, mul, scale
from planner.eager.ops.rotary import Angles, rotary
from planner.eager.ops.views import narrow, reshape, split, transpose


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
        q, k = rotary(q, k, angles, self.setting.arch.traits.rotary)
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


class PlainMlp(Module):
    """Two projections with an activation between."""

    def __init__(self, setting: Setting, f: int) -> None:
        tape, arch, dtype = setting.tape, setting.arch, setting.dtype
        bias = arch.out_bias
        self.act = ACTIVATIONS[arch.activation]
        self.c_fc = Linear(tape, arch.h, f, dtype, bias=bias)
        self.c_proj = Linear(tape, f, arch.h, dtype, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer.

        Args:
            x: [b, s, h]. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        x = self.c_fc(x)
        x = self.act(x)
        return self.c_proj(x)  # type: ignore[no-any-return]


class AfterBlock(Block):
    """OLMo 2: a norm after attention and one after the feed-forward."""

    def __init__(self, setting: Setting, attention: Module, mlp: Module) -> None:
        self.self_attn, self.mlp = attention, mlp
        self.post_attention_layernorm = setting.norm(setting.arch.h)
        self.post_feedforward_layernorm = setting.norm(setting.arch.h)

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
        x, _ = self.self_attn(x, angles, mask)
        x = self.post_attention_layernorm(x)
        x = add(residual, x)
        residual = x
        x = self.mlp(x)
        x = self.post_feedforward_layernorm(x)
        return add(residual, x)


class SandwichBlock(Block):
    """Gemma 2 and 3: a norm before and after both attention and feed-forward."""

    def __init__(self, setting: Setting, attention: Module, mlp: Module) -> None:
        self.self_attn, self.mlp = attention, mlp
        h = setting.arch.h
        self.input_layernorm = setting.norm(h)
        self.post_attention_layernorm = setting.norm(h)
        self.pre_feedforward_layernorm = setting.norm(h)
        self.post_feedforward_layernorm = setting.norm(h)

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
        x = self.pre_feedforward_layernorm(x)
        x = self.mlp(x)
        x = self.post_feedforward_layernorm(x)
        return add(residual, x)


class ScaledEmbedding(Embedding):
    """Rows multiplied by a buffer, the root of h."""

    def __init__(self, tape: Tape, rows: int, h: int, dtype: str) -> None:
        super().__init__(tape, rows, h, dtype)
        self.buffers = [tape.new((), dtype, category="buffers")]

    def forward(self, ids: Tensor) -> Tensor:
        """Look up rows and scale them.

        Args:
            ids: Numbers of the rows. [tensor]

        Returns:
            The scaled rows. [tensor]
        """
        return mul(super().forward(ids), self.buffers[0])


class NumberEmbedding(Embedding):
    """Rows multiplied by a number of the configuration."""

    def forward(self, ids: Tensor) -> Tensor:
        """Look up rows and scale them.

        Args:
            ids: Numbers of the rows. [tensor]

        Returns:
            The scaled rows. [tensor]
        """
        return scale(super().forward(ids))


EMBEDDINGS = {
    None: Embedding,
    "by_buffer": ScaledEmbedding,
    "by_number": NumberEmbedding,
}
BLOCKS = {"before": Block, "after": AfterBlock, "both": SandwichBlock}
MLPS = {"gated": GatedMlp, "gated_fused": FusedMlp, "plain": PlainMlp}


def block(setting: Setting, layer: int) -> Module:
    """The block of a family at a depth.

    Args:
        setting: Settings that the blocks share. [setting]
        layer: Number of the block, from 0. [1]

    Returns:
        The block. [module]
    """
    traits = setting.arch.traits
    attention = (FusedAttention if traits.fused_qkv else Attention)(setting)
    if has_experts(setting.arch, layer):
        return Block(setting, attention, ExpertLayer(setting))
    mlp = MLPS[traits.mlp](setting, setting.arch.f)
    return BLOCKS[traits.block](setting, attention, mlp)
