"""Mixtures of experts by grouped matrix products, tokens sorted by expert.

The routing has no numbers here. Allocations depend on the number of pairs of token and
expert alone, S = tokens * experts per token (``grouped_mm_experts_forward`` of
transformers, src/transformers/integrations/moe.py).
"""

from __future__ import annotations

from planner.eager.case import Unsupported
from planner.eager.engine.storage import BF16, F32, I32, I64, Tensor
from planner.eager.models.decoder import ACTIVATIONS, GatedMlp, Setting
from planner.eager.models.families import Architecture
from planner.eager.modules import Linear, Module
from planner.eager.ops.pointwise import add, mul, sigmoid, softmax, to
from planner.eager.ops.products import linear
from planner.eager.ops.views import reshape, split

Grad = Tensor | None


def rows_of(x: Tensor, index: Tensor) -> Tensor:
    """Rows picked by index; the backward adds gradients into zeros of the full shape.

    Args:
        x: The rows. [tensor]
        index: Number of the picked row, per result row. [tensor]

    Returns:
        The picked rows. [tensor]
    """
    tape, shape = x.tape, x.shape
    kept = tape.save(index) if x.requires_grad else None

    def backward(grad: Tensor) -> tuple[Grad]:
        held = None if kept is None else kept()
        zeros = tape.new(shape, grad.dtype)
        made = tape.pointwise(zeros)
        del held, zeros
        return (made,)

    out = tape.new((index.shape[0], *shape[1:]), x.dtype)
    return tape.record("index", out, (x,), backward)


def grouped(x: Tensor, weight: Tensor, offsets: Tensor) -> Tensor:
    """Each expert's rows times its own matrix, one kernel for all.

    Args:
        x: Rows sorted by expert [S, k]. [tensor]
        weight: Matrices [E, n, k]. [tensor]
        offsets: End of each expert's rows [E]. [tensor]

    Returns:
        [S, n]. [tensor]
    """
    tape, sides = x.tape, (x.shape, weight.shape)
    wanted = x.requires_grad, weight.requires_grad
    read = [t for t, used in ((x, wanted[1]), (weight, wanted[0])) if used]
    kept = [tape.save(t) for t in (*read, offsets)] if any(wanted) else []

    def backward(grad: Tensor) -> tuple[Grad, Grad]:
        held = [take() for take in kept]
        to_weight = tape.new(sides[1], grad.dtype) if wanted[1] else None
        to_x = tape.new(sides[0], grad.dtype) if wanted[0] else None
        del held
        return to_x, to_weight

    out = tape.new((x.shape[0], weight.shape[1]), x.dtype)
    return tape.record("grouped_mm", out, (x, weight), backward)


