"""One iteration of one rank among many: FSDP2, tensor parallelism, a pipeline stage."""

from __future__ import annotations

from collections.abc import Sequence

from planner.eager.build import weight_type
from planner.eager.case import EagerCase, Unsupported
from planner.eager.engine.storage import BF16, F32, I64, Replicated, Tensor, Trace
from planner.eager.iteration import Iteration
from planner.eager.losses import logits_of, loss_of, plain_loss
from planner.eager.models.decoder import CausalModel
from planner.eager.modules import Identity, RMSNorm
from planner.eager.ops.pointwise import scalar, to
from planner.eager.ops.views import reshape
from planner.eager.optimizer import Optimizer
from planner.eager.sharding.flat import FlatModel
from planner.eager.sharding.fsdp import ShardedModel, sharding
from planner.eager.sharding.tensor_parallel import split_cross_entropy, split_model


class ParallelIteration(Iteration):
    """An iteration whose model is cut, split and sharded after it was made."""

    def __init__(
        self,
        case: EagerCase,
        depths: Sequence[int] | None = None,
        *,
        tracked: bool = True,
        trace: Trace | None = None,
    ) -> None:
        self.sharded: ShardedModel | None = None
        self.flat: FlatModel | None = None
        self.stream: Tensor | None = None
        self.received: list[Tensor] = []
        super().__init__(case, depths, tracked=tracked, trace=trace)
        if case.stage > 0:
            self.stream = self._from_the_stage_before()
        self.tape.ledger.restart()

    def _from_the_stage_before(self) -> Tensor:
        case = self.case
        tokens = case.seq // (case.tp if case.sp else 1)
        dtype = F32 if case.precision == "fp32" else BF16
        shape = (case.mbs, tokens, self.arch.h)
        stream = self.tape.new(shape, dtype, category="inputs")
        stream.requires_grad = True
        return stream

    def make(self) -> CausalModel:
        """Make this rank's part of the model.

        Returns:
            The model with its parameters. [module]

        Raises:
            Unsupported: When a stage or rank would have no part.
        """
        case, model = self.case, super().make()
        if case.pp > 1:
            cut_to_stage(model, case)
            self.count(model)
        if case.tp > 1:
            split_model(model, case)
        if case.zero and case.flat:
            self.flat = self._wrap(model)
        elif case.zero:
            self.sharded = self._shard(model)
        return model

    def _wrap(self, model: CausalModel) -> FlatModel:
        case = self.case
        if case.tp > 1 or case.pp > 1 or case.mp:
            raise Unsupported("flat parameters of split models, or in mixed precision")
        self.tape.ledger.mark("loaded")
        policy = sharding(case.world, case.zero, weight_type(case), mixed=False)
        flat = FlatModel(model, model.model.layers, policy, offload=case.offload)
        self.tape.after_backward.append(flat.finish)
        return flat

    def _shard(self, model: CausalModel) -> ShardedModel:
        case = self.case
        if case.loss.startswith("chunked"):
            raise Unsupported("a chunked loss goes past the root that FSDP2 gathers")
        ranks = max(case.world, case.tp) // case.tp
        policy = sharding(ranks, case.zero, weight_type(case), mixed=case.mp)
        sharded = ShardedModel(model, model.model.layers, policy)
        self.tape.after_backward.append(sharded.finish)
        return sharded

    def optimizer_of(self, model: CausalModel) -> Optimizer:
        """The optimizer over this rank's parameters.

        Args:
            model: The model. [module]

        Returns:
            The optimizer with its states. [optimizer]
        """
        case = self.case
        if case.tp > 1 and not case.sp:
            # Plain norms beside split products: the list kernels refuse the mixture.
            case = case.model_copy(update={"opt_impl": "forloop"})
        split = case.tp > 1 and not case.zero
        kind = SplitOptimizer if split else Optimizer
        optimizer = kind(case, model.parameters())
        if isinstance(optimizer, SplitOptimizer) and case.sp:
            optimizer.partial = norms_of(model)
        return optimizer

    def forward(self) -> Tensor:
        """One forward pass to the loss, or to the next stage.

        Returns:
            The loss, or the stream. [tensor]
        """
        case = self.case
        positions = self.tape.new((case.seq,), I64).alias((1, case.seq))
        given = positions if case.tp > 1 or case.stage > 0 else None
        start = self.ids if self.stream is None else self.stream
        with self.tape.casting(enabled=case.precision == "amp_bf16"):
            for model in (self.sharded, self.flat):
                if model is not None:
                    model.before_forward()
            hidden = [self.model.model(start, given)]
            if case.stage < case.pp - 1:
                return self.left(hidden.pop())
            return self._loss(hidden)

    def backward(self, out: Tensor) -> None:
        """One backward pass; the gradient sent by the next stage stays in its buffer.

        Args:
            out: The loss, or the stream given to the next stage. [tensor]
        """
        grad = self.tape.pointwise(out)
        if self.case.stage < self.case.pp - 1:
            self.received.append(grad)
        self.tape.backward(out, grad)

    def left(self, out: Tensor) -> Tensor:
        """Pass the model's output through the root's hooks.

        Args:
            out: Logits, or the stream of a stage. [tensor]

        Returns:
            The output. [tensor]
        """
        return out if self.sharded is None else self.sharded.after_forward(out)

    def _loss(self, hidden: list[Tensor]) -> Tensor:
        """The loss; the stream leaves its list once the head has read it."""
        case, model = self.case, self.model
        if case.tp == 1 and (not case.zero or self.flat):
            loss = loss_of(case, model, self.ids, hidden.pop(), self.kept)
            return loss if self.flat is None else self.flat.after_forward(loss)
        logits = self.left(logits_of(model, hidden.pop()))
        if case.loss == "none" and case.tp == 1:
            return scalar(logits, "sum")
        if case.tp == 1:
            return plain_loss(logits, self.ids)
        b, s, v = logits.shape
        return split_cross_entropy(reshape(to(logits, F32), b * s, v), self.ids)


