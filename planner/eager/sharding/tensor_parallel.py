"""Tensor parallelism of Llama-shaped models through DTensor, with or without SP.

The plan is torchtitan's (models/llama3/infra/parallelize.py). q, k, v, gate and up are
split by columns, o and down by rows. The table is split by rows of the vocabulary. The
head is split by columns, with the loss over sharded logits. Under sequence parallelism
the norms see a rank's tokens alone. The inputs of attention and feed-forward are
gathered once and kept. As in DTensor, the gradient of a table sharded by rows is whole
on every rank. That gradient is cut only where it meets its shard.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.eager.case import EagerCase, Unsupported
from planner.eager.engine.storage import BOOL, F32, I64, Replicated, Tensor
from planner.eager.models.decoder import CausalModel
from planner.eager.modules import Embedding, Linear, Module
from planner.eager.ops.collectives import (
    all_sum,
    gather_for_sum,
    gather_tokens,
    scatter_sum,
    sum_gradient,
)
from planner.eager.ops.products import linear

COLUMNS = ("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj")
ROWS = ("o_proj",), ("down_proj",)


class Columns(Module):
    """A linear layer whose outputs are split: weight [n/t, k]."""

    def __init__(self, whole: Linear, t: int, read: Callable[[Tensor], Tensor]) -> None:
        self.weight = _shard(whole.weight, 0, t)
        self.bias = None if whole.bias is None else _shard(whole.bias, 0, t)
        self.read = read

    def forward(self, x: Tensor) -> Tensor:
        """x @ weight^T + bias.

        Args:
            x: The input, as ``read`` takes it. [tensor]

        Returns:
            A rank's outputs [..., n/t]. [tensor]
        """
        return linear(self.read(x), self.weight, self.bias)


class Rows(Module):
    """A linear layer whose inputs are split: weight [n, k/t], outputs summed."""

    def __init__(self, whole: Linear, t: int, give: Callable[[Tensor], Tensor]) -> None:
        self.weight, self.bias = _shard(whole.weight, 1, t), whole.bias
        self.give = give

    def forward(self, x: Tensor) -> Tensor:
        """The sum over ranks of x @ weight^T + bias.

        Args:
            x: A rank's inputs [..., k/t]. [tensor]

        Returns:
            The output, whole or a rank's tokens of it. [tensor]
        """
        return self.give(linear(x, self.weight, self.bias))


class Table(Module):
    """A table whose rows are split: other ranks' ids give zeros, results are summed."""

    def __init__(
        self, whole: Embedding, t: int, give: Callable[[Tensor], Tensor]
    ) -> None:
        self.rows = whole.weight.shape[0]
        self.weight = _shard(whole.weight, 0, t)
        self.give = give

    def forward(self, ids: Tensor) -> Tensor:
        """Look up rows.

        Args:
            ids: Numbers of the rows. [tensor]

        Returns:
            The rows, whole or a rank's tokens of them. [tensor]
        """
        tape = ids.tape
        mask = tape.new(ids.shape, BOOL)
        mine = tape.new(ids.shape, I64)
        found = self._found(ids)
        del mine, mask
        return self.give(found)

    def _found(self, ids: Tensor) -> Tensor:
        tape, weight = ids.tape, self.weight
        shard, dtype = weight.shape, weight.dtype
        whole = (self.rows, *shard[1:])
        held = tape.save(ids)

        def backward(_: Tensor) -> tuple[Tensor]:
            held()
            return (Replicated.of(tape, whole, shard, dtype),)

        out = tape.new((*ids.shape, shard[1]), dtype)
        return tape.record("embedding", out, (weight,), backward)


