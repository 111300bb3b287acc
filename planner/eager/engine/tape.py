"""The tape in force while operations run: ledger, phase, hooks, policy, autocast."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from planner.eager.engine.autograd import Backward, Engine, Node
from planner.eager.engine.storage import F32, SIZE, Ledger, Shape, Storage, Tensor

Unpack = Callable[[], Tensor]
Pack = Callable[[Tensor], Unpack]


class Tape:
    """Creates tensors, saves them for backward and records nodes.

    Tracked tensors have Python dispatch, as under PyTorch's memory trackers. SiLU's
    backward then runs in single operations and gradients are summed out of place.
    Allocations inside a kernel are not seen. Inputs that were made to need gradients
    stay, as the trackers' hooks hold them. Untracked tensors run as on a GPU.
    """

    def __init__(self, *, tracked: bool = True) -> None:
        self.tracked = tracked
        self.ledger = Ledger()
        self.category = "activations"
        self.sequence = 0
        self.packs: list[Pack] = []
        self.keeper: Keeper | None = None
        self.autocast = False
        self.casts: dict[int, Tensor] = {}
        self.after_backward: list[Callable[[], None]] = []
        self.leaves: list[Tensor] = []

    def new(
        self,
        shape: Shape,
        dtype: str,
        strides: Shape | None = None,
        category: str | None = None,
    ) -> Tensor:
        """Allocate a tensor.

        Args:
            shape: Lengths of the dimensions. [elements]
            dtype: Type of the elements. [name]
            strides: Strides of the tensor; row-major when left out. [elements]
            category: Category of the bytes; the phase's when left out. [name]

        Returns:
            The tensor, outside the graph. [tensor]
        """
        size = math.prod(shape) * SIZE[dtype]
        storage = Storage(self.ledger, size, category or self.category)
        return Tensor(self, storage, shape, dtype, strides)

    def pointwise(self, *tensors: Tensor, dtype: str | None = None) -> Tensor:
        """Allocate the result of an elementwise operation of tensors.

        Shape by broadcasting, type by promotion, layout of the first operand that has
        the result's shape (aten/src/ATen/TensorIterator.cpp).

        Args:
            *tensors: The operands. [tensors]
            dtype: The result's type; promoted when left out. [name]

        Returns:
            The result, outside the graph. [tensor]
        """
        first = tensors[0]
        shape = first.shape
        kind = dtype or first.dtype
        for other in tensors[1:]:
            if other.shape != shape:
                shape = broadcast(shape, other.shape)
            if dtype is None and SIZE[other.dtype] > SIZE[kind] and other.shape:
                kind = other.dtype
        return self.new(shape, kind, _layout(tensors, shape))

    def save(self, tensor: Tensor) -> Unpack:
        """Keep a tensor for the backward pass, through the hooks in force.

        Args:
            tensor: Tensor that the backward formula reads. [tensor]

        Returns:
            A function that gives the tensor back. [callable]
        """
        kept = tensor.alias()
        if self.packs:
            return self.packs[-1](kept)
        return lambda: kept

    def record(
        self,
        name: str,
        output: Tensor,
        inputs: Sequence[Tensor | None],
        backward: Backward,
    ) -> Tensor:
        """Give a result its node, if any input needs a gradient.

        Args:
            name: The operation. [name]
            output: Result of the operation. [tensor]
            inputs: Tensors read, in the order of the gradients. [tensors]
            backward: From the result's gradient to the inputs' gradients. [callable]

        Returns:
            The result, in the graph. [tensor]
        """
        return self.record_many(name, (output,), inputs, backward)[0]

    def record_many(
        self,
        name: str,
        outputs: tuple[Tensor, ...],
        inputs: Sequence[Tensor | None],
        backward: Backward,
    ) -> tuple[Tensor, ...]:
        """Give an operation's results their node, if any input needs a gradient.

        Args:
            name: The operation. [name]
            outputs: Results of the operation. [tensors]
            inputs: Tensors read, in the order of the gradients. [tensors]
            backward: From the results' gradients to the inputs' gradients. [callable]

        Returns:
            The results, in the graph. [tensors]
        """
        if not needs(*inputs):
            return outputs
        self.sequence += 1
        node = Node(name, self.sequence, inputs, backward, len(outputs))
        for slot, output in enumerate(outputs):
            output.node, output.slot, output.requires_grad = node, slot, True
        return outputs

    def backward(self, root: Tensor, grad: Tensor) -> None:
        """Run the backward pass from a tensor.

        Args:
            root: The loss, or a stage's output. [tensor]
            grad: Gradient of the root, held until the end. [tensor]
        """
        Engine(root, grad).run()
        if not self.tracked:
            self.leaves.clear()
        for callback in self.after_backward:
            callback()

    @contextmanager
    def packing(self, pack: Pack) -> Iterator[None]:
        """Send every saved tensor through a hook.

        Args:
            pack: From a tensor to a function that gives the tensor back. [callable]
        """
        self.packs.append(pack)
        try:
            yield
        finally:
            self.packs.pop()

    @contextmanager
    def casting(self, *, enabled: bool) -> Iterator[None]:
        """Run matrix products in bf16, as ``torch.autocast`` does.

        Casts of parameters are kept until the outermost context ends.

        Args:
            enabled: True to turn autocast on. [flag]
        """
        before, self.autocast = self.autocast, enabled
        try:
            yield
        finally:
            self.autocast = before
            if not before:
                self.casts.clear()

    def parameter(
        self, shape: Shape, dtype: str = F32, *, trainable: bool = True
    ) -> Tensor:
        """Allocate a weight.

        Args:
            shape: Lengths of the dimensions. [elements]
            dtype: Type of the elements. [name]
            trainable: True if the weight gets a gradient. [flag]

        Returns:
            The leaf. [tensor]
        """
        weight = self.new(shape, dtype, category="params")
        weight.requires_grad = trainable
        return weight


class Keeper:
    """Keeps the results of some operations across a recomputation, by policy."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.kept: list[tuple[Tensor, ...]] = []
        self.replaying = False
        self.position = 0

    def run(
        self, name: str, compute: Callable[[], tuple[Tensor, ...]]
    ) -> tuple[Tensor, ...]:
        """Run an operation, or give back the results of its first run.

        Args:
            name: The operation. [name]
            compute: Function that allocates the results. [callable]

        Returns:
            The results, outside the graph. [tensors]
        """
        if name not in self.names:
            return compute()
        if not self.replaying:
            results = compute()
            self.kept.append(tuple(result.alias() for result in results))
            return results
        results, self.kept[self.position] = self.kept[self.position], ()
        self.position += 1
        return results


