"""Elementwise operations, reductions of the last dimension, embedding and dropout."""

from __future__ import annotations

from planner.eager.engine.storage import BOOL, F32, Tensor

Grad = Tensor | None


def mul(a: Tensor, b: Tensor) -> Tensor:
    """Product; each factor is kept where the other needs a gradient.

    Args:
        a: First factor. [tensor]
        b: Second factor. [tensor]

    Returns:
        a * b. [tensor]
    """
    tape = a.tape
    first = tape.save(a) if b.requires_grad else None
    second = tape.save(b) if a.requires_grad else None

    def backward(grad: Tensor) -> tuple[Grad, Grad]:
        b_held = None if second is None else second()
        a_held = None if first is None else first()
        to_b = None if a_held is None else tape.pointwise(grad, a_held)
        to_a = None if b_held is None else tape.pointwise(grad, b_held)
        return to_a, to_b

    return tape.record("mul", tape.pointwise(a, b), (a, b), backward)


def add(a: Tensor, b: Tensor) -> Tensor:
    """Sum; each term gets the incoming gradient.

    Args:
        a: First term. [tensor]
        b: Second term. [tensor]

    Returns:
        a + b. [tensor]
    """
    return a.tape.record(
        "add", a.tape.pointwise(a, b), (a, b), lambda grad: (grad, grad)
    )


def scale(x: Tensor) -> Tensor:
    """Product with (or quotient by, or negation of) a number.

    Args:
        x: The tensor. [tensor]

    Returns:
        A tensor of x's shape and type. [tensor]
    """

    def backward(grad: Tensor) -> tuple[Grad]:
        return (grad.tape.pointwise(grad),)

    return x.tape.record("scale", x.tape.pointwise(x), (x,), backward)


def shift(x: Tensor) -> Tensor:
    """Sum with a number; the gradient passes unchanged.

    Args:
        x: The tensor. [tensor]

    Returns:
        A tensor of x's shape and type. [tensor]
    """
    return x.tape.record("shift", x.tape.pointwise(x), (x,), lambda grad: (grad,))


def to(x: Tensor, dtype: str) -> Tensor:
    """Cast a tensor to a type; a tensor of that type stays as it is.

    Args:
        x: The tensor. [tensor]
        dtype: The wanted type. [name]

    Returns:
        The tensor itself or the cast copy. [tensor]
    """
    if x.dtype == dtype:
        return x
    before = x.dtype

    def backward(grad: Tensor) -> tuple[Grad]:
        return (grad.tape.pointwise(grad, dtype=before),)

    return x.tape.record("to", x.tape.pointwise(x, dtype=dtype), (x,), backward)


def power(x: Tensor) -> Tensor:
    """x to a whole power; grad * (n * x^(n-1)) in three steps.

    On the fp32 list of ``torch.autocast``, as are softmax and sums.

    Args:
        x: The tensor. [tensor]

    Returns:
        x^n. [tensor]
    """
    tape = x.tape
    if tape.autocast:
        x = to(x, F32)
    kept = tape.save(x) if x.requires_grad else None

    def backward(grad: Tensor) -> tuple[Grad]:
        assert kept is not None
        held = kept()
        lower = tape.pointwise(held)
        scaled = tape.pointwise(lower)
        return (tape.pointwise(grad, scaled),)

    return tape.record("pow", tape.pointwise(x), (x,), backward)


def mean_last(x: Tensor) -> Tensor:
    """Mean over the last dimension, kept as length one.

    Args:
        x: The tensor. [tensor]

    Returns:
        The means. [tensor]
    """
    tape, shape, dtype = x.tape, x.shape, x.dtype
    out = tape.new((*shape[:-1], 1), dtype)

    def backward(_: Tensor) -> tuple[Grad]:
        return (tape.new(shape, dtype),)

    return tape.record("mean", out, (x,), backward)


def rsqrt(x: Tensor) -> Tensor:
    """1 / sqrt(x); keeps its result.

    Args:
        x: The tensor. [tensor]

    Returns:
        The reciprocal root. [tensor]
    """
    tape = x.tape
    out = tape.pointwise(x)
    kept = tape.save(out) if x.requires_grad else None

    def backward(grad: Tensor) -> tuple[Grad]:
        assert kept is not None
        held = kept()
        cube = tape.pointwise(held)
        half = tape.pointwise(cube)
        return (tape.pointwise(half, grad),)

    return tape.record("rsqrt", out, (x,), backward)


