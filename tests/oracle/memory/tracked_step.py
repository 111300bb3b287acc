"""One training step on fake tensors, with PyTorch's own trackers counting."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from fake_cuda import fake_cuda
from fake_models import (
    adapted,
    built,
    cut_to_stage,
    decoder_layers,
    recompute,
    without_masks,
)
from fake_parallel import loss_over_ranks, shard_fully, split, split_tensors
from fake_ranks import ranks
from gpu_attention import chosen_attention
from trackers import Most, NoHook, ShardedTracker, Tracker

torch = pytest.importorskip("torch")
fakes = pytest.importorskip("torch._subclasses.fake_tensor")
checkpoint = pytest.importorskip("torch.utils.checkpoint").checkpoint
F = torch.nn.functional
CHUNKS = 8
"""Pieces into which a chunked loss cuts the tokens."""


class MasterAdamW(torch.optim.Optimizer):
    """AdamW over an fp32 copy of bf16 weights, as Megatron and DeepSpeed keep it."""

    def __init__(self, weights: Any) -> None:
        super().__init__(weights, {"lr": 1e-3})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        del closure
        for weight in self.param_groups[0]["params"]:
            state = self.state[weight]
            if not state:
                state["master"] = weight.detach().float()
                state["mean"] = torch.zeros_like(state["master"])
                state["square"] = torch.zeros_like(state["master"])
            grad = weight.grad.float()
            state["mean"].mul_(0.9).add_(grad, alpha=0.1)
            state["square"].mul_(0.95).addcmul_(grad, grad, value=0.05)
            root = state["square"].sqrt().add_(1e-8)
            state["master"].addcdiv_(state["mean"], root, value=-1e-3)
            weight.copy_(state["master"])


def optimizer_of(case: Any, model: Any) -> Any:
    """Optimizer over what trains, with the states of a step already taken."""
    weights = [w for w in model.parameters() if w.requires_grad]
    if case.optimizer == "none":
        return None
    optimizer = _optimizer(case, weights)
    for weight in weights:
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    optimizer.zero_grad()
    return optimizer


def _optimizer(case: Any, weights: Any) -> Any:
    # Plain norms beside sharded products: the list kernels refuse the mixture.
    mixture = case.tp > 1 and not case.sp
    how = "forloop" if mixture else case.opt_impl
    fused = {"fused": True}
    kernel = fused if how == "fused" else {"foreach": how == "foreach"}
    if case.precision == "master_bf16":
        return MasterAdamW(weights)
    if case.optimizer == "adamw":
        return torch.optim.AdamW(weights, lr=1e-3, **kernel)
    momentum = {"sgd": 0.0, "sgdm": 0.9}[case.optimizer]
    return torch.optim.SGD(weights, lr=1e-3, momentum=momentum, **kernel)


class Step:
    """One step of a case: what it runs, and who counts."""

    def __init__(self, case: Any, model: Any, mesh: Any, device: str) -> None:
        self.case, self.model, self.mesh = case, model, mesh
        self.device = device
        self.optimizer = optimizer_of(case, model)
        self.ids = torch.randint(0, 1000, (case.mbs, case.seq))
        self.inputs = None if case.stage == 0 else self._from_the_stage_before()
        self.kept: list[Any] = []
        self.tracker = self._tracker()
        self.tracker.device = device

    def _from_the_stage_before(self) -> Any:
        case = self.case
        dtype = torch.float32 if case.precision == "fp32" else torch.bfloat16
        tokens = case.seq // (case.tp if case.sp else 1)
        shape = (case.mbs, tokens, self.model.config.hidden_size)
        return torch.randn(*shape, dtype=dtype, requires_grad=True)

    def _tracker(self) -> Any:
        if self.case.zero:
            tracker = ShardedTracker(self.model, self.optimizer)
            tracker.track_inputs((self.ids,))
            return tracker
        tracker = Tracker()
        known = (self.model, self.optimizer, self.ids)
        tracker.track_external(*[part for part in known if part is not None])
        for weight in self.model.parameters():
            if not weight.requires_grad:
                # It would hang a hook on the gradient that a frozen one never has.
                tracker._param_to_grad_hook_handles[weight] = (NoHook, NoHook)
        return tracker

    def forward(self) -> Any:
        """Run one micro-batch forward, loss included."""
        case = self.case
        enabled = case.precision == "amp_bf16"
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=enabled):
            positions = torch.arange(case.seq).unsqueeze(0)
            arguments = self._arguments(positions)
            if case.stage < case.pp - 1:
                return self.model.model(**arguments).last_hidden_state
            if case.loss == "chunked":
                return self._chunked(arguments)
            return self._loss(arguments)

    def _arguments(self, positions: Any) -> dict[str, Any]:
        first = self.inputs is None
        tokens = {"input_ids": self.ids} if first else {"inputs_embeds": self.inputs}
        if self.case.tp > 1 or not first:
            tokens["position_ids"] = positions
        return tokens

    def _loss(self, arguments: dict[str, Any]) -> Any:
        case = self.case
        if not (case.tp > 1 or case.zero or case.loss == "none"):
            out = self.model(labels=self.ids, **arguments)
            self.kept.extend([out] if case.keep_outputs else [])
            return out.loss
        out = self.model(**arguments)
        if case.tp > 1:
            return loss_over_ranks(out.logits, self.ids, self.mesh["tp"])
        if case.loss == "none":
            return out.logits.sum()
        return F.cross_entropy(out.logits.float().flatten(0, 1), self.ids.flatten())

    def _chunked(self, arguments: dict[str, Any]) -> Any:
        """Head and loss of a few tokens at a time, each again in backward."""
        base = self.model.get_base_model() if self.case.lora else self.model
        hidden = base.model(**arguments).last_hidden_state.flatten(0, 1)
        head = base.lm_head.weight

        def one(tokens: Any, labels: Any) -> Any:
            logits = (tokens @ head.t()).float()
            return F.cross_entropy(logits, labels, reduction="sum")

        total = hidden.new_zeros((), dtype=torch.float32)
        pieces = zip(
            hidden.chunk(CHUNKS), self.ids.flatten().chunk(CHUNKS), strict=True
        )
        for tokens, labels in pieces:
            total = total + checkpoint(one, tokens, labels, use_reentrant=False)
        return total / self.ids.numel()

    def backward(self, out: Any) -> None:
        """Run one micro-batch backward."""
        if self.case.stage < self.case.pp - 1:
            out.backward(torch.ones_like(out))
        elif self.case.tp > 1:
            with split.loss_parallel():
                out.backward()
        else:
            out.backward()

    def run(self) -> dict[str, Most]:
        """Most bytes by phase: forward and backward of each micro-step, step."""
        phases = {}
        with self.tracker:
            self.tracker.phase()
            for turn in range(self.case.ga):
                flight = [self._forget(self.forward) for _ in self._in_flight()]
                phases[f"forward{turn or ''}"] = self.tracker.phase()
                while flight:
                    self.backward(flight.pop(0))
                phases[f"backward{turn or ''}"] = self.tracker.phase()
            if self.optimizer is not None:
                self.optimizer.step()
                phases["step"] = self.tracker.phase()
        return phases

    def _in_flight(self) -> range:
        """Micro-batches that 1F1B holds at this stage."""
        return range(self.case.pp - self.case.stage)

    def _forget(self, forward: Callable[[], Any]) -> Any:
        """Let the tracker see the same modules again."""
        self.tracker.reset_mod_stats()
        return forward()


@contextmanager
def machine(case: Any, device: str) -> Iterator[Any]:
    """A fake GPU (or CPU) and the mesh of a case's ranks, or None for one rank."""
    world = max(case.world, case.tp)
    with ExitStack() as stack:
        if device == "cuda":
            stack.enter_context(fake_cuda())
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(F, "scaled_dot_product_attention", chosen_attention)
        mesh = stack.enter_context(ranks(world, case.tp)) if world > 1 else None
        stack.enter_context(fakes.FakeTensorMode(allow_non_fake_inputs=True))
        stack.enter_context(torch.device(device))
        yield mesh


def parameters(model: Any) -> tuple[int, int]:
    """Parameters of a model, and those that are trained."""
    weights = list(model.parameters())
    trained = sum(weight.numel() for weight in weights if weight.requires_grad)
    return sum(weight.numel() for weight in weights), trained


def tracked(case: Any, device: str = "cuda") -> tuple[dict[str, Most], Any]:
    """Most bytes at once in each phase of a case's step, and its parameters."""
    with machine(case, device) as mesh:
        model = built(case)
        if case.pp > 1:
            cut_to_stage(model, case)
        model = adapted(model, case) if case.lora else model
        recompute(model, case.recompute)
        with without_masks(model, case):
            if case.tp > 1:
                split_tensors(model, mesh["tp"], case)
            if case.zero:
                shard_fully(model, decoder_layers(model), mesh["dp"], case)
            return Step(case, model, mesh, device).run(), parameters(model)


def tracked_peaks(case: Any, device: str = "cuda") -> dict[str, int]:
    """Most bytes at once in each phase of a case's step."""
    phases, _ = tracked(case, device)
    return {name: most.total for name, most in phases.items()}
