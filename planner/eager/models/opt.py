"""OPT: learned positions counted from a mask, LayerNorm, scaled queries, ReLU."""

from __future__ import annotations

from planner.eager.engine.storage import F32, I64, Tensor
from planner.eager.models.decoder import ACTIVATIONS, Attended, Decoder, Setting, attend
from planner.eager.modules import Embedding, LayerNorm, Linear, Module
from planner.eager.ops.pointwise import add, dropout, scale
from planner.eager.ops.views import reshape, transpose

OFFSET = 2
"""Rows of the position table before the first position. [1]"""


class OptAttention(Module):
    """Attention with biases; queries are scaled before they are split into heads."""

    def __init__(self, setting: Setting) -> None:
        tape, arch, dtype = setting.tape, setting.arch, setting.dtype
        self.setting, self.d = setting, arch.d
        self.k_proj = Linear(tape, arch.h, arch.h, dtype, bias=True)
        self.v_proj = Linear(tape, arch.h, arch.h, dtype, bias=True)
        self.q_proj = Linear(tape, arch.h, arch.h, dtype, bias=True)
        self.out_proj = Linear(tape, arch.h, arch.h, dtype, bias=True)

    def forward(self, x: Tensor, mask: Tensor | None) -> Attended:
        """Attend over the sequence.

        Args:
            x: [b, s, h]. [tensor]
            mask: Added to the scores, or for padding. [tensor]

        Returns:
            [b, s, h], and the probabilities where they exist. [tensors]
        """
        q = self._heads(scale(self.q_proj(x)))
        k, v = self.k_proj(x), self.v_proj(x)
        k, v = self._heads(k), self._heads(v)
        out, weights = attend(self.setting, q, k, v, mask)
        out = reshape(out, *x.shape)
        return self.out_proj(out), weights

    def _heads(self, x: Tensor) -> Tensor:
        return transpose(reshape(x, *x.shape[:2], x.shape[2] // self.d, self.d), 1, 2)


class OptBlock(Module):
    """Attention and feed-forward after a LayerNorm each, the latter on rows."""

    def __init__(self, setting: Setting) -> None:
        tape, arch, dtype = setting.tape, setting.arch, setting.dtype
        self.drop = bool(arch.fields["dropout"])
        self.act = ACTIVATIONS[arch.activation]
        self.self_attn = OptAttention(setting)
        self.self_attn_layer_norm = LayerNorm(tape, arch.h, dtype)
        self.fc1 = Linear(tape, arch.h, arch.f, dtype, bias=True)
        self.fc2 = Linear(tape, arch.f, arch.h, dtype, bias=True)
        self.final_layer_norm = LayerNorm(tape, arch.h, dtype)

    def forward(self, x: Tensor, _: object, mask: Tensor | None) -> Tensor:
        """Apply the block.

        Args:
            x: [b, s, h]. [tensor]
            _: Rotary angles; OPT has none. [none]
            mask: Added to the scores, or for padding. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        shape = x.shape
        residual = x
        x = self.self_attn_layer_norm(x)
        x, _weights = self.self_attn(x, mask)
        x = dropout(x) if self.drop else x
        x = add(residual, x)
        x = reshape(x, shape[0] * shape[1], shape[2])
        residual = x
        x = self.final_layer_norm(x)
        x = self.fc1(x)
        x = self.act(x)
        x = self.fc2(x)
        x = dropout(x) if self.drop else x
        return reshape(add(residual, x), *shape)


class OptDecoder(Decoder):
    """Token and position embeddings, blocks, final LayerNorm."""

    def __init__(
        self, setting: Setting, embedding: Module, layers: list[Module], norm: Module
    ) -> None:
        tape, arch = setting.tape, setting.arch
        rows = arch.fields["max_position_embeddings"] + OFFSET
        self.embed_tokens = embedding
        self.embed_positions = Embedding(tape, rows, arch.h, setting.dtype)
        self.norm = norm
        super().__init__(setting, embedding, layers, norm)
        self.buffers = []

    def forward(self, ids: Tensor, positions: Tensor | None = None) -> Tensor:
        """From token ids to the normalised stream.

        Args:
            ids: [b, s]. [tensor]
            positions: Given positions; counted from a mask when left out. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        embedded = self.embedded(ids)
        tape, rows = ids.tape, embedded.shape[:2]
        ones = tape.new(rows, F32)
        if positions is None:
            positions = tape.new(rows, I64)
        masks = self.setting.masks(embedded)
        placed = self.embed_positions(tape.new(rows, I64))
        x = add(embedded, placed)
        for i, layer in enumerate(self.layers):
            x = self.run_layer(i, layer, x, (None, masks, positions))
        out: Tensor = self.norm(x)
        del ones
        return out
