"""Positions: rotary embeddings of queries and keys, and the positions themselves."""

from __future__ import annotations

from planner.eager.engine.storage import F32, Tensor
from planner.eager.ops.pointwise import add, mul, scale, to
from planner.eager.ops.views import cat, narrow

Angles = tuple[Tensor, Tensor]


def rotary_angles(positions: Tensor, d: int, dtype: str) -> Angles:
    """Cosines and sines of the positions, outside the graph.

    Args:
        positions: [1, s]. [tensor]
        d: Elements of a head that are rotated. [elements]
        dtype: Type of the cosines and sines. [name]

    Returns:
        cos and sin as [1, 1, s, d]. [tensors]
    """
    tape, s = positions.tape, positions.shape[-1]
    halves = tape.new((1, s, 1), F32)
    halves = tape.new((1, s, d // 2), F32)
    angles = tape.new((1, s, d), F32)
    cos = tape.pointwise(angles)
    cos = tape.pointwise(cos)
    sin = tape.pointwise(angles)
    sin = tape.pointwise(sin)
    if dtype != F32:
        cos, sin = tape.pointwise(cos, dtype=dtype), tape.pointwise(sin, dtype=dtype)
    del halves
    return cos.alias((1, 1, s, d)), sin.alias((1, 1, s, d))


def rotate_half(x: Tensor) -> Tensor:
    """The second half negated, then the first.

    Args:
        x: Heads [..., d]. [tensor]

    Returns:
        The rotated heads. [tensor]
    """
    half = x.shape[-1] // 2
    first = narrow(x, -1, half)
    second = narrow(x, -1, half)
    return cat((scale(second), first), -1)


def rotary(
    q: Tensor, k: Tensor, angles: Angles, kind: str = "all"
) -> tuple[Tensor, Tensor]:
    """Rotary position embedding of queries and keys.

    Args:
        q: [b, a, s, d]. [tensor]
        k: [b, g, s, d]. [tensor]
        angles: cos and sin. [tensors]
        kind: The family's way: ``joined`` rotates a part of each head. [name]

    Returns:
        Both, rotated. [tensors]
    """
    if kind == "joined":
        return joined_rotary(q, k, angles)
    turned, other = rotated(q, angles), rotated(k, angles)
    return to(turned, q.dtype), to(other, k.dtype)


def joined_rotary(q: Tensor, k: Tensor, angles: Angles) -> tuple[Tensor, Tensor]:
    """Rotary position embedding of the first part of each head, joined with the rest.

    Args:
        q: [b, a, s, d]. [tensor]
        k: [b, g, s, d]. [tensor]
        angles: cos and sin of the part. [tensors]

    Returns:
        Both, rotated, in row-major copies. [tensors]
    """
    part = angles[0].shape[-1]
    q_turned, q_rest = narrow(q, -1, part), narrow(q, -1, q.shape[-1] - part)
    k_turned, k_rest = narrow(k, -1, part), narrow(k, -1, k.shape[-1] - part)
    turned = cat((rotated(q_turned, angles), q_rest), -1)
    return turned, cat((rotated(k_turned, angles), k_rest), -1)


def rotated(x: Tensor, angles: Angles) -> Tensor:
    """Heads times cosines plus their rotated halves times sines.

    Args:
        x: [b, a, s, d]. [tensor]
        angles: cos and sin. [tensors]

    Returns:
        The rotated heads. [tensor]
    """
    return add(mul(x, angles[0]), mul(rotate_half(x), angles[1]))


def made_positions(embedded: Tensor) -> Tensor:
    """Positions 0 to s-1, made in two steps.

    Args:
        embedded: [b, s, h]. [tensor]

    Returns:
        [1, s]. [tensor]
    """
    tape, s = embedded.tape, embedded.shape[1]
    counted = tape.new((s,), "i64")
    return tape.pointwise(counted).alias((1, s))
