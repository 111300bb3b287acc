"""Modules: parameters and a forward; a call keeps its arguments until it returns.

``torch.nn.Module.__call__`` holds the arguments for as long as ``forward`` runs, even
where ``forward`` rebinds their names. The held arguments are part of the peak.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.eager.engine.storage import F32, Tensor
from planner.eager.engine.tape import Tape
from planner.eager.ops.norm import (
    layer_norm,
    rms_norm,
    rms_norm_outside,
    rms_norm_plus_one,
    unit_rows,
)
from planner.eager.ops.pointwise import embedding, to
from planner.eager.ops.products import cast, linear, product
from planner.eager.ops.views import reshape


class Module:
    """Something with parameters and a forward."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the forward, holding the arguments meanwhile.

        Args:
            *args: Arguments of forward. [any]
            **kwargs: Named arguments of forward. [any]

        Returns:
            Result of forward. [any]
        """
        return self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result; every module overrides this.

        Args:
            *args: The inputs. [any]
            **kwargs: The inputs. [any]

        Returns:
            The result. [any]
        """
        raise NotImplementedError(type(self).__name__)

    def children(self) -> Iterator[tuple[str, Module]]:
        """Modules inside this one, in the order they were made.

        Yields:
            Name and module. [name, module]
        """
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield name, value
            elif isinstance(value, list):
                for i, item in enumerate(value):
                    if isinstance(item, Module):
                        yield f"{name}.{i}", item

    def modules(self) -> Iterator[tuple[str, Module]]:
        """This module and all below it.

        Yields:
            Dotted name and module. [name, module]
        """
        yield "", self
        for name, child in self.children():
            for below, module in child.modules():
                yield f"{name}.{below}" if below else name, module

    def parameters(self) -> list[Tensor]:
        """Every parameter once, tied ones too.

        Returns:
            The leaves, in the order they were made. [tensors]
        """
        found: dict[int, Tensor] = {}
        for _, module in self.modules():
            for value in vars(module).values():
                if isinstance(value, Tensor):
                    found.setdefault(id(value), value)
        return list(found.values())


class Linear(Module):
    """A weight [n, k] and, where asked, a bias [n]."""

    def __init__(
        self, tape: Tape, k: int, n: int, dtype: str, *, bias: bool = False
    ) -> None:
        self.k, self.n = k, n
        self.weight = tape.parameter((n, k), dtype)
        self.bias = tape.parameter((n,), dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """x @ weight^T + bias.

        Args:
            x: The input [..., k]. [tensor]

        Returns:
            The output [..., n]. [tensor]
        """
        return linear(x, self.weight, self.bias)


class UnitRowsLinear(Linear):
    """Baichuan 2's frozen head: rows are normalised anew in every forward."""

    def forward(self, x: Tensor) -> Tensor:
        """x @ rows^T, which live until the product is there; its backward has a cast.

        Args:
            x: The input [..., k]. [tensor]

        Returns:
            The output [..., n]. [tensor]
        """
        rows = unit_rows(self.weight)
        return linear(x, to(rows, self.weight.dtype))


class Conv1D(Linear):
    """GPT-2's linear layer, a weight [k, n] and a bias, as ``addmm``."""

    def forward(self, x: Tensor) -> Tensor:
        """bias + x @ weight.

        Args:
            x: The input [..., k]. [tensor]

        Returns:
            The output [..., n]. [tensor]
        """
        rows = reshape(x, x.numel // self.k, self.k)
        assert self.bias is not None
        weight = cast(self.weight)
        rows = cast(rows)
        bias = cast(self.bias)
        return reshape(product(rows, weight, bias), *x.shape[:-1], self.n)


RMS_NORMS = {
    "rms": rms_norm,
    "rms_plus_one": rms_norm_plus_one,
    "rms_outside": rms_norm_outside,
}


class RMSNorm(Module):
    """RMSNorm in single operations, with Llama's, Gemma's or OLMo 2's gain."""

    def __init__(self, tape: Tape, h: int, dtype: str, kind: str = "rms") -> None:
        self.weight = tape.parameter((h,), dtype)
        self.function = RMS_NORMS[kind]

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last dimension.

        Args:
            x: The input. [tensor]

        Returns:
            The normalised input. [tensor]
        """
        return self.function(x, self.weight)


class LayerNorm(Module):
    """LayerNorm as one kernel."""

    def __init__(self, tape: Tape, h: int, dtype: str, *, bias: bool = True) -> None:
        self.weight = tape.parameter((h,), dtype)
        self.bias = tape.parameter((h,), dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last dimension.

        Args:
            x: The input. [tensor]

        Returns:
            The normalised input. [tensor]
        """
        return layer_norm(x, self.weight, self.bias)


class FixedLayerNorm(Module):
    """LayerNorm in fp32 without a gain."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last dimension.

        Args:
            x: The input. [tensor]

        Returns:
            The normalised input. [tensor]
        """
        return to(layer_norm(to(x, F32), None, None), x.dtype)


class Embedding(Module):
    """A table of rows [V, h]."""

    def __init__(self, tape: Tape, rows: int, h: int, dtype: str) -> None:
        self.weight = tape.parameter((rows, h), dtype)

    def forward(self, ids: Tensor) -> Tensor:
        """Look up rows.

        Args:
            ids: Numbers of the rows. [tensor]

        Returns:
            The rows. [tensor]
        """
        return embedding(ids, self.weight)


class Identity(Module):
    """Returns its input; stands in where a pipeline stage has no norm or head."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the input.

        Args:
            x: The input. [tensor]

        Returns:
            The input. [tensor]
        """
        return x
