"""Settings of a measured run's stack, from the row's words of software."""

from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ConfigDict

from planner.calibration.rows.blocks import SoftwareBlock
from planner.cost.kernels import NARROW
from planner.frameworks import FRAMEWORKS
from planner.frameworks.profiles import read_options
from planner.hardware.reading.yaml_text import parse_yaml
from planner.specs.frameworks.framework import Framework, Recipe
from planner.specs.frameworks.profile import Profile
from planner.specs.frameworks.states import StateBytes

BLOCKS = (
    "compile",
    "memory_traffic",
    "forward_operators",
    "backward_operators",
    "host_forward",
    "host_backward",
    "norm_input_bytes",
    "activation_bytes",
)
"""Fields of a profile that say how a block was compiled."""


class Release(BaseModel):
    """A kernel that another one stands in for, before or since a release."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kernel: str
    word: str = ""
    """Word of the row that names it; any where empty. [text]"""
    arch: str
    since: float = 0.0
    """First year, included. [year]"""
    until: float = 9999.0
    """Last year, not included. [year]"""
    instead: str
    source: str


class Words(BaseModel):
    """Settings of the stack, by word of a row's software."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    attention: dict[str, str | dict[str, str]]
    releases: tuple[Release, ...]
    dispatcher: dict[str, str]
    routing: dict[str, float]
    """Standard deviation of the experts' loads over their mean. [1]"""
    fp8_recipe: dict[str, str]
    tp_overlap: dict[str, bool]
    loss: dict[str, dict[str, str]]
    """By stack, or by framework. [text]"""
    bytes: dict[str, float]
    """Bytes of a number. [B]"""
    masters: dict[str, float]
    """Bytes of an optimizer's copy of a weight. [B]"""
    moments: dict[str, int]
    """Width of an optimizer's moments. [bit]"""
    source: str


@cache
def words() -> Words:
    """Read ``planner/calibration/mapping/settings.yaml``."""
    text = (files("planner.calibration.mapping") / "settings.yaml").read_text("utf-8")
    return Words.model_validate(parse_yaml(text))


def attention(software: SoftwareBlock, arch: str) -> str:
    """Attention kernel that a row names.

    Returns:
        The kernel, empty where the stack's kernel stays. [text]
    """
    kernel = words().attention.get(software.attention or "", "")
    return kernel if isinstance(kernel, str) else kernel.get(arch, "")


def released(kernel: str, software: SoftwareBlock, arch: str, year: float) -> str:
    """Attention kernel that was there in the year of a row's software.

    Args:
        kernel: Kernel that the row or its stack names. [text]
        software: Software of the row. [-]
        arch: Architecture of the GPU. [text]
        year: Year of the software. [year]
    """
    for release in words().releases:
        named = (release.kernel, release.arch) == (kernel, arch)
        said = release.word in {"", software.attention}
        if named and said and release.since <= year < release.until:
            return release.instead
    return kernel


def profile_settings(software: SoftwareBlock) -> dict[str, object]:
    """Fields of the profile that a row's software decides."""
    known = words()
    fp8 = software.fp8.recipe if software.fp8 else None
    said = {
        "overlap_grad_reduce": software.grad_reduce_overlap,
        "overlap_param_gather": software.param_gather_overlap,
        "tp_overlap": known.tp_overlap.get(software.tp_overlap or ""),
        "ep_overlap": software.ep_overlap,
        "expert_dispatch": known.dispatcher.get(software.dispatcher or ""),
        "expert_spread": known.routing.get(software.routing or ""),
        "fp8_recipe": known.fp8_recipe.get(fp8 or ""),
        "bucket_parameters": software.bucket_parameters,
    }
    return {name: value for name, value in said.items() if value is not None}


def allocator_setting(software: SoftwareBlock, profile: Profile) -> dict[str, object]:
    """Segments of PyTorch's allocator, where the stack simulates it."""
    if profile.allocator == "ratio":
        return {}
    return {"allocator": software.allocator or "segments"}


