"""One iteration: forwards, backwards and the step, phase by phase."""

from __future__ import annotations

from planner.eager.case import EagerCase, Peak, Replay
from planner.eager.decoder import CausalModel, Decoder, Setting
from planner.eager.families import architecture
from planner.eager.modules import Linear
from planner.eager.ops.loss import cross_entropy
from planner.eager.ops.pointwise import to
from planner.eager.ops.views import reshape
from planner.eager.storage import BF16, F32, I64, Tensor
from planner.eager.tape import Tape


class Iteration:
    """The state of a replay between its phases."""

    def __init__(self, case: EagerCase) -> None:
        self.case, self.tape = case, Tape()
        self.arch = architecture(case)
        self.dtype = F32 if case.precision in {"fp32", "amp_bf16"} else BF16
        self.phases: dict[str, Peak] = {}
        self.after: dict[str, dict[str, int]] = {}
        self.model = self.build()
        self.states = self.optimizer_states()
        self.ids = self.tape.new((case.mbs, case.seq), I64, category="inputs")
        self.tape.ledger.restart()

    def build(self) -> CausalModel:
        """Make the model.

        Returns:
            The model with its parameters. [module]
        """
        case, arch, tape = self.case, self.arch, self.tape
        setting = Setting(tape, arch, self.dtype, case.attention, padding=case.padding)
        model = Decoder(setting, arch.layers)
        model.recompute = case.recompute
        head = Linear(tape, arch.h, arch.vocabulary, self.dtype)
        if arch.tied and model.embed_tokens is not None:
            head.weight = model.embed_tokens.weight  # type: ignore[attr-defined]
        return CausalModel(model, head)

    def optimizer_states(self) -> list[Tensor]:
        """What the optimizer keeps from earlier steps.

        Returns:
            Its tensors. [tensors]
        """
        tape = self.tape
        states = []
        for p in self.model.parameters():
            if p.requires_grad:
                states += [
                    tape.new(p.shape, p.dtype, category="optimizer") for _ in (0, 1)
                ]
                states.append(tape.new((), F32, category="optimizer"))
        return states

    def mark(self, name: str) -> None:
        """Close a phase.

        Args:
            name: What it is called. [name]
        """
        total, parts = self.tape.ledger.restart()
        self.phases[name] = Peak(total=total, by_category=parts)
        self.after[name] = dict(self.tape.ledger.by_category)

    def forward(self) -> Tensor:
        """One forward pass to the loss.

        Returns:
            The loss. [tensor]
        """
        made = self.tape.new((self.case.seq,), I64)
        hidden = self.model.model(self.ids)
        logits = self.model.lm_head(hidden)
        loss = causal_loss(logits, self.ids)
        del made
        return loss

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
                tape.backward(out, tape.pointwise(out))
                del out
            self.mark(f"backward{i or ''}")
        self.mark("step")
        weights = self.model.parameters()
        return Replay(
            phases=self.phases,
            after=self.after,
            parameters=sum(p.numel for p in weights),
            trainable=sum(p.numel for p in weights if p.requires_grad),
        )


def causal_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy of the next token in fp32, labels shifted by padding.

    Args:
        logits: [b, s, V]. [tensor]
        labels: [b, s]. [tensor]

    Returns:
        The loss. [tensor]
    """
    tape = logits.tape
    logits = to(logits, F32)
    b, s, v = logits.shape
    labels = tape.new((b, s + 1), I64)
    if b > 1:
        labels = tape.new((b, s), I64)
    return cross_entropy(reshape(logits, b * s, v), labels)
