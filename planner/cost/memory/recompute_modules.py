"""Tensors of a layer that a kind of recompute keeps, drops and builds again."""

from planner.cost.workload import Workload
from planner.models.layers.blocks import LatentAttention, LayerKind, Moe, ScanBlock
from planner.specs.layouts.recompute import (
    RecomputeKind,
    RecomputeModule,
    Where,
    block_of,
    parts_of_kind,
)


def is_where(where: Where, layer: LayerKind) -> bool:
    """Tell if a layer is one of those that a condition names.

    Returns:
        True for `any`.
    """
    routed = isinstance(layer.ffn, Moe)
    latent = isinstance(layer.attention, LatentAttention)
    return {"any": True, "latent": latent, "routed": routed, "dense": not routed}[where]


def dropped(module: RecomputeModule, layer: LayerKind) -> frozenset[str]:
    """Saved tensors of a layer that a recomputed module does not keep.

    Returns:
        Names; none where the module does nothing in this layer. [text]
    """
    there = {tensor.name for tensor in layer.saved()}
    drops = module.drops.items()
    return frozenset(t for t, where in drops if t in there and is_where(where, layer))


def at_work(kind: RecomputeKind, layer: LayerKind) -> tuple[RecomputeModule, ...]:
    """Modules of a kind that do anything in a layer.

    Returns:
        Modules, in the framework's order. [-]
    """
    return tuple(module for module in kind.modules if dropped(module, layer))


def kept_share(kind: RecomputeKind, layer: LayerKind, tensor: str) -> float:
    """Share of a saved tensor that stays in memory until the backward.

    Returns:
        0 where a recomputed module drops it. [1]
    """
    gone = any(tensor in dropped(module, layer) for module in kind.modules)
    return 0.0 if gone else kind.kept(tensor)


def core_share(kind: RecomputeKind, layer: LayerKind) -> float:
    """Share of a layer's core that a kind of recompute runs again.

    A scan runs again where the systems of its chunks are not kept: kinds that name the
    attention core alone leave it.
    """
    if isinstance(layer.attention, ScanBlock):
        return 1.0 - kept_share(kind, layer, "scan_system")
    return kind.core


def rebuilt(kind: RecomputeKind, layer: LayerKind) -> frozenset[str]:
    """Dropped tensors that exist again while their half has its backward.

    Tensors that the attention core drops are left out: its kernel computes them inside.
    """
    sets = (dropped(module, layer) for module in kind.modules if not module.core)
    return frozenset[str]().union(*sets)


def runs_norm_again(kind: RecomputeKind, layer: LayerKind, norm: str) -> bool:
    """Tell if the norm that reads a saved tensor runs again in the backward.

    Args:
        norm: Name of the norm's input, for example `ffn_norm_input`. [text]

    Returns:
        True where memory-bound operators run again or the norm's output is dropped.
    """
    output = norm.replace("_input", "_output")
    return kind.memory_ops > 0 or output in rebuilt(kind, layer)


def is_known(workload: Workload, name: str) -> bool:
    """Tell if the job's framework has a kind of recompute, and the kind does anything.

    A combination of modules is known where the stack has it. Every module must drop
    something of some layer of the model, and the scaling of fp8 must not refuse it.

    Returns:
        False for a name of no kind, too.
    """
    limits, recipe = workload.framework.limits, workload.framework.recipe
    if name in recipe.kinds:
        return name in limits.recompute
    if block_of(name):
        return limits.recompute_blocks
    if name not in limits.recompute_modules:
        return False
    parts = parts_of_kind(name)
    return all(_does_anything(workload, recipe.modules[part]) for part in parts)


def known_kinds(workload: Workload) -> str:
    """Every kind of recompute of a job's framework, for messages.

    Returns:
        For example `none, full, or layernorm, moe with + between them`. [text]
    """
    limits, recipe = workload.framework.limits, workload.framework.recipe
    plain = [name for name in limits.recompute if name in recipe.kinds]
    modules = [
        name
        for name, module in recipe.modules.items()
        if limits.recompute_modules and _does_anything(workload, module)
    ]
    blocks = ["full:1 and on"] if limits.recompute_blocks else []
    several = f", or {', '.join(modules)} with + between them"
    return ", ".join(plain + blocks) + (several if modules else "")


def combinations(workload: Workload) -> tuple[str, ...]:
    """Combinations of modules that :func:`is_known` takes, fewer modules first."""
    every = workload.framework.limits.recompute_modules
    modules = workload.framework.recipe.modules if every else {}
    idle = {
        name
        for name, tensors in modules.items()
        if not _does_anything(workload, tensors)
    }
    return tuple(name for name in every if idle.isdisjoint(parts_of_kind(name)))


def _does_anything(workload: Workload, module: RecomputeModule) -> bool:
    """Tell if a module drops a tensor of some layer, and may be recomputed at all."""
    scaled = workload.training.precision == "fp8"
    if scaled and workload.framework.profile.fp8_recipe in module.not_under_fp8:
        return False
    return any(dropped(module, layer) for layer in workload.kinds)
