"""GPT-2: learned positions, LayerNorm, one projection for q, k, v, GELU in Python."""

from __future__ import annotations

from planner.eager.engine.storage import Tensor
from planner.eager.models.decoder import Attended, Decoder, Setting
from planner.eager.modules import Conv1D, Embedding, LayerNorm, Module
from planner.eager.ops.attention import by_hand, sdpa
from planner.eager.ops.pointwise import (
    add,
    dropout,
    gelu,
    mul,
    power,
    relu,
    scale,
    shift,
    silu,
    tanh,
)
from planner.eager.ops.rotary import made_positions
from planner.eager.ops.views import reshape, split, transpose


def gelu_new(x: Tensor) -> Tensor:
    """GELU by tanh in single operations: half x * (1 + tanh(c * (x + c' * x^3))).

    Args:
        x: The tensor. [tensor]

    Returns:
        gelu(x). [tensor]
    """
    half = scale(x)
    return mul(half, shift(tanh(scale(add(x, scale(power(x)))))))


ACTIVATIONS = {
    "gelu_new": gelu_new,
    "gelu": gelu,
    "gelu_pytorch_tanh": gelu,
    "relu": relu,
    "silu": silu,
}


class Gpt2Attention(Module):
    """Attention with one projection for queries, keys and values."""

    def __init__(self, setting: Setting) -> None:
        tape, arch, dtype = setting.tape, setting.arch, setting.dtype
        self.setting, self.d = setting, arch.d
        self.c_attn = Conv1D(tape, arch.h, 3 * arch.h, dtype, bias=True)
        self.c_proj = Conv1D(tape, arch.h, arch.h, dtype, bias=True)
        self.drop = bool(arch.fields["attn_pdrop"])
        self.drop_out = bool(arch.fields["resid_pdrop"])

    def forward(self, x: Tensor, mask: Tensor | None) -> Attended:
        """Attend over the sequence.

        Args:
            x: [b, s, h]. [tensor]
            mask: Added to the scores, or for padding. [tensor]

        Returns:
            [b, s, h], and the probabilities where they exist. [tensors]
        """
        b, s, h = x.shape
        q, k, v = split(self.c_attn(x), 2, (h, h, h))
        k, v = self._heads(k), self._heads(v)
        q = self._heads(q)
        if self.setting.attention == "sdpa":
            out, weights = sdpa(q, k, v, mask, drop=self.drop), None
        else:
            out, weights = by_hand(q, k, v, mask, drop=self.drop, upcast=False)
        out = reshape(out, b, s, h)
        out = self.c_proj(out)
        if self.drop_out:
            out = dropout(out)
        return out, weights

    def _heads(self, x: Tensor) -> Tensor:
        return transpose(reshape(x, *x.shape[:2], x.shape[2] // self.d, self.d), 1, 2)


class Gpt2Mlp(Module):
    """Two projections with biases and an activation between."""

    def __init__(self, setting: Setting) -> None:
        tape, arch, dtype = setting.tape, setting.arch, setting.dtype
        self.act = ACTIVATIONS[arch.activation]
        self.c_fc = Conv1D(tape, arch.h, arch.f, dtype, bias=True)
        self.c_proj = Conv1D(tape, arch.f, arch.h, dtype, bias=True)
        self.drop_out = bool(arch.fields["resid_pdrop"])

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer.

        Args:
            x: [b, s, h]. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        x = self.c_fc(x)
        x = Activation(self.act)(x)
        x = self.c_proj(x)
        return dropout(x) if self.drop_out else x


class Activation(Module):
    """An activation called as a module: its input lives until it returns."""

    def __init__(self, function: object) -> None:
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation.

        Args:
            x: The tensor. [tensor]

        Returns:
            The activated tensor. [tensor]
        """
        return self.function(x)  # type: ignore[operator, no-any-return]


class Gpt2Block(Module):
    """Attention and feed-forward after a LayerNorm each."""

    def __init__(self, setting: Setting) -> None:
        tape, arch, dtype = setting.tape, setting.arch, setting.dtype
        self.ln_1 = LayerNorm(tape, arch.h, dtype)
        self.attn = Gpt2Attention(setting)
        self.ln_2 = LayerNorm(tape, arch.h, dtype)
        self.mlp = Gpt2Mlp(setting)

    def forward(self, x: Tensor, _: object, mask: Tensor | None) -> Tensor:
        """Apply the block.

        Args:
            x: [b, s, h]. [tensor]
            _: Rotary angles; GPT-2 has none. [none]
            mask: Added to the scores, or for padding. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        residual = x
        x = self.ln_1(x)
        attended, _weights = self.attn(x, mask)
        x = add(attended, residual)
        residual = x
        x = self.ln_2(x)
        fed = self.mlp(x)
        return add(residual, fed)


class Gpt2Decoder(Decoder):
    """Token and position embeddings, blocks, final LayerNorm."""

    def __init__(
        self, setting: Setting, embedding: Module, layers: list[Module], norm: Module
    ) -> None:
        tape, arch = setting.tape, setting.arch
        rows = arch.fields["n_positions"]
        self.embed_tokens = embedding
        self.wpe: Module = Embedding(tape, rows, arch.h, setting.dtype)
        super().__init__(setting, embedding, layers, norm)
        self.drop = bool(arch.fields["embd_pdrop"])
        self.buffers = []

    def forward(self, ids: Tensor, positions: Tensor | None = None) -> Tensor:
        """From token ids to the normalised stream.

        Args:
            ids: [b, s]. [tensor]
            positions: [1, s]; made here when left out. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        embedded = self.embedded(ids)
        if positions is None:
            positions = made_positions(embedded)
        placed = self.wpe(positions)
        x = add(embedded, placed)
        masks = self.setting.masks(embedded)
        if self.drop:
            x = dropout(x)
        for i, layer in enumerate(self.layers):
            x = self.run_layer(i, layer, x, (None, masks, positions))
        return self.norm(x)  # type: ignore[no-any-return]