def kept(
    tape: Tape, name: str, compute: Callable[[], tuple[Tensor, ...]]
) -> tuple[Tensor, ...]:
    """Run an operation under the policy in force.

    Args:
        tape: Tape with the policy in force. [tape]
        name: The operation. [name]
        compute: Function that allocates the results. [callable]

    Returns:
        The results, outside the graph. [tensors]
    """
    return compute() if tape.keeper is None else tape.keeper.run(name, compute)


def needs(*tensors: Tensor | None) -> bool:
    """Tell if any tensor needs a gradient.

    Args:
        *tensors: Tensors to look at; None needs no gradient. [tensors]

    Returns:
        True if at least one tensor needs a gradient. [flag]
    """
    return any(tensor is not None and tensor.requires_grad for tensor in tensors)


def broadcast(a: Shape, b: Shape) -> Shape:
    """Shape of two broadcast shapes.

    Args:
        a: First shape. [elements]
        b: Second shape. [elements]

    Returns:
        The common shape. [elements]
    """
    if len(a) < len(b):
        a = (1,) * (len(b) - len(a)) + a
    if len(b) < len(a):
        b = (1,) * (len(a) - len(b)) + b
    return tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))


def _layout(tensors: Sequence[Tensor], shape: Shape) -> Shape | None:
    """Dense strides in the order of the first operand of the full shape."""
    for tensor in tensors:
        if tensor.shape == shape:
            return None if tensor.is_contiguous else dense_like(tensor)
    return None


def dense_like(tensor: Tensor) -> Shape:
    """Strides of a dense copy that keeps a tensor's order of dimensions.

    Args:
        tensor: The tensor to copy. [tensor]

    Returns:
        One stride per dimension. [elements]
    """
    rank = range(len(tensor.shape))
    order = sorted(rank, key=lambda i: (-tensor.strides[i], i))
    strides, step = [0] * len(tensor.shape), 1
    for i in reversed(order):
        strides[i] = step
        step *= tensor.shape[i]
    return tuple(strides)