def tanh(x: Tensor) -> Tensor:
    """Hyperbolic tangent; keeps its result.

    Args:
        x: The tensor. [tensor]

    Returns:
        tanh(x). [tensor]
    """
    return _keeps_result(x, "tanh")


def sigmoid(x: Tensor) -> Tensor:
    """Logistic function; keeps its result.

    Args:
        x: The tensor. [tensor]

    Returns:
        sigmoid(x). [tensor]
    """
    return _keeps_result(x, "sigmoid")


def _keeps_result(x: Tensor, name: str) -> Tensor:
    tape = x.tape
    out = tape.pointwise(x)
    kept = tape.save(out) if x.requires_grad else None

    def backward(grad: Tensor) -> tuple[Grad]:
        assert kept is not None
        return (tape.pointwise(grad, kept()),)

    return tape.record(name, out, (x,), backward)


def gelu(x: Tensor) -> Tensor:
    """GELU as one kernel, exact or by tanh; keeps its input.

    Args:
        x: The tensor. [tensor]

    Returns:
        gelu(x). [tensor]
    """
    tape = x.tape
    kept = tape.save(x) if x.requires_grad else None

    def backward(grad: Tensor) -> tuple[Grad]:
        assert kept is not None
        return (tape.pointwise(grad, kept()),)

    return tape.record("gelu", tape.pointwise(x), (x,), backward)


def relu(x: Tensor) -> Tensor:
    """max(x, 0); keeps its result.

    Args:
        x: The tensor. [tensor]

    Returns:
        relu(x). [tensor]
    """
    return _keeps_result(x, "relu")


def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x); keeps its input.

    The backward is one kernel. Tracked tensors run the composite
    grad * (sig * (1 + x * (1 - sig))), every step in a tensor of its own.

    Args:
        x: The tensor. [tensor]

    Returns:
        silu(x). [tensor]
    """
    tape = x.tape
    kept = tape.save(x) if x.requires_grad else None

    def backward(grad: Tensor) -> tuple[Grad]:
        assert kept is not None
        value = kept()
        if not tape.tracked:
            return (tape.pointwise(grad, value),)
        sig = tape.pointwise(value)
        rest = tape.pointwise(sig)
        times = tape.pointwise(value, rest)
        plus = tape.pointwise(times)
        slope = tape.pointwise(sig, plus)
        return (tape.pointwise(grad, slope),)

    return tape.record("silu", tape.pointwise(x), (x,), backward)


def softmax(x: Tensor) -> Tensor:
    """Softmax of the last dimension; keeps its result.

    Args:
        x: The tensor. [tensor]

    Returns:
        The probabilities. [tensor]
    """
    return _keeps_result(to(x, F32) if x.tape.autocast else x, "softmax")


def dropout(x: Tensor) -> Tensor:
    """Dropout by the fused kernel; keeps a mask of one byte per element.

    Args:
        x: The tensor. [tensor]

    Returns:
        The thinned tensor. [tensor]
    """
    tape = x.tape
    out = tape.pointwise(x)
    mask = tape.pointwise(x, dtype=BOOL)
    kept = tape.save(mask) if x.requires_grad else None

    def backward(grad: Tensor) -> tuple[Grad]:
        assert kept is not None
        return (tape.pointwise(grad, kept()),)

    return tape.record("dropout", out, (x,), backward)


def embedding(ids: Tensor, weight: Tensor) -> Tensor:
    """Rows of a table; the backward makes a dense gradient of the table.

    Args:
        ids: Numbers of the rows. [tensor]
        weight: The table [V, h]. [tensor]

    Returns:
        The rows. [tensor]
    """
    tape, shape = ids.tape, weight.shape
    kept = tape.save(ids) if weight.requires_grad else None

    def backward(grad: Tensor) -> tuple[Grad]:
        held = None if kept is None else kept()
        made = tape.new(shape, grad.dtype)
        del held
        return (made,)

    out = tape.new((*ids.shape, shape[1]), weight.dtype)
    return tape.record("embedding", out, (weight,), backward)


def scalar(x: Tensor, name: str) -> Tensor:
    """A sum over everything; the gradient is expanded without memory.

    Args:
        x: The tensor. [tensor]
        name: The operation. [name]

    Returns:
        The sum. [tensor]
    """
    tape, shape = x.tape, x.shape

    def backward(grad: Tensor) -> tuple[Grad]:
        return (grad.alias(shape, (0,) * len(shape)),)

    dtype = F32 if tape.autocast else x.dtype
    return tape.record(name, tape.new((), dtype), (x,), backward)
