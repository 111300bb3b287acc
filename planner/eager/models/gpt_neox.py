"""GPT-NeoX: heads of q, k and v side by side, partial rotary, parallel residual."""

from __future__ import annotations

from planner.eager.engine.storage import Tensor
from planner.eager.models.decoder import ACTIVATIONS, Attended, Decoder, Setting, attend
from planner.eager.modules import LayerNorm, Linear, Module
from planner.eager.ops.pointwise import add, dropout
from planner.eager.ops.rotary import Angles, rotary
from planner.eager.ops.views import reshape, split, transpose


class NeoxAttention(Module):
    """Attention whose q, k and v lie together head by head."""

    def __init__(self, setting: Setting) -> None:
        tape, arch, dtype = setting.tape, setting.arch, setting.dtype
        self.setting, self.d = setting, arch.d
        bias = arch.out_bias
        self.query_key_value = Linear(tape, arch.h, 3 * arch.h, dtype, bias=bias)
        self.dense = Linear(tape, arch.h, arch.h, dtype, bias=bias)

    def forward(self, x: Tensor, angles: Angles, mask: Tensor | None) -> Attended:
        """Attend over the sequence.

        Args:
            x: [b, s, h]. [tensor]
            angles: cos and sin. [tensors]
            mask: Added to the scores, or for padding. [tensor]

        Returns:
            [b, s, h], and the probabilities where they exist. [tensors]
        """
        b, s, h = x.shape
        qkv = reshape(self.query_key_value(x), b, s, h // self.d, 3 * self.d)
        qkv = transpose(qkv, 1, 2)
        q, k, v = split(qkv, 3, (self.d, self.d, self.d))
        q, k = rotary(q, k, angles, "joined")
        out, weights = attend(self.setting, q, k, v, mask)
        out = reshape(out, b, s, h)
        return self.dense(out), weights


class NeoxMlp(Module):
    """Two projections with biases and an activation between."""

    def __init__(self, setting: Setting) -> None:
        tape, arch, dtype = setting.tape, setting.arch, setting.dtype
        self.act = ACTIVATIONS[arch.activation]
        self.dense_h_to_4h = Linear(tape, arch.h, arch.f, dtype, bias=True)
        self.dense_4h_to_h = Linear(tape, arch.f, arch.h, dtype, bias=True)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer.

        Args:
            x: [b, s, h]. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        x = self.dense_h_to_4h(x)
        x = self.act(x)
        return self.dense_4h_to_h(x)  # type: ignore[no-any-return]


class NeoxBlock(Module):
    """Attention and feed-forward side by side on the stream, or one after the other."""

    def __init__(self, setting: Setting) -> None:
        tape, arch, dtype = setting.tape, setting.arch, setting.dtype
        self.drop = bool(arch.fields["hidden_dropout"])
        self.beside = bool(arch.fields["use_parallel_residual"])
        self.input_layernorm = LayerNorm(tape, arch.h, dtype)
        self.post_attention_layernorm = LayerNorm(tape, arch.h, dtype)
        self.attention = NeoxAttention(setting)
        self.mlp = NeoxMlp(setting)

    def forward(self, x: Tensor, angles: Angles, mask: Tensor | None) -> Tensor:
        """Apply the block.

        Args:
            x: [b, s, h]. [tensor]
            angles: cos and sin. [tensors]
            mask: Added to the scores, or for padding. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        attended, _ = self.attention(self.input_layernorm(x), angles, mask)
        attended = dropout(attended) if self.drop else attended
        if not self.beside:
            attended = add(attended, x)
        base = x if self.beside else attended
        fed = self.mlp(self.post_attention_layernorm(base))
        fed = dropout(fed) if self.drop else fed
        total = add(fed, attended)
        return add(total, x) if self.beside else total


class NeoxDecoder(Decoder):
    """A decoder whose embedded tokens are thinned with the stream's dropout."""

    def entering(self, x: Tensor) -> Tensor:
        """Thin the embedded tokens.

        Args:
            x: [b, s, h]. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        return dropout(x) if self.setting.arch.fields["hidden_dropout"] else x