def picked(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row; the backward scatters into zeros.

    Args:
        x: [T, E]. [tensor]
        k: Number of values to pick. [1]

    Returns:
        Values and indices [T, k]. [tensors]
    """
    tape, shape = x.tape, x.shape
    values, index = tape.new((shape[0], k), x.dtype), tape.new((shape[0], k), I64)
    kept = tape.save(index) if x.requires_grad else None

    def backward(grad: Tensor) -> tuple[Grad]:
        held = None if kept is None else kept()
        zeros = tape.new(shape, grad.dtype)
        made = tape.pointwise(zeros)
        del held, zeros
        return (made,)

    return tape.record("topk", values, (x,), backward), index


def shares(values: Tensor) -> Tensor:
    """Divide values in place by their row sum; keep a copy of the values and the sum.

    Args:
        values: [T, k]. [tensor]

    Returns:
        The divided values, in the storage of ``values``. [tensor]
    """
    tape = values.tape
    total = tape.new((values.shape[0], 1), values.dtype)
    if not values.requires_grad:
        return values
    copy = tape.pointwise(values)
    kept = [tape.save(total), tape.save(copy)]

    def backward(grad: Tensor) -> tuple[Grad]:
        held = [take() for take in kept]
        first = tape.pointwise(grad)
        second = tape.pointwise(held[1])
        third = tape.pointwise(second)
        fourth = tape.pointwise(third)
        del second, third, fourth
        return (tape.pointwise(first),)

    return tape.record("div", values.alias(), (values,), backward)


def summed_by_token(x: Tensor, tokens: int) -> Tensor:
    """Sum of each token's rows; the backward copies the gradient to each row.

    Args:
        x: [tokens * k, h]. [tensor]
        tokens: Number of tokens. [tokens]

    Returns:
        [tokens, h]. [tensor]
    """
    tape, shape = x.tape, x.shape
    out = tape.new((tokens, shape[1]), x.dtype)

    def backward(grad: Tensor) -> tuple[Grad]:
        return (tape.new(shape, grad.dtype),)

    return tape.record("sum", out, (x,), backward)


class Router(Module):
    """Scores of the experts, the best k and their weights."""

    def __init__(self, setting: Setting, experts: int) -> None:
        arch = setting.arch
        self.kind = arch.traits.experts
        self.k = arch.fields["num_experts_per_tok"]
        self.normalised = self.kind == "mixtral" or arch.fields["norm_topk_prob"]
        self.weight = setting.tape.parameter((experts, arch.h), setting.dtype)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Route the tokens.

        Args:
            x: [T, h]. [tensor]

        Returns:
            Scores [T, E], weights and indices [T, k]. [tensors]
        """
        scores = linear(x, self.weight)
        chances = softmax(to(scores, F32))
        values, index = picked(chances, self.k)
        if self.normalised:
            values = shares(values)
        if self.kind != "mixtral":
            values = to(values, scores.dtype)
        return scores, values, index


class Experts(Module):
    """All experts' matrices in two tensors, applied to tokens sorted by expert."""

    def __init__(self, setting: Setting, experts: int, f: int) -> None:
        tape, h, dtype = setting.tape, setting.arch.h, setting.dtype
        self.act = ACTIVATIONS[setting.arch.activation]
        self.gate_up_proj = tape.parameter((experts, 2 * f, h), dtype)
        self.down_proj = tape.parameter((experts, h, f), dtype)

    def forward(self, x: Tensor, index: Tensor, weights: Tensor) -> Tensor:
        """Apply each token's experts and add their results.

        Args:
            x: [T, h]. [tensor]
            index: Chosen experts [T, k]. [tensor]
            weights: Their weights [T, k]. [tensor]

        Returns:
            [T, h]. [tensor]
        """
        tape, pairs = x.tape, index.numel
        experts, double = self.gate_up_proj.shape[:2]
        flat = reshape(weights, pairs)
        ordered, order = tape.new((pairs,), I64), tape.new((pairs,), I64)
        chosen = rows_of(x, tape.new((pairs,), I64))
        share = rows_of(flat, order)
        counted = tape.new((pairs,), I32)
        count, offsets = tape.new((experts,), I32), tape.new((experts,), I32)
        out = grouped(chosen, self.gate_up_proj, offsets)
        gate, up = split(out, 1, (double // 2, double // 2))
        out = mul(self.act(gate), up)
        del gate, up
        out = grouped(out, self.down_proj, offsets)
        weighted = mul(out, reshape(share, pairs, 1))
        inverse = tape.new((pairs,), I64)
        tape.new((pairs,), I64)
        weighted = rows_of(weighted, inverse)
        total = summed_by_token(weighted, x.shape[0])
        result = to(total, x.dtype)
        del ordered, counted, count
        return result


class ExpertLayer(Module):
    """Router and experts in place of the feed-forward, with Qwen2's shared expert."""

    def __init__(self, setting: Setting) -> None:
        arch = setting.arch
        count, f = _sizes(arch)
        self.kind = arch.traits.experts
        self.gate = Router(setting, count)
        self.experts = Experts(setting, count, f)
        if self.kind == "qwen2_moe":
            shared = arch.fields["shared_expert_intermediate_size"]
            self.shared_expert = GatedMlp(setting, shared)
            self.shared_expert_gate = Linear(setting.tape, arch.h, 1, setting.dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer.

        Args:
            x: [b, s, h]. [tensor]

        Returns:
            [b, s, h]. [tensor]
        """
        shape = x.shape
        rows = reshape(x, shape[0] * shape[1], shape[2])
        beside = self.shared_expert(rows) if self.kind == "qwen2_moe" else None
        _, weights, index = self.gate(rows)
        out = self.experts(rows, index, weights)
        if beside is not None:
            beside = mul(sigmoid(self.shared_expert_gate(rows)), beside)
            out = add(out, beside)
        return reshape(out, *shape)


def _sizes(arch: Architecture) -> tuple[int, int]:
    if arch.traits.experts == "mixtral":
        return arch.fields["num_local_experts"], arch.f
    if arch.traits.experts == "olmoe":
        return arch.fields["num_experts"], arch.f
    return arch.fields["num_experts"], arch.fields["moe_intermediate_size"]


def has_experts(arch: Architecture, layer: int) -> bool:
    """Tell if a block's feed-forward is a mixture of experts.

    Args:
        arch: The model. [architecture]
        layer: Number of the block, from 0. [1]

    Returns:
        True for a mixture of experts. [flag]
    """
    if arch.traits.experts is None:
        return False
    dense = arch.fields.get("mlp_only_layers") or []
    step = arch.fields.get("decoder_sparse_step", 1)
    return layer not in dense and (layer + 1) % step == 0


def check(compute: str, implementation: str | None) -> None:
    """Refuse experts whose memory depends on the routing, or that torch refuses.

    Args:
        compute: Type in which the weights are multiplied. [name]
        implementation: ``experts_implementation`` of the model. [name]

    Raises:
        Unsupported: When the experts do not run as one grouped product.
    """
    if implementation not in {None, "grouped_mm"}:
        raise Unsupported(
            f"experts_implementation {implementation}: what it allocates depends on "
            "which tokens go to which expert"
        )
    if compute != BF16:
        raise Unsupported("torch's grouped_mm takes bf16 experts alone")
