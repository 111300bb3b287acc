"""What of a plan Megatron-LM's arguments cannot say."""

from collections.abc import Iterator

from planner.launch.brief import Brief, Gap
from planner.launch.megatron.arguments import MOMENTS, OPTIMIZERS, fp8_recipe
from planner.launch.megatron.model import model_gaps
from planner.launch.megatron.recompute import (
    modules_of,
    offload_gaps,
    recompute_gaps,
    recompute_kinds,
)
from planner.launch.switches import switch_gaps
from planner.models.blocks import Moe
from planner.specs.layout import Layout

SCHEDULES = ("1f1b", "interleaved")


def gaps(brief: Brief) -> tuple[Gap, ...]:
    """What of a plan Megatron-LM's arguments cannot say.

    Args:
        brief: The plan. [-]

    Returns:
        One gap for each, none where all of it can be said. [-]
    """
    return (*method_gaps(brief), *model_gaps(brief), *layout_gaps(brief))


def method_gaps(brief: Brief) -> Iterator[Gap]:
    """Training methods that pretrain_gpt.py lacks.

    Args:
        brief: The plan. [-]

    Yields:
        One gap for each.
    """
    if brief.training.method != "full":
        allowed = "full; megatron-bridge and accelerate have adapters"
        method = brief.training.method
        yield Gap("no adapters", "spec.training.method", method, allowed)


def layout_gaps(brief: Brief) -> Iterator[Gap]:
    """Layouts, numbers and optimizers that Megatron-Core lacks.

    Args:
        brief: The plan. [-]

    Yields:
        One gap for each.
    """
    yield from _number_gaps(brief)
    yield from _optimizer_gaps(brief)
    yield from recompute_gaps(brief.layout)
    yield from offload_gaps(brief.layout)
    yield from _mesh_gaps(brief)
    yield from _expert_gaps(brief)
    yield from switch_gaps(brief, "megatron", {"cuda_graphs": ("none",)})


def _number_gaps(brief: Brief) -> Iterator[Gap]:
    precision = brief.training.precision
    if precision in ("tf32", "fp32"):
        allowed = "bf16, fp16, fp8, mxfp8, nvfp4"
        yield Gap("no such format", "spec.training.precision", precision, allowed)
    kinds = set(recompute_kinds(brief.layout)) - {"none", "full"}
    again = {module for kind in kinds for module in modules_of(kind)}
    if fp8_recipe(brief) == "delayed" and again & {"layernorm", "moe_act"}:
        what = "delayed fp8 scaling recomputes neither layernorm nor moe_act"
        kind = ", ".join(sorted(again))
        yield Gap(what, "layout.stages.recompute", kind, "another recipe or module")


def _optimizer_gaps(brief: Brief) -> Iterator[Gap]:
    its = brief.training
    if its.optimizer not in OPTIMIZERS:
        allowed = ", ".join(OPTIMIZERS)
        where = "spec.training.optimizer"
        yield Gap("no such optimizer", where, its.optimizer, allowed)
    if its.optimizer == "muon" and brief.layout.zero_stage:
        what = "muon shards no optimizer states"
        yield Gap(what, "layout.zero_stage", brief.layout.zero_stage, "0")
    if its.state_bits not in MOMENTS:
        allowed = "32, 16"
        yield Gap(
            "no such moments", "spec.training.state_bits", its.state_bits, allowed
        )
    if its.optimizer_in_backward:
        where = "spec.training.optimizer_in_backward"
        yield Gap("updates come after the backward", where, "true", "false")


def _mesh_gaps(brief: Brief) -> Iterator[Gap]:
    its = brief.layout
    if its.zero_stage > 1:
        what = "the distributed optimizer shards optimizer states alone"
        yield Gap(what, "layout.zero_stage", its.zero_stage, "0 and 1")
    if its.schedule not in SCHEDULES:
        allowed = ", ".join(SCHEDULES)
        yield Gap("no such schedule", "layout.schedule", its.schedule, allowed)
    if getattr(its, "pools", ()):
        yield Gap("one kind of node alone", "layout.pools", "several", "none")
    copies, ranks = instances(its), expert_data_ranks(its)
    if brief.architecture.expert_parameters and ranks % copies:
        what = f"{copies} copies of the optimizer share {ranks} replicas of experts"
        yield Gap(what, "layout.dp_shard", its.dp_shard, "copies that divide them")


def instances(layout: Layout) -> int:
    """Copies of the sharded optimizer states. [1]."""
    return max(layout.dp * layout.cp // layout.dp_shard, 1) if layout.zero_stage else 1


def expert_data_ranks(layout: Layout) -> int:
    """Ranks that hold the same experts, a stage and an expert shard each. [1]."""
    return layout.tp * layout.cp * layout.dp // (layout.etp * layout.ep)


def _expert_gaps(brief: Brief) -> Iterator[Gap]:
    biased = any(
        isinstance(kind.ffn, Moe) and kind.ffn.bias for kind in brief.architecture.kinds
    )
    if biased and brief.layout.etp > 1:
        what = "experts with biases are not split over tensor ranks"
        yield Gap(what, "layout.etp", brief.layout.etp, "1")