class Gathered(Module):
    """A module that reads all tokens where its input holds one rank's tokens."""

    def __init__(self, inner: Module, t: int) -> None:
        self.inner, self.t = inner, t

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Gather, then apply the module.

        Args:
            x: [b, s/t, h]. [tensor]
            *args: Other arguments of the module. [any]
            **kwargs: Named arguments of the module. [any]

        Returns:
            Output of the module. [any]
        """
        return self.inner(gather_tokens(x, self.t), *args, **kwargs)


def _shard(whole: Tensor, dim: int, t: int) -> Tensor:
    """The first rank's part: ceil(length / t) of one dimension."""
    shape = list(whole.shape)
    shape[dim] = -(-shape[dim] // t)
    return whole.tape.parameter(
        tuple(shape), whole.dtype, trainable=whole.requires_grad
    )


def split_model(model: CausalModel, case: EagerCase) -> None:
    """Shard every product, the table and the head over the ranks of a case.

    Args:
        model: The model, changed in place. [module]
        case: The case, with ``tp`` ranks and the ``sp`` flag. [case]

    Raises:
        Unsupported: When the model has other products than the plan's, or lengths that
            the ranks do not divide.
    """
    t = case.tp
    _check(model, case)
    tied = _tied(model)
    _split_ends(model, t, sp=case.sp)
    if tied:
        model.lm_head.weight = model.model.embed_tokens.weight  # type: ignore[attr-defined, union-attr]
    for block in model.model.layers:
        _split_block(block, t, sp=case.sp)


def _tied(model: CausalModel) -> bool:
    table, head = model.model.embed_tokens, model.lm_head
    return (
        isinstance(table, Embedding)
        and isinstance(head, Linear)
        and table.weight is head.weight
    )


def _split_ends(model: CausalModel, t: int, *, sp: bool) -> None:
    table, head = model.model.embed_tokens, model.lm_head
    if isinstance(table, Embedding):
        model.model.embed_tokens = Table(table, t, _giver(t, sp=sp))
    if isinstance(head, Linear):

        def read(x: Tensor) -> Tensor:
            return gather_for_sum(x, t) if sp else sum_gradient(x)

        model.lm_head = Columns(head, t, read)


def _giver(t: int, *, sp: bool) -> Callable[[Tensor], Tensor]:
    return (lambda x: scatter_sum(x, t)) if sp else all_sum


def _split_block(block: Module, t: int, *, sp: bool) -> None:
    for part, first, last in zip(("self_attn", "mlp"), COLUMNS, ROWS, strict=True):
        inner: Module = getattr(block, part)
        for name in first:
            setattr(inner, name, Columns(getattr(inner, name), t, sum_gradient))
        for name in last:
            setattr(inner, name, Rows(getattr(inner, name), t, _giver(t, sp=sp)))
        if sp:
            setattr(block, part, Gathered(inner, t))


def _check(model: CausalModel, case: EagerCase) -> None:
    t, arch = case.tp, model.model.setting.arch
    if case.lora is not None:
        raise Unsupported("adapters under tensor parallelism: peft's layers are whole")
    if case.loss == "liger" or case.loss.startswith("chunked"):
        raise Unsupported(f"a {case.loss} loss under a head split over ranks")
    for block in model.model.layers:
        _check_products(block, arch.family)
    if arch.traits.qk_norm == "whole":
        raise Unsupported(f"{arch.family} normalises queries over heads of all ranks")
    if arch.traits.whole_heads:
        raise Unsupported(f"{arch.family} views queries as the heads of all ranks")
    if arch.g % t or arch.a % t:
        raise Unsupported(f"{arch.g} key-value heads do not split over {t} ranks")
    if case.sp and case.seq % t:
        raise Unsupported(f"{case.seq} tokens do not split over {t} ranks")
    if case.sp and case.attention == "eager":
        raise Unsupported(
            "sequence parallelism with eager attention: transformers sizes the mask "
            "by a rank's tokens and the scores by all"
        )


def _check_products(block: Module, family: str) -> None:
    for part, first, last in zip(("self_attn", "mlp"), COLUMNS, ROWS, strict=True):
        inner = getattr(block, part, None)
        split = first + last
        absent = [n for n in split if not isinstance(getattr(inner, n, None), Linear)]
        if absent:
            raise Unsupported(
                f"tensor parallelism by the plan of Llama: {family} has no "
                f"{', '.join(absent)} to split"
            )


def split_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy over a sharded vocabulary (``loss_parallel``).

    The forward makes shifted logits, their exponentials and log probabilities. The log
    probabilities are kept. The backward makes, in one step, zeros to subtract one
    from, exponentials, the sum of both, and the product of that sum and the incoming
    gradient. Three of these live at once (torch/distributed/tensor/parallel/loss.py).

    Args:
        logits: A rank's logits in fp32 [T, V/t]. [tensor]
        labels: The right classes [T]. [tensor]

    Returns:
        The loss. [tensor]
    """
    return _nll(_log_softmax(logits), labels)


def _log_softmax(x: Tensor) -> Tensor:
    tape = x.tape
    rows = (*x.shape[:-1], 1)
    most = tape.new(rows, F32)
    shifted = tape.pointwise(x)
    grown = tape.pointwise(x)
    total = tape.new(rows, F32)
    del grown
    log = tape.new(rows, F32)
    out = tape.pointwise(x)
    del most, total, log, shifted
    return tape.record("log_softmax", out, (x,), lambda grad: (grad,))


def _nll(x: Tensor, right: Tensor) -> Tensor:
    tape, labels = x.tape, x.shape[:-1]
    kept = [tape.save(x), tape.save(right)]

    def backward(_: Tensor) -> tuple[Tensor]:
        held = [take() for take in kept]
        targets = [tape.new(labels, I64) for _ in range(4)]
        mask, total = tape.new(labels, BOOL), tape.new((), F32)
        ones = tape.pointwise(held[0])
        grown = tape.pointwise(held[0])
        both = tape.pointwise(ones)
        del grown
        out = tape.pointwise(both)
        del ones, targets, mask, total
        return (out,)

    return tape.record("nll", tape.new((), F32), (x,), backward)
