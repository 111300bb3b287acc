"""FSDP2: weights sharded over ranks, gathered around each block, gradients reduced.

Each block is one group; the weights outside the blocks are one more. ``fully_shard``
on every block, then on the model, makes these groups
(torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py and _fsdp_collectives.py).
Beyond the shards, a step allocates:

- For a gather: a copy of the rank's shards in the type of the computation, the
  gathered buffer, then each whole weight. In the forward pass the buffer stays until
  the next group has copied out. In the backward pass the buffer is freed at once.
- In the backward pass: the gather of the group before, ahead of time (prefetch).
- For a reduction: all gradients of the group, padded, in the type of the reduction.
  That buffer stays until the next group reduces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from planner.eager.engine.storage import BF16, F32, SIZE, Replicated, Tensor
from planner.eager.engine.tape import Tape, needs
from planner.eager.modules import Module
from planner.eager.ops.pointwise import to

Place = tuple[Module, str]
IDLE, FORWARD, PRE_BACKWARD, POST_BACKWARD = "idle", "forward", "pre", "post"


@dataclass(frozen=True)
class Policy:
    """Ranks that share the weights, types, and a flag to free blocks after use."""

    world: int
    compute: str
    reduce: str
    reshard: bool
    mixed: bool


@dataclass
class Traffic:
    """Buffers in flight and order of use, shared by the groups of one model."""

    gathered: Tensor | None = None
    reduced: list[Tensor] = field(default_factory=list)
    order: list[Group] = field(default_factory=list)


class Weight:
    """One parameter: its shard on this rank, and the whole while it is gathered."""

    def __init__(self, places: list[Place], policy: Policy) -> None:
        self.places, self.policy = places, policy
        module, name = places[0]
        whole: Tensor = getattr(module, name)
        self.shape = whole.shape
        rows = -(-whole.shape[0] // policy.world)
        self.shard = whole.tape.parameter(
            (rows, *whole.shape[1:]), whole.dtype, trainable=whole.requires_grad
        )
        self.whole: Tensor | None = None
        self.show(self.shard)

    @property
    def padded(self) -> int:
        """Elements over all ranks, the last ones padded."""
        return self.shard.numel * self.policy.world

    def show(self, weight: Tensor) -> None:
        """Let the modules see the shard, or the whole.

        Args:
            weight: The shard or the whole weight. [tensor]
        """
        for module, name in self.places:
            setattr(module, name, weight)

    def fill(self) -> None:
        """Allocate the bytes of the whole weight."""
        dtype = self.policy.compute
        if self.whole is None:
            tape = self.shard.tape
            room = tape.new((self.padded,), dtype, category="unsharded_params")
            self.whole = room.alias(self.shape)
            self.whole.requires_grad = self.shard.requires_grad
        else:
            self.whole.storage.resize(self.padded * SIZE[dtype])

    def drop(self) -> None:
        """Free the bytes of the whole weight and show the shard."""
        if self.whole is not None:
            self.whole.storage.resize(0)
        self.show(self.shard)

    def take_gradient(self) -> Tensor | None:
        """Take the gradient from the whole weight.

        Returns:
            The gradient, if there is one. [tensor]
        """
        if self.whole is None or self.whole.grad is None:
            return None
        grad = self.whole.grad
        if isinstance(grad, Replicated):
            grad = grad.cut()
        self.whole.grad = None
        return grad


class Group:
    """The weights that are gathered and reduced together."""

    def __init__(
        self, tape: Tape, weights: list[Weight], policy: Policy, traffic: Traffic
    ) -> None:
        self.tape, self.weights = tape, weights
        self.policy, self.traffic = policy, traffic
        self.state, self.open = IDLE, False
        self.gathered: Tensor | None = None
        self.uses: list[int] = []

    def gather(self) -> None:
        """Start gathering, unless that was done."""
        if self.open or self.gathered is not None:
            return
        policy, tape = self.policy, self.tape
        count = sum(weight.shard.numel for weight in self.weights)
        mine = None
        if policy.world > 1 and self.weights[0].shard.dtype != policy.compute:
            mine = tape.new((count,), policy.compute)
        whole = count * policy.world if policy.world > 1 else 0
        self.gathered = tape.new((whole,), policy.compute, category="all_gather")
        del mine

    def copy_out(self) -> None:
        """Copy every whole weight out of the gathered buffer."""
        if self.gathered is None:
            return
        forward = self.state == FORWARD
        before = self.traffic.gathered if forward else None
        if forward:
            self.traffic.gathered = None
        cast = None
        for weight in self.weights:
            if self.policy.world == 1 and weight.shard.dtype != self.policy.compute:
                cast = self.tape.new((weight.shard.numel,), self.policy.compute)
            weight.fill()
        for weight in self.weights:
            assert weight.whole is not None
            weight.show(weight.whole)
        self.open = True
        if forward and self.policy.world > 1:
            self.traffic.gathered = self.gathered
        self.gathered = None
        del before, cast

    def close(self) -> None:
        """Keep the shards alone."""
        if self.open:
            for weight in self.weights:
                weight.drop()
            self.open = False

    def before_forward(self) -> None:
        """Gather for the forward pass."""
        self.state = FORWARD
        self.gather()
        self.copy_out()

    def after_forward(self) -> None:
        """Free the whole weights where asked and note the order of use."""
        if self.policy.reshard:
            self.close()
        self.uses.append(len(self.traffic.order))
        self.traffic.order.append(self)
        self.state = IDLE

    def before_backward(self) -> None:
        """Gather for the backward pass, and the group before ahead of time."""
        if self.state == PRE_BACKWARD:
            return
        self.state = PRE_BACKWARD
        self.gather()
        self.copy_out()
        if self.uses and (use := self.uses.pop()):
            self.traffic.order[use - 1].gather()

    def after_backward(self) -> None:
        """Free the whole weights; reduce their gradients into the shards' gradients."""
        self.state = POST_BACKWARD
        found = [(weight, weight.take_gradient()) for weight in self.weights]
        weights = [weight for weight, grad in found if grad is not None]
        grads = [grad for _, grad in found if grad is not None]
        del found
        self.close()
        self.traffic.reduced.clear()
        if grads:
            self.reduce(weights, grads)

    def reduce(self, weights: list[Weight], grads: list[Tensor]) -> None:
        """Scatter the sum of all ranks' gradients.

        The loop over the gradients leaves its variable bound. So the last gradient
        lives until the reduction returns.

        Args:
            weights: Weights that have a gradient. [weights]
            grads: Gradients of the weights; emptied once copied. [tensors]
        """
        tape, policy = self.tape, self.policy
        total = sum(weight.padded for weight in weights)
        buffer = tape.new((total,), policy.reduce, category="reduce_scatter")
        last = grads[-1]
        grads.clear()
        mine = tape.new((total // policy.world,), policy.reduce, category="grads")
        stored = weights[0].shard.dtype
        if stored != policy.reduce:
            mine = tape.new(mine.shape, stored, category="grads")
        for weight in weights:
            if weight.shard.grad is None:
                weight.shard.grad = mine.alias(weight.shard.shape)
        self.traffic.reduced.append(buffer)
        del last


class ShardedBlock(Module):
    """A block between gathering and freeing its weights.

    The hooks lie inside recomputation: the second forward finds the weights gathered.
    """

    def __init__(self, block: Module, group: Group) -> None:
        self.block, self.group = block, group

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Apply the block.

        Args:
            x: Input of the block. [tensor]
            *args: Other arguments of the block. [any]
            **kwargs: Named arguments of the block. [any]

        Returns:
            Output of the block. [tensor]
        """
        group = self.group
        x, args = cast(x, group.policy), cast(args, group.policy)
        kwargs = {name: cast(value, group.policy) for name, value in kwargs.items()}
        if group.state == PRE_BACKWARD:
            return self.block(x, *args, **kwargs)
        group.before_forward()
        x = watched(x, "reduce", group.after_backward)
        out = self.block(x, *args, **kwargs)
        group.after_forward()
        return watched(out, "gather", group.before_backward)


def cast(value: Any, policy: Policy) -> Any:
    """Cast a block's inputs to the type of compute (``cast_forward_inputs``).

    Args:
        value: A tensor, several, or anything else. [any]
        policy: Policy with the type of compute; casts only if mixed. [policy]

    Returns:
        The value, with fp32 and bf16 tensors cast where the policy is mixed. [any]
    """
    if isinstance(value, (tuple, list)):
        return type(value)(cast(part, policy) for part in value)
    if policy.mixed and isinstance(value, Tensor) and value.dtype in {F32, BF16}:
        return to(value, policy.compute)
    return value


def watched(x: Tensor, name: str, act: Callable[[], None]) -> Tensor:
    """Alias of a tensor that calls a function when its gradient passes.

    Args:
        x: The tensor to watch. [tensor]
        name: Name of the node in the graph. [name]
        act: The function to call. [callable]

    Returns:
        An alias in the graph, or the tensor where no gradient is needed. [tensor]
    """

    def backward(grad: Tensor) -> tuple[Tensor]:
        act()
        return (grad,)

    if not needs(x):
        return x
    return x.tape.record(name, x.alias(), (x,), backward)


class ShardedModel:
    """All groups of a model, and the passes of the group that holds the ends."""

    def __init__(self, model: Module, layers: list[Module], policy: Policy) -> None:
        tape = model.parameters()[0].tape
        self.tape, self.traffic = tape, Traffic()
        self.blocks = []
        for i, block in enumerate(layers):
            group = Group(tape, weights_of(block, policy), policy, self.traffic)
            layers[i] = ShardedBlock(block, group)
            self.blocks.append(group)
        inside = {id(w.shard) for group in self.blocks for w in group.weights}
        rest = weights_of(model, policy, without=inside)
        self.root = Group(tape, rest, policy, self.traffic)

    def before_forward(self) -> None:
        """Gather the ends."""
        self.root.before_forward()

    def after_forward(self, out: Tensor) -> Tensor:
        """Free the ends, and drop the last buffer of the forward pass.

        Args:
            out: Output of the model. [tensor]

        Returns:
            The output, watched. [tensor]
        """
        self.root.after_forward()
        self.traffic.gathered = None
        return watched(out, "gather", self.root.before_backward)

    def finish(self) -> None:
        """End a backward pass: reduce the groups that no gradient has set off."""
        for group in (self.root, *self.blocks):
            if group.state != POST_BACKWARD:
                group.after_backward()
            group.state = IDLE
            group.gathered = None
            group.uses.clear()
        self.traffic.order.clear()
        self.traffic.reduced.clear()


def weights_of(
    module: Module, policy: Policy, without: set[int] | None = None
) -> list[Weight]:
    """Shard every parameter below a module, a tied parameter once.

    Args:
        module: Module that holds the parameters. [module]
        policy: Policy of the sharding. [policy]
        without: Identities of tensors that another group has. [identities]

    Returns:
        The sharded parameters. [weights]
    """
    return [Weight(where, policy) for where in places_of(module, without or set())]


def places_of(module: Module, without: set[int]) -> list[list[Place]]:
    """Places of every parameter below a module, those of a tied one together.

    Args:
        module: Module that holds the parameters. [module]
        without: Identities of tensors to leave out. [identities]

    Returns:
        Owner and name, for each place of each parameter. [places]
    """
    places: dict[int, list[Place]] = {}
    for _, owner in module.modules():
        for name, value in vars(owner).items():
            if isinstance(value, Tensor) and id(value) not in without:
                places.setdefault(id(value), []).append((owner, name))
    return list(places.values())


def sharding(world: int, zero: int, dtype: str, *, mixed: bool) -> Policy:
    """Sharding policy of a case.

    Args:
        world: Ranks that share the weights. [GPUs]
        zero: 3 frees blocks after the forward pass, 2 keeps them. [stage]
        dtype: The type of the shards. [name]
        mixed: True to compute in bf16 and reduce in fp32. [flag]

    Returns:
        The policy. [policy]
    """
    compute, reduce = (BF16, F32) if mixed else (dtype, dtype)
    return Policy(world, compute, reduce, reshard=zero == 3, mixed=mixed)
