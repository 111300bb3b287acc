"""Features of a plan that a target cannot express."""

from collections.abc import Callable, Iterator, Mapping

from planner.frameworks.accelerate.stack import option
from planner.frameworks.torchtitan.launch.lacks import SCHEDULES, SPLIT, compiled
from planner.launch.brief import Brief, Gap
from planner.launch.switches import gaps_of, switch_gaps
from planner.launch.targets.accelerate.plan import recompute
from planner.launch.targets.megatron.recompute import offload_gaps, recompute_gaps
from planner.specs.frameworks.lacks import Writer

SWITCHES: Mapping[str, Mapping[str, tuple[object, ...]]] = {
    "accelerate": {
        "overlap_grad_reduce": (True,),
        "overlap_param_gather": (True,),
        "tp_overlap": (False,),
        "ep_overlap": (False,),
        "cuda_graphs": ("none",),
    },
    "deepspeed": {
        "tp_overlap": (False,),
        "ep_overlap": (False,),
        "cuda_graphs": ("none",),
    },
    "megatron": {"cuda_graphs": ("none",)},
    "torchtitan": {
        "overlap_grad_reduce": (True,),
        "overlap_param_gather": (True,),
        "ep_overlap": (False,),
        "cuda_graphs": ("none",),
    },
}
"""Values that every run of a framework has, of switches that have no key there. [-]

DDP, FSDP2 and overlap_comm overlap."""
MEGATRON_SCHEDULES = ("1f1b", "interleaved")


def gaps(brief: Brief, framework: str, writer: Writer) -> tuple[Gap, ...]:
    """Features of a plan that the files of a target cannot express.

    Returns:
        One gap per feature; empty where the files express the whole plan. [-]
    """
    return (
        *gaps_of(brief, writer.lacks),
        *_losses(brief, writer.target),
        *_LAYOUTS[framework](brief),
        *switch_gaps(brief, framework, SWITCHES[framework]),
    )


def _losses(brief: Brief, target: str) -> Iterator[Gap]:
    """Losses of torchtune and LLaMA-Factory, which Trainer and TRL have not."""
    loss, field = option(brief.asked, "loss", "hf"), "spec.stack.loss"
    if target == "trl" and brief.training.reference and loss == "hf":
        what = "its loss on pairs works in chunks of tokens"
        yield Gap(what, field, loss, "chunked")
    if target == "accelerate" and loss in ("chunked_logits", "chunked_head"):
        what = "its pieces of the logits are torchtune's"
        yield Gap(what, field, loss, "hf, chunked, liger")


def _of_accelerate(brief: Brief) -> Iterator[Gap]:
    kind = recompute(brief.layout)
    if kind not in ("none", "full"):
        what = "blocks are checkpointed all or none"
        yield Gap(what, "layout.stages.recompute", kind, "none, full")


def _of_deepspeed(brief: Brief) -> Iterator[Gap]:
    moved = brief.layout.offload
    if moved.activations or moved.gradients:
        what = "activations" if moved.activations else "gradients"
        allowed = "optimizer, parameters"
        yield Gap(f"no {what} on the host alone", "layout.offload", what, allowed)
    if 0 < moved.parameters < 1:
        what = "parameters go to the host whole"
        yield Gap(what, "layout.offload", moved.parameters, "1")


def _of_megatron(brief: Brief) -> Iterator[Gap]:
    layout = brief.layout
    yield from recompute_gaps(layout)
    yield from offload_gaps(layout)
    if layout.zero_stage > 1:
        what = "the distributed optimizer shards optimizer states alone"
        yield Gap(what, "layout.zero_stage", layout.zero_stage, "0 and 1")
    if layout.schedule not in MEGATRON_SCHEDULES:
        allowed = ", ".join(MEGATRON_SCHEDULES)
        yield Gap("no such schedule", "layout.schedule", layout.schedule, allowed)


def _of_torchtitan(brief: Brief) -> Iterator[Gap]:
    split = compiled(brief.asked)
    able = [name for name in SCHEDULES if name not in SPLIT or not split]
    if brief.layout.schedule not in able:
        what = "PyTorch has no such schedule for its blocks"
        yield Gap(what, "layout.schedule", brief.layout.schedule, ", ".join(able))


_LAYOUTS: Mapping[str, Callable[[Brief], Iterator[Gap]]] = {
    "accelerate": _of_accelerate,
    "deepspeed": _of_deepspeed,
    "megatron": _of_megatron,
    "torchtitan": _of_torchtitan,
}
"""Layouts outside a framework's limits, made by hand or for another framework. [-]"""