def with_compiler(
    framework: Framework, room: Framework, *, compiled: bool
) -> Framework:
    """A stack whose blocks are compiled as a row says.

    Args:
        framework: The stack. [-]
        room: The framework on its default stack. [-]
        compiled: True where blocks were compiled. [-]

    Returns:
        The stack with the room's blocks where they alone are compiled so. [-]
    """
    if framework.profile.compile is compiled or room.profile.compile is not compiled:
        return framework
    blocks = {name: getattr(room.profile, name) for name in BLOCKS}
    profile: Profile = framework.profile.model_copy(update=blocks)
    return replace(framework, profile=profile)


def recipe_settings(software: SoftwareBlock, framework: Framework) -> Recipe:
    """Recipe of a stack under a row's software.

    Returns:
        The recipe with the row's loss, gradients, master weights, moments, formats of
        kept activations and workspaces. [-]
    """
    known, recipe = words(), _with_options(software, _with_loss(software, framework))
    gradients = software.gradients
    kept = known.bytes.get(gradients.accumulate or "") if gradients else None
    sent = known.bytes.get(gradients.reduce or "") if gradients else None
    master = known.masters.get(software.master_weights or "")
    primary = software.fp8.primary_weights if software.fp8 else None
    states = {
        stage: _states(bytes_, kept, master) for stage, bytes_ in recipe.states.items()
    }
    return replace(
        recipe,
        states=states,
        gradient_bytes=sent or recipe.gradient_bytes,
        state_bits=known.moments.get(software.moments or "", recipe.state_bits),
        fp8_primary=recipe.fp8_primary if primary is None else primary,
        formats_kept=recipe.formats_kept | _narrow_activations(software),
        workspace_mib=_workspaces(software, framework),
    )


def _workspaces(software: SoftwareBlock, framework: Framework) -> dict[str, float]:
    """Workspaces of the matrix libraries, by GPU architecture. [MiB].

    The room's own where a run need not repeat itself: no variable of cuBLAS is set.
    """
    if software.deterministic is not False:
        return framework.recipe.workspace_mib
    return _room_of(framework).recipe.workspace_mib


def _room_of(framework: Framework) -> Framework:
    """The framework on its default stack."""
    return next(room for room in FRAMEWORKS if room.name == framework.name)


def _narrow_activations(software: SoftwareBlock) -> dict[str, float]:
    """Kept activations in 8 bits: the activation's input alone. [B].

    Megatron-Core, ``activation_func_fp8_input_store``.
    """
    narrow = software.fp8 and software.fp8.activations
    return {"fc1_output": NARROW["fp8"]} if narrow else {}


def _with_loss(software: SoftwareBlock, framework: Framework) -> Framework:
    """The framework with the room's own setting of the loss that a row names.

    A setting without bytes is the room's own loss: a stack's narrower one yields to it.
    """
    table = words().loss
    own = table.get(framework.stack) or table.get(framework.name, {})
    word = own.get(software.loss or "")
    if word is None:
        return framework
    chosen = read_options(framework.name)["loss"][word].recipe
    recipe = chosen.on(framework.recipe)
    if chosen.logits_bytes is None:
        whole = _room_of(framework).recipe.logits_bytes
        recipe = replace(recipe, logits_bytes=whole)
    return replace(framework, recipe=recipe)


def _with_options(software: SoftwareBlock, framework: Framework) -> Recipe:
    """The recipe with the room's own words for outputs and lengths that a row names."""
    recipe, options = framework.recipe, read_options(framework.name)
    for name in ("outputs", "lengths"):
        word = options.get(name, {}).get(getattr(software, name) or "")
        recipe = word.recipe.on(recipe) if word else recipe
    return recipe


def _states(own: StateBytes, kept: float | None, master: float | None) -> StateBytes:
    """Bytes of one ZeRO stage with a row's gradients and master weights.

    A framework whose weights are their own masters keeps them in 16 bits without one.
    """
    changed: dict[str, Any] = {}
    for name in ("gradients", "sharded_gradients"):
        if kept is not None and getattr(own, name):
            changed[name] = kept
    for name in ("optimizer", "sharded_optimizer"):
        if master is not None and getattr(own, name):
            changed[name] = master + own.step_gradients
    masters = own.sharded_weights if own.computing or not own.weights else 0.0
    if master == 0.0 and masters:
        changed["sharded_weights"] = min(masters, 2.0)
    return replace(own, **changed)
