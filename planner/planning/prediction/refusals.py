"""Refusals of a given layout that its framework, its stack or its host rules out."""

from typing import Any

from planner.cost.memory.recompute_modules import combinations, is_known, known_kinds
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.errors import BadInputError, did_you_mean
from planner.job.expressible import able
from planner.specs.answer.estimate import MemoryEstimate
from planner.specs.layouts.layout import PartialLayout
from planner.specs.search import SearchSpec

Degrees = dict[str, Any]
"""Every axis of a layout by name, and the pools that host its stages."""


def refuse_host(workload: Workload, memory: MemoryEstimate) -> None:
    """Refuse an offload that the memory or the drives of a node cannot hold.

    Raises:
        BadInputError: A node needs more than it has; says both.
    """
    host, node = memory.host, workload.topology.cluster.node.name
    if host is None or host.is_enough:
        return
    needs, has, what = host.needed_gib, host.available_gib, "host memory"
    if has is None or needs <= has:
        needs, has, what = host.nvme_needed_gib, host.nvme_available_gib, "NVMe"
    raise BadInputError(
        f"{what} of {node} is too small: {needs:,.0f} GiB a node needed, "
        f"{has:,.0f} GiB there",
        field="training.optimizer" if workload.training.paged else "layout.offload",
        allowed="less of it off the GPUs, or more GPUs to share the states",
    )


def refuse_schedule(workload: Workload, partial: PartialLayout) -> None:
    """Refuse a schedule that the framework's stack does not run.

    Raises:
        BadInputError: Names the stack and the frameworks that run it.
    """
    framework, name = workload.framework, partial.schedule
    if name is None or name in framework.limits.schedules:
        return
    who = able("schedule", SearchSpec(schedule=name))
    raise BadInputError(
        f"{framework.name} with stack {framework.profile.name} does not run it; "
        f"those that do: {', '.join(who) or 'none here'}",
        field="layout.schedule",
        value=name,
        allowed=", ".join(framework.limits.schedules),
    )


def refuse_formats(workload: Workload, partial: PartialLayout) -> None:
    """Refuse formats on the wire that the framework cannot send.

    Raises:
        BadInputError: Names the format and those that can be sent.
    """
    given = partial.comm_dtype
    for name in ("gradients", "parameters") if given else ():
        value, known = getattr(given, name), workload.sendable(name)
        if value is not None and value not in known:
            raise BadInputError(
                f"{workload.framework.name} sends no {name} in {value} under "
                f"{workload.training.precision}",
                field=f"layout.comm_dtype.{name}",
                value=value,
                allowed=", ".join(known),
            )


def refuse_offload(pricing: Pricing, degrees: Degrees) -> None:
    """Refuse unsharded states, paged moments, and drives that the stack cannot use.

    Raises:
        BadInputError: Names the share that cannot leave the GPUs.
    """
    offload, zero = pricing.offload, degrees["zero_stage"]
    if offload.device == "nvme" and not pricing.recipe.offloads_to_nvme:
        raise BadInputError(
            f"{pricing.framework.name} with {pricing.profile.name} keeps nothing on "
            "NVMe",
            field="layout.offload.device",
            value="nvme",
            allowed="cpu, or a DeepSpeed stack",
        )
    if offload.optimizer and pricing.training.paged:
        raise BadInputError(
            "a paged optimizer keeps its moments on the host by itself",
            field="layout.offload.optimizer",
            value=offload.optimizer,
            allowed="0, or an optimizer that is not paged",
        )
    for name, least in (("parameters", 3), ("gradients", 2)):
        if getattr(offload, name) and int(zero) < least:
            raise BadInputError(
                f"ZeRO-{zero} does not shard {name}",
                field=f"layout.offload.{name}",
                value=getattr(offload, name),
                allowed=f"0, or zero_stage {least} and more",
            )


def refuse_recompute(workload: Workload, menu: tuple[str, ...]) -> None:
    """Refuse a recompute kind that the framework does not have for the model."""
    for name in menu:
        if not is_known(workload, name):
            near = {*workload.framework.limits.recompute, *combinations(workload)}
            raise BadInputError(
                f"{workload.framework.name} has no such recompute kind for this model; "
                + did_you_mean(name, near),
                field="layout.recompute",
                value=name,
                allowed=known_kinds(workload),
            )
