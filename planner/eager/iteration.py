"""One iteration: forwards, backwards and the step, phase by phase."""

from __future__ import annotations

from collections.abc import Sequence

from planner.eager.build import build
from planner.eager.case import EagerCase, Peak, Replay
from planner.eager.engine.storage import I64, Tensor, Trace
from planner.eager.engine.tape import Tape
from planner.eager.losses import loss_of
from planner.eager.models.decoder import CausalModel
from planner.eager.models.families import architecture
from planner.eager.optimizer import Optimizer


class Iteration:
    """The state of a replay between its phases."""

    def __init__(
        self,
        case: EagerCase,
        depths: Sequence[int] | None = None,
        *,
        tracked: bool = True,
        trace: Trace | None = None,
    ) -> None:
        self.case, self.tape = case, Tape(tracked=tracked)
        self.tape.ledger.trace = trace
        self.arch = architecture(case)
        self.phases: dict[str, Peak] = {}
        self.after: dict[str, dict[str, int]] = {}
        self.parameters = self.trainable = 0
        self.depths = depths
        self.model = self.make()
        self.tape.ledger.mark("model")
        self.optimizer = self.optimizer_of(self.model)
        self.tape.ledger.mark("states")
        self.ids = self.tape.new((case.mbs, case.seq), I64, category="inputs")
        self.kept: list[Tensor] = []
        self.tape.ledger.restart()

    def make(self) -> CausalModel:
        """Make the model.

        Returns:
            The model with its parameters. [module]
        """
        model = build(self.case, self.arch, self.tape, self.depths)
        self.count(model)
        return model

    def count(self, model: CausalModel) -> None:
        """Note how many parameters a model has.

        Args:
            model: The model, before it is sharded. [module]
        """
        weights = model.parameters()
        self.parameters = sum(p.numel for p in weights)
        self.trainable = sum(p.numel for p in weights if p.requires_grad)

    def optimizer_of(self, model: CausalModel) -> Optimizer:
        """The optimizer over the model's parameters.

        Args:
            model: The model. [module]

        Returns:
            The optimizer with its states. [optimizer]
        """
        return Optimizer(self.case, model.parameters())

    def mark(self, name: str) -> None:
        """Close a phase.

        Args:
            name: Name of the phase. [name]
        """
        total, parts = self.tape.ledger.restart()
        self.phases[name] = Peak(total=total, by_category=parts)
        self.after[name] = dict(self.tape.ledger.by_category)
        self.tape.ledger.mark("passes" if name != "step" else "step")

    def forward(self) -> Tensor:
        """One forward pass to the loss.

        Returns:
            The loss. [tensor]
        """
        made = self.tape.new((self.case.seq,), I64)
        with self.tape.casting(enabled=self.case.precision == "amp_bf16"):
            hidden = self.model.model(self.ids)
            loss = loss_of(self.case, self.model, self.ids, hidden, self.kept)
        del made
        return loss

    def backward(self, out: Tensor) -> None:
        """One backward pass from the loss or a stage's output.

        Args:
            out: Tensor that the pass starts from. [tensor]
        """
        self.tape.backward(out, self.tape.pointwise(out))

    def run(self) -> Replay:
        """Replay the iteration.

        Returns:
            Peaks by phase. [replay]
        """
        case, tape = self.case, self.tape
        for i in range(case.ga):
            tape.category = "activations"
            live = [self.forward() for _ in range(case.pp - case.stage)]
            self.mark(f"forward{i or ''}")
            tape.category = "temp"
            while live:
                out = live.pop(0)
                self.backward(out)
                del out
            self.mark(f"backward{i or ''}")
            if not i:
                tape.ledger.mark("first")
        if case.optimizer != "none" or case.precision == "master_bf16":
            tape.category = "optimizer"
            self.optimizer.step()
            self.mark("step")
            self.optimizer.zero_grad()
        return self._replay()

    def _replay(self) -> Replay:
        return Replay(
            phases=self.phases,
            after=self.after,
            parameters=self.parameters,
            trainable=self.trainable,
        )
