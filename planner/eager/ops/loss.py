"""Cross entropy over the vocabulary and its parts."""

from __future__ import annotations

from planner.eager.engine.storage import F32, Tensor

Grad = Tensor | None


def log_softmax(x: Tensor) -> Tensor:
    """Log-softmax of the last dimension; keeps its result, V * 4 bytes a token.

    Args:
        x: The logits. [tensor]

    Returns:
        The log probabilities. [tensor]
    """
    tape = x.tape
    out = tape.pointwise(x)
    kept = tape.save(out) if x.requires_grad else None

    def backward(grad: Tensor) -> tuple[Grad]:
        assert kept is not None
        held = kept()
        return (tape.pointwise(held, dtype=grad.dtype),)

    return tape.record("log_softmax", out, (x,), backward)


def nll(x: Tensor, labels: Tensor) -> Tensor:
    """Negative log-likelihood; its gradient is as large as its input.

    Args:
        x: Log probabilities [T, V]. [tensor]
        labels: The right classes [T]. [tensor]

    Returns:
        The loss. [tensor]
    """
    tape = x.tape
    on = x.requires_grad
    kept = [tape.save(x), tape.save(labels)] if on else []
    out, weight = tape.new((), F32), tape.new((), F32)
    if on:
        kept.append(tape.save(weight))

    def backward(_: Tensor) -> tuple[Grad]:
        held = [take() for take in kept]
        return (tape.pointwise(held[0]),)

    return tape.record("nll", out, (x,), backward)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """log_softmax, then nll.

    Args:
        logits: [T, V]. [tensor]
        labels: The right classes [T]. [tensor]

    Returns:
        The loss. [tensor]
    """
    return nll(log_softmax(logits), labels)
