"""Views and copies: reshape, transpose, slice, split, cat, contiguous, expand."""

from __future__ import annotations

from planner.eager.engine.storage import Shape, Tensor, view_strides

Grad = Tensor | None


def _reshaped(tensor: Tensor, shape: Shape) -> Tensor:
    """A view of another shape, or a dense copy; outside the graph."""
    strides = view_strides(tensor, shape)
    if strides is None:
        return tensor.tape.new(shape, tensor.dtype)
    return tensor.alias(shape, strides)


def reshape(x: Tensor, *shape: int) -> Tensor:
    """Another shape: a view where the layout allows, else a dense copy.

    Args:
        x: The tensor. [tensor]
        *shape: The wanted lengths. [elements]

    Returns:
        The view or copy. [tensor]
    """
    before = x.shape

    def backward(grad: Tensor) -> tuple[Grad]:
        return (_reshaped(grad, before),)

    return x.tape.record("view", _reshaped(x, shape), (x,), backward)


def _swapped(x: Tensor, i: int, j: int) -> Tensor:
    shape, strides = list(x.shape), list(x.strides)
    shape[i], shape[j] = shape[j], shape[i]
    strides[i], strides[j] = strides[j], strides[i]
    return x.alias(tuple(shape), tuple(strides))


def transpose(x: Tensor, i: int, j: int) -> Tensor:
    """Two dimensions exchanged; a view.

    Args:
        x: The tensor. [tensor]
        i: First dimension. [dimension]
        j: Second dimension. [dimension]

    Returns:
        The view. [tensor]
    """

    def backward(grad: Tensor) -> tuple[Grad]:
        return (_swapped(grad, i, j),)

    return x.tape.record("transpose", _swapped(x, i, j), (x,), backward)


def _part(x: Tensor, dim: int, length: int) -> Tensor:
    shape = list(x.shape)
    shape[dim] = length
    return x.alias(tuple(shape), x.strides)


def narrow(x: Tensor, dim: int, length: int) -> Tensor:
    """Slice of one dimension; the backward fills a zero tensor of the full shape.

    Args:
        x: The tensor. [tensor]
        dim: The dimension to cut. [dimension]
        length: Length of the slice. [elements]

    Returns:
        The view. [tensor]
    """
    full = x.shape

    def backward(grad: Tensor) -> tuple[Grad]:
        return (grad.tape.new(full, grad.dtype),)

    if length == full[dim]:
        return x
    return x.tape.record("slice", _part(x, dim, length), (x,), backward)


def split(x: Tensor, dim: int, lengths: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Parts of one dimension; the backward joins gradients, zeros for unused parts.

    Args:
        x: The tensor. [tensor]
        dim: The dimension to cut. [dimension]
        lengths: Lengths of the parts. [elements]

    Returns:
        The views. [tensors]
    """
    tape, full, dtype = x.tape, x.shape, x.dtype

    def backward(*grads: Grad) -> tuple[Grad]:
        fill = [
            tape.new((*full[:dim], n, *full[dim + 1 :]), dtype)
            for n, grad in zip(lengths, grads, strict=True)
            if grad is None
        ]
        joined = tape.new(full, dtype)
        del fill
        return (joined,)

    parts = tuple(_part(x, dim, length) for length in lengths)
    return tape.record_many("split", parts, (x,), backward)


def cat(parts: tuple[Tensor, ...], dim: int) -> Tensor:
    """Tensors joined along a dimension; the backward slices without copies.

    Args:
        parts: The tensors. [tensors]
        dim: The dimension to join along. [dimension]

    Returns:
        The joined tensor. [tensor]
    """
    first = parts[0]
    shape = list(first.shape)
    shape[dim] = sum(part.shape[dim] for part in parts)
    lengths = [part.shape[dim] for part in parts]
    out = first.tape.new(tuple(shape), first.dtype)

    def backward(grad: Tensor) -> tuple[Grad, ...]:
        return tuple(_part(grad, dim, length) for length in lengths)

    return first.tape.record("cat", out, parts, backward)


def contiguous(x: Tensor) -> Tensor:
    """The tensor itself when row-major, else a dense copy.

    Args:
        x: The tensor. [tensor]

    Returns:
        The tensor itself or the copy. [tensor]
    """
    return x if x.is_contiguous else copied(x)


def copied(x: Tensor) -> Tensor:
    """A dense copy.

    Args:
        x: The tensor. [tensor]

    Returns:
        The copy. [tensor]
    """
    out = x.tape.new(x.shape, x.dtype)
    return x.tape.record("clone", out, (x,), lambda grad: (grad,))


def expand(x: Tensor, shape: Shape) -> Tensor:
    """Repeat dimensions of length one without memory; the backward sums over them.

    Args:
        x: The tensor. [tensor]
        shape: The wanted lengths. [elements]

    Returns:
        The view. [tensor]
    """
    strides = tuple(
        0 if have != want else step
        for have, want, step in zip(x.shape, shape, x.strides, strict=True)
    )
    if shape == x.shape:
        return x
    return x.tape.record("expand", x.alias(shape, strides), (x,), lambda grad: (grad,))


def repeat_heads(x: Tensor, times: int, *, copied: bool = False) -> Tensor:
    """Key or value heads repeated for grouped queries, in a dense copy.

    A single head repeats as a view, unless the caller copies.

    Args:
        x: Heads as [batch, g, s, d]. [tensor]
        times: a / g. [1]
        copied: True to copy the repeated heads in any case. [flag]

    Returns:
        Heads as [batch, a, s, d]. [tensor]
    """
    if times == 1:
        return x
    b, g, s, d = x.shape
    bs, gs, ss, ds = x.strides
    out = x.alias((b, g, 1, s, d), (bs, gs, 0, ss, ds))
    x = x.tape.record("unsqueeze", out, (x,), _drop_third)
    x = expand(x, (b, g, times, s, d))
    if copied:
        out = x.tape.new(x.shape, x.dtype)
        x = x.tape.record("clone", out, (x,), lambda grad: (grad,))
    return reshape(x, b, g * times, s, d)


def _drop_third(grad: Tensor) -> tuple[Grad]:
    b, g, _, s, d = grad.shape
    bs, gs, _, ss, ds = grad.strides
    return (grad.alias((b, g, s, d), (bs, gs, ss, ds)),)