class SplitOptimizer(Optimizer):
    """An optimizer whose gradients are brought to their parameters' shards first."""

    partial: list[Tensor]

    def step(self) -> None:
        """Update every parameter; gradients whole on every rank are cut meanwhile."""
        brought = []
        if self.kind in {"sgd", "sgdm"} or (self.fused and self.kind == "adamw"):
            whole = [p.grad for p in self.parameters if isinstance(p.grad, Replicated)]
            brought = [grad.cut() for grad in whole]
            sums = getattr(self, "partial", [])
            brought += [p.tape.new(p.shape, p.dtype) for p in sums]
        super().step()
        del brought

    def _master_step(self) -> None:
        """As on one GPU, but a whole gradient is cast whole and cut at each use."""
        cast = root = None
        for p in self._given():
            grad = p.grad
            if isinstance(grad, Replicated):
                cast = p.tape.new(grad.whole, F32)
                cuts = [p.tape.new(p.shape, F32) for _ in range(2)]
                del cuts
            else:
                cast = p.tape.new(p.shape, F32)
            root = p.tape.new(p.shape, F32)
        del cast, root


def norms_of(model: CausalModel) -> list[Tensor]:
    """Gains of the norms; under SP each rank has a share of their gradients.

    Args:
        model: The model. [module]

    Returns:
        The parameters. [tensors]
    """
    return [m.weight for _, m in model.modules() if isinstance(m, RMSNorm)]


def cut_to_stage(model: CausalModel, case: EagerCase) -> None:
    """Leave the blocks and ends that one stage holds.

    Args:
        model: The model, changed in place. [module]
        case: The case, with the stage and the number of stages. [case]

    Raises:
        Unsupported: When there is no such stage, or it would hold no block.
    """
    core = model.model
    held = len(core.layers) // case.pp
    if not held:
        raise Unsupported(f"{len(core.layers)} blocks make no {case.pp} stages")
    if case.stage >= case.pp:
        raise Unsupported(f"stage {case.stage} of {case.pp}, counted from 0")
    del core.layers[held:]
    if case.stage > 0:
        core.embed_tokens = None
    if case.stage < case.pp - 1:
        model.lm_head = Identity()
        core.norm = Identity()


def parallel(case: EagerCase) -> bool:
    """Tell if a case is one rank among many.

    Args:
        case: The case. [case]

    Returns:
        True for FSDP2, tensor parallelism or a pipeline. [flag]
    """
    return bool(case.zero) or case.tp > 1 or case.pp > 1
