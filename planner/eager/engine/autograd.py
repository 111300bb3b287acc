"""Nodes of the backward graph and the engine that runs them.

The order is PyTorch's (torch/csrc/autograd/engine.cpp). Of the nodes whose consumers
have all run, the node made last runs first. Gradient accumulation runs before all
others. After a node has run, its incoming gradients are freed, then its saved tensors.
Then each result is added into the buffer of the next node.
"""

from __future__ import annotations

import heapq
import sys
import weakref
from collections.abc import Callable, Sequence

from planner.eager.engine.storage import Replicated, Shape, Tensor

Grads = Sequence["Tensor | None"]
Backward = Callable[..., Grads]
Edge = tuple["Node", int]
LAST = sys.maxsize


class Node:
    """One step of the backward pass, with the tensors it saved in its closure."""

    __slots__ = (
        "__weakref__",
        "edges",
        "meta",
        "name",
        "outputs",
        "run",
        "sequence",
    )

    def __init__(
        self,
        name: str,
        sequence: int,
        inputs: Sequence[Tensor | None],
        run: Backward | None,
        outputs: int = 1,
    ) -> None:
        self.name, self.sequence, self.run = name, sequence, run
        self.outputs = outputs
        self.edges: list[Edge | None] = [_edge(tensor) for tensor in inputs]
        self.meta: list[tuple[Shape, str] | None] = [
            None if tensor is None else (tensor.shape, tensor.dtype)
            for tensor in inputs
        ]


def _edge(tensor: Tensor | None) -> Edge | None:
    """Node and slot that receive the gradient of a tensor."""
    if tensor is None or not tensor.requires_grad:
        return None
    if tensor.node is not None:
        return tensor.node, tensor.slot
    found = None if tensor.accumulator is None else tensor.accumulator()
    if found is None:
        found = Node("accumulate", LAST, (), _Accumulate(tensor))
        tensor.accumulator = weakref.ref(found)
    return found, 0


class _Accumulate:
    """Puts a gradient into a leaf: the first is kept as it is, others are added."""

    __slots__ = ("leaf",)

    def __init__(self, leaf: Tensor) -> None:
        self.leaf = leaf

    def __call__(self, grad: Tensor | None) -> Grads:
        leaf = self.leaf
        if grad is None:
            return ()
        if leaf.grad is None:
            leaf.grad = grad.alias()
            grad.storage.relabel("grads")
        return ()


def _dependencies(root: Node) -> dict[Node, int]:
    """Number of results that each reachable node waits for. [1]."""
    waits: dict[Node, int] = {root: 0}
    todo = [root]
    while todo:
        for edge in todo.pop().edges:
            if edge is None:
                continue
            child = edge[0]
            if child not in waits:
                waits[child] = 0
                todo.append(child)
            waits[child] += 1
    return waits


class Engine:
    """One backward pass from a root."""

    def __init__(self, root: Tensor, grad: Tensor) -> None:
        assert root.node is not None
        self.waits = _dependencies(root.node)
        self.buffers: dict[Node, list[Tensor | None]] = {}
        self.ready: list[tuple[int, int, Node]] = []
        self.pushed = 0
        self._buffer(root.node)[root.slot] = grad
        self._push(root.node)

    def _push(self, node: Node) -> None:
        self.pushed += 1
        heapq.heappush(self.ready, (-node.sequence, self.pushed, node))

    def _buffer(self, node: Node) -> list[Tensor | None]:
        found = self.buffers.get(node)
        if found is None:
            found = self.buffers[node] = [None] * node.outputs
        return found

    def run(self) -> None:
        """Run every node once, freeing what each leaves behind."""
        while self.ready:
            node = heapq.heappop(self.ready)[2]
            results = self._call(node)
            if node.sequence != LAST:
                node.run = None
            self._hand_on(node, results)

    def _call(self, node: Node) -> list[Tensor | None]:
        """Run a node; its incoming gradients are gone when this returns."""
        grads = self.buffers.pop(node, None) or [None] * node.outputs
        assert node.run is not None, f"{node.name} ran before"
        results = list(node.run(*grads))
        for i, meta in enumerate(node.meta):
            result = results[i]
            if result is not None and meta is not None:
                results[i] = _fit(result, *meta)
        return results

    def _hand_on(self, node: Node, results: list[Tensor | None]) -> None:
        for i, edge in enumerate(node.edges):
            result, results[i] = results[i], None
            if edge is None:
                continue
            child, slot = edge
            self.waits[child] -= 1
            if result is not None:
                buffer = self._buffer(child)
                held, buffer[slot] = buffer[slot], None
                buffer[slot] = add(held, result)
                del held
            del result
            if not self.waits[child]:
                self._push(child)


def add(held: Tensor | None, new: Tensor) -> Tensor:
    """Sum of two gradients in a tensor of its own.

    PyTorch adds in place into a gradient that nothing else refers to
    (torch/csrc/autograd/input_buffer.cpp). It never does so for tensors with Python
    dispatch: tracked tensors and DTensors.

    Args:
        held: Sum of the earlier gradients, if any. [tensor]
        new: Gradient to add. [tensor]

    Returns:
        The sum. [tensor]
    """
    if held is None:
        return new
    if not new.tape.tracked and not isinstance(held, Replicated):
        if _owned(held):
            return held
        if _owned(new):
            return new
    return new.tape.pointwise(cut(held), cut(new))


FRAMES = 4
"""References to a tensor that only the engine's own frames hold. [1]

They are the names in ``add`` and in its caller, and two arguments: of ``_owned`` and
of ``getrefcount``."""


def _owned(grad: Tensor) -> bool:
    """True if the engine alone holds a dense gradient and its storage."""
    alone = sys.getrefcount(grad) == FRAMES and sys.getrefcount(grad.storage) == 2
    return alone and 0 not in grad.strides


def cut(grad: Tensor) -> Tensor:
    """Cut a gradient to its parameter's shard where it is whole on every rank.

    Args:
        grad: The gradient. [tensor]

    Returns:
        The gradient, or a copy of this rank's part. [tensor]
    """
    return grad.cut() if isinstance(grad, Replicated) else grad


def _fit(grad: Tensor, shape: Shape, dtype: str) -> Tensor:
    """Sum what was broadcast and take the input's type, as validate_outputs does."""
    if grad.shape != shape:
        grad = grad.tape.new(shape, grad.dtype)
    if grad.dtype != dtype:
        grad = grad.tape.new(shape, dtype)
    return grad
