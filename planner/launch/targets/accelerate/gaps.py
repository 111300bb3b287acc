"""Features of a plan that accelerate, Trainer, TRL and PEFT cannot express."""

from collections.abc import Iterator

from planner.frameworks.accelerate.launch.lacks import accelerate
from planner.frameworks.accelerate.stack import option
from planner.launch.brief import Brief, Gap
from planner.launch.switches import gaps_of, switch_gaps
from planner.launch.targets.accelerate.plan import recompute

SWITCHES: dict[str, tuple[object, ...]] = {
    "overlap_grad_reduce": (True,),
    "overlap_param_gather": (True,),
    "tp_overlap": (False,),
    "ep_overlap": (False,),
    "cuda_graphs": ("none",),
}
"""Values of switches that every run has. [-]

DDP, FSDP2 and overlap_comm overlap; the other switches have no key."""


def gaps(brief: Brief) -> tuple[Gap, ...]:
    """Features of a plan that accelerate's files cannot express.

    Returns:
        One gap per feature; empty where the files express the whole plan. [-]
    """
    return (
        *gaps_of(brief, accelerate),
        *_loss_gaps(brief),
        *layout_gaps(brief),
        *switch_gaps(brief, "accelerate", SWITCHES),
    )


def _loss_gaps(brief: Brief) -> Iterator[Gap]:
    """Losses of torchtune, which Trainer has none of."""
    loss = option(brief.asked, "loss", "hf")
    if loss in ("chunked_logits", "chunked_head"):
        what = "its pieces of the logits are torchtune's"
        yield Gap(what, "spec.stack.loss", loss, "hf, chunked, liger")


def layout_gaps(brief: Brief) -> Iterator[Gap]:
    """Layouts outside the room's limits, made by hand or for another framework."""
    its = brief.layout
    kind = recompute(its)
    if kind not in ("none", "full"):
        what = "blocks are checkpointed all or none"
        yield Gap(what, "layout.stages.recompute", kind, "none, full")
