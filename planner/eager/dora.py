"""Adapters of a weight's direction, with a magnitude for every output (DoRA).

Source: ``DoraLinearVariant`` and ``DoraLinearLayer`` of peft 0.21.2
(src/peft/tuners/lora/variants.py and dora.py).
"""

from __future__ import annotations

from planner.eager.case import LoraCase
from planner.eager.engine.storage import Tensor
from planner.eager.engine.tape import Tape
from planner.eager.lora import LoraLinear, Nf4Linear
from planner.eager.modules import Module
from planner.eager.ops.pointwise import add, dropout, mul, scale, shift, to
from planner.eager.ops.products import linear
from planner.eager.ops.views import transpose


class DoraLinear(LoraLinear):
    """A frozen layer plus (m - 1) base + m B(A(x)) scaling, m over norms of W + BA."""

    def __init__(self, base: Module, case: LoraCase, dtype: str, tape: Tape) -> None:
        super().__init__(base, case, dtype, tape)
        self.eye = base.k  # type: ignore[attr-defined]
        self.magnitude = tape.parameter((base.n,), dtype)  # type: ignore[attr-defined]

    def forward(self, x: Tensor) -> Tensor:
        """Output of the frozen layer plus what direction and magnitude add.

        Args:
            x: The input [..., k]. [tensor]

        Returns:
            The output [..., n], in the frozen layer's type. [tensor]
        """
        result: Tensor = self.base_layer(x)
        dtype = result.dtype
        x = to(x, self.lora_A.weight.dtype)
        thinned = dropout(x) if self.drop else x
        beside = self._beside(thinned, None if self.drop else result)
        del thinned
        result = add(result, beside)
        del beside
        return to(result, dtype)

    def _beside(self, x: Tensor, base: Tensor | None) -> Tensor:
        """Sum of both terms; products and weight stay until it returns."""
        product = to(self._product(), x.dtype)
        weight = to(self._weight(), x.dtype)
        times = mul(self.magnitude, self._norms(weight, product))
        high = self.lora_B(self.lora_A(x))
        bias = getattr(self.base_layer, "bias", None)
        if base is None:
            base = linear(x, weight)
        elif bias is not None:
            base = shift(base)
        of_base = mul(shift(times), base)
        of_product = mul(times, high)
        scaled = scale(of_product)
        del of_product
        return add(of_base, scaled)

    def _product(self) -> Tensor:
        """B A in full, by both layers from a unit matrix."""
        tape = self.magnitude.tape
        unit = tape.new((self.eye, self.eye), self.lora_A.weight.dtype)
        return transpose(self.lora_B(self.lora_A(unit)), 0, 1)

    def _weight(self) -> Tensor:
        """The frozen matrix, unpacked where it is in 4 bits."""
        base = self.base_layer
        if isinstance(base, Nf4Linear):
            return base.unpacked()
        weight: Tensor = base.weight  # type: ignore[attr-defined]
        return weight

    def _norms(self, weight: Tensor, product: Tensor) -> Tensor:
        """Norms of the rows of W + BA, outside the graph."""
        tape = self.magnitude.tape
        scaled = tape.pointwise(product)
        total = tape.pointwise(weight, scaled)
        del scaled
        return tape.new((total.shape[0],), total.dtype)
