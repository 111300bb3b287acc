"""Linear layers in 4 bits on fake tensors, through bitsandbytes' own product.

bitsandbytes' Params4bit moves and packs real numbers; here a layer is made packed, with
the scales of doubly quantised NF4 (Dettmers et al., QLoRA, arXiv 2305.14314): one scale
of 8 bits for 64 weights, one of 32 bits for 256 of these.
"""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

WEIGHTS_A_SCALE = 64
SCALES_A_SCALE = 256
LEVELS = 16
"""Values that 4 bits tell apart; the scales of 8 bits have their own 256."""


class PackedLinear(torch.nn.Linear):
    """A frozen linear layer, two weights a byte."""

    def __init__(self, layer: Any) -> None:
        torch.nn.Module.__init__(self)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        count = layer.in_features * layer.out_features
        scales = count // WEIGHTS_A_SCALE
        packed = torch.empty((count + 1) // 2, 1, dtype=torch.uint8)
        self.weight = torch.nn.Parameter(packed, requires_grad=False)
        self.bias = layer.bias
        self._keep("scales", scales, torch.uint8)
        self._keep("outer", -(-scales // SCALES_A_SCALE), torch.float32)
        self._keep("levels", LEVELS, torch.float32)
        self._keep("outer_levels", SCALES_A_SCALE, torch.float32)
        self.register_buffer("offset", torch.empty(()))

    def _keep(self, name: str, count: int, dtype: Any) -> None:
        self.register_buffer(name, torch.empty(count, dtype=dtype))

    def forward(self, x: Any) -> Any:
        bnb = pytest.importorskip("bitsandbytes")
        how = self._state(bnb)
        return bnb.matmul_4bit(x, self.weight.t(), quant_state=how, bias=self.bias)

    def unpacked(self) -> Any:
        """The weights in 16 bits."""
        bnb = pytest.importorskip("bitsandbytes")
        return bnb.functional.dequantize_4bit(self.weight.data, self._state(bnb))

    def _state(self, bnb: Any) -> Any:
        state = bnb.functional.QuantState
        outer = state(
            self.outer,
            code=self.outer_levels,
            blocksize=SCALES_A_SCALE,
            dtype=torch.float32,
        )
        return state(
            self.scales,
            shape=(self.out_features, self.in_features),
            code=self.levels,
            blocksize=WEIGHTS_A_SCALE,
            quant_type="nf4",
            dtype=torch.bfloat16,
            offset=self.offset,
            state2=outer,
        )


def quantise(blocks: Any) -> None:
    """Pack every linear layer of the blocks."""
    for block in blocks:
        for name, layer in list(block.named_modules()):
            if isinstance(layer, torch.nn.Linear):
                parent, _, leaf = name.rpartition(".")
                setattr(block.get_submodule(parent), leaf, PackedLinear(layer))
