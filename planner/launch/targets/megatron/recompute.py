"""Recompute and offload of a layout as Megatron's arguments, and the gaps."""

from collections.abc import Iterator
from math import isclose

from planner.launch.brief import Gap
from planner.specs.layouts.layout import Layout, Stage

Argument = tuple[str, object]
MODULES = (
    "core_attn",
    "moe_act",
    "layernorm",
    "mla_up_proj",
    "mlp",
    "moe",
    "shared_experts",
)
"""Modules that --recompute-modules takes. [text]"""
NONE, FULL, SELECTIVE = "none", "full", "selective"


def recompute_kinds(layout: Layout) -> tuple[str, ...]:
    """Recompute kinds of a plan's layers."""
    found = (kind for stage in layout.stages for kind in layer_kinds(stage))
    return tuple(dict.fromkeys(found))


def layer_kinds(stage: Stage) -> tuple[str, ...]:
    """Recompute kind of every layer of a virtual stage.

    Returns:
        Kinds in model order. [text], shape (layers,)
    """
    if not stage.recompute:
        return (NONE,) * stage.layers
    parts = ((part.kind,) * (part.stop - part.start) for part in stage.recompute)
    return tuple(kind for part in parts for kind in part)


def modules_of(kind: str) -> tuple[str, ...]:
    """Modules that a kind other than full and none runs again."""
    return ("core_attn",) if kind == SELECTIVE else tuple(kind.split("+"))


def recompute_gaps(layout: Layout) -> Iterator[Gap]:
    """Recompute that Megatron's arguments cannot express.

    References:
        Megatron-LM core_v0.16.1 megatron/core/transformer/transformer_block.py,
        _checkpointed_forward; transformer_config.py, recompute_modules.
    """
    kinds = recompute_kinds(layout)
    named = [kind for kind in kinds if kind not in (NONE, FULL)]
    unknown = [kind for kind in named if set(modules_of(kind)) - set(MODULES)]
    for kind in unknown:
        allowed = f"none, full, selective, or some of {', '.join(MODULES)} with +"
        yield Gap("no such module", "layout.stages.recompute", kind, allowed)
    if len(kinds) > 1 and (named or _block(layout) is None):
        yield Gap(
            "one recompute for all layers, or the same number of whole layers at the "
            "head of every virtual stage",
            "layout.stages.recompute",
            ", ".join(kinds),
            "none, full, full for the first N layers of each stage, modules",
        )


def _block(layout: Layout) -> int | None:
    """Layers with full recompute at the head of every stage; None otherwise."""
    stages = [layer_kinds(stage) for stage in layout.stages]
    most = max(kinds.count(FULL) for kinds in stages)
    for kinds in stages:
        head = min(most, len(kinds))
        if kinds != (FULL,) * head + (NONE,) * (len(kinds) - head):
            return None
    return most


def recompute_arguments(layout: Layout) -> list[Argument]:
    """Options of recompute: none, modules, whole layers, or first layers of stages."""
    kinds = recompute_kinds(layout)
    if set(kinds) <= {NONE}:
        return []
    if FULL in kinds:
        block = NONE in kinds
        return [
            ("--recompute-granularity", "full"),
            ("--recompute-method", "block" if block else "uniform"),
            ("--recompute-num-layers", _block(layout) if block else 1),
        ]
    (kind,) = kinds
    return [
        ("--recompute-granularity", "selective"),
        ("--recompute-modules", list(modules_of(kind))),
    ]


def offload_gaps(layout: Layout) -> Iterator[Gap]:
    """Offload that Megatron's arguments cannot express.

    References:
        Megatron-LM core_v0.16.1 megatron/core/transformer/transformer_config.py,
        cpu_offloading.
    """
    its = layout.offload
    for part in ("parameters", "gradients"):
        if getattr(its, part):
            what = "only optimizer states and activations go to the host"
            yield Gap(what, "layout.offload", part, "optimizer, activations")
    if its.device == "nvme":
        yield Gap("nothing goes to drives", "layout.offload", "nvme", "cpu")
    if its.optimizer and layout.zero_stage == 0:
        what = "only the distributed optimizer's states go to the host"
        yield Gap(what, "layout.offload", "optimizer at ZeRO 0", "zero_stage 1")
    yield from _activation_gaps(layout)


def _activation_gaps(layout: Layout) -> Iterator[Gap]:
    if not layout.offload.activations:
        return
    value = f"activations {layout.offload.activations}"
    if layout.pp > 1:
        what = "activations go to the host without a pipeline only"
        yield Gap(what, "layout.offload", value, "pp 1")
    if set(recompute_kinds(layout)) - {NONE}:
        what = "activations go to the host without recompute only"
        yield Gap(what, "layout.offload", value, "recompute none")
    layers = sum(layout.layers_per_stage)
    if not isclose(layout.offload.activations * layers, offloaded_layers(layout)):
        what = "activations go to the host by whole layers"
        yield Gap(what, "layout.offload", value, f"k / {layers}")
    if offloaded_layers(layout) >= layers:
        what = "the last layer's activations stay on the GPU"
        yield Gap(what, "layout.offload", value, "less than 1")


def offloaded_layers(layout: Layout) -> int:
    """Layers whose activations go to the host."""
    return round(layout.offload.activations * sum(layout.layers_per_stage))


def offload_arguments(layout: Layout) -> list[Argument]:
    """Options of offload: optimizer states by fraction, activations by layers."""
    found: list[Argument] = []
    if layout.offload.optimizer:
        found += [
            ("--optimizer-cpu-offload", True),
            ("--optimizer-offload-fraction", layout.offload.optimizer),
            ("--use-precision-aware-optimizer", True),
        ]
    if layout.offload.activations:
        found.append(("--cpu-offloading-num-layers", offloaded_layers(layout)))
    return found
