"""A training framework: its limits, its memory recipe and its time profile.

A framework is a value of these types; cost and search never learn its name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.specs.frameworks.lacks import Writer
from planner.specs.frameworks.limits import Limits
from planner.specs.frameworks.profile import Profile
from planner.specs.frameworks.states import StateBytes
from planner.specs.frameworks.switches import Needs, Switched
from planner.specs.layouts.formats import WIRE_BYTES, CommDtype, Formats, WireFormat
from planner.specs.layouts.recompute import (
    RecomputeKind,
    RecomputeModule,
    combination,
)

ReplayPolicy = Literal["none", "bf16", "amp_bf16", "master_bf16"]
LossForm = Literal[
    "hf", "upcast", "half", "chunked", "chunked_logits", "chunked_head", "liger"
]
Lengths = Literal["cut", "below"]
OptimizerKernel = Literal["fused", "fused-fp32", "foreach", "foreach-2.0", "for-loop"]
CheckpointForm = Literal["shards", "units", "model"]

FP32, FP8 = 4, 1
"""Bytes of one number. [B]"""


@dataclass(frozen=True)
class Recipe:
    """The memory habits of a framework."""

    states: dict[int, StateBytes]
    """Bytes per parameter by ZeRO stage, Adam's two moments not included. [B]"""
    kinds: dict[str, RecomputeKind]
    gradient_bytes: float
    """Format that gradients are reduced in. [B]"""
    gather_bytes: float
    """Format that parameters are gathered in. [B]"""
    gather_buffers: int
    """Units whose parameters are whole at one time under ZeRO-3. [1]"""
    reduce_buffers: int
    """Units of gradients waiting for their reduce-scatter under ZeRO-3. [1]"""
    accumulates_unsharded: bool
    """Whole fp32 gradients of one virtual stage wait for their reduce-scatter."""
    logits_bytes: float
    """Bytes per logit alive in the loss. [B]"""
    dummy_weight_gradients: bool
    """One bf16 gradient per distinct weight shape is cached (TransformerEngine)."""
    gradients_reduced_per_group: bool
    """Gradients are reduce-scattered after every p micro-batches, not once."""
    source: str
    fp16_states: dict[int, StateBytes] | None = None
    """Bytes per parameter in fp16, where they differ from ``states``. [B]"""
    gradients_freed: bool = False
    """Gradients are freed after every step, not kept in a buffer."""
    state_bits: int = 32
    """Width of the optimizer's moments where the job names none. [bit]"""
    keeps_fp8: bool = False
    """Linears keep quantised weights and inputs; false quantises again."""
    formats_kept: dict[str, float] = field(default_factory=dict)
    """Bytes per element, by saved tensor with its own format beside fp8. [B]"""
    fp8_primary: bool = False
    """The quantised weights replace the bf16 ones (``fp8_param_gather``)."""
    live_parameters: float | None = None
    """Parameters whole at one time under ZeRO-3; none: whole layers are. [1]"""
    reduced_parameters: float | None = None
    """Parameters in a bucket of gradients; none: a layer in ZeRO-3, else none. [1]"""
    keeps_stage_outputs: bool = False
    """Outputs that a stage sent on stay until its backward. [-]"""
    head_stays_whole: bool = True
    """Under ZeRO-3 the head is gathered once, from its forward to the step's end."""
    dropout_bytes: float = 0.0
    """Mask kept per element by each of a layer's two dropouts. [B]"""
    vocab_multiple: int = 1
    """The vocabulary is padded to a multiple of this times tp. [1]"""
    embedding_stays_whole: bool = True
    """The embedding is gathered once too, as the head is."""
    shards_freed: bool = False
    """Sharded gradients are freed after every step too, and count as freed."""
    accumulates_at: tuple[int, ...] = (2,)
    """ZeRO stages at which ``accumulates_unsharded`` holds. [1]"""
    accumulator_bytes: float = 4.0
    """Format of the whole gradients that wait. [B]"""
    offload_takes_gradients: bool = False
    """Reduced gradients go to the host where the optimizer is kept there."""
    offloads_to_nvme: bool = False
    """Optimizer states and parameters may lie on the host's local drives."""
    workspace_mib: dict[str, float] = field(default_factory=dict)
    """Workspaces of the matrix libraries, by GPU architecture. [MiB]"""
    replay: ReplayPolicy = "none"
    """Precision policy of replayed operators; ``none``: formulas count. [text]"""
    fp16_replay: ReplayPolicy = "none"
    """Policy in place of ``replay`` in fp16 where no part is frozen. [text]"""
    loss: LossForm = "hf"
    """Form of the replayed loss. [text]"""
    optimizer_kernel: OptimizerKernel = "fused"
    """Kernels of Adam, for all tensors or in a loop; 2.0: PyTorch, with a list more."""
    step_gradient_bytes: float = 0.0
    """Copy of a rank's gradients that its optimizer step makes, per parameter. [B]"""
    gathers_in_place: bool = True
    """ZeRO-1 and 2 gather parameters into the room that they are used from."""
    resume_copies: float = 0.0
    """Copies of the optimizer's moments on the GPU while they are loaded. [1]"""
    resume_advice: str = ""
    """Releases and options that load without the copies. [text]"""
    checkpoint: CheckpointForm = "shards"
    """Form that ZeRO-3 writes: shards, or units or the model made whole on the GPU."""
    whole_embedding_gradient: bool = False
    """The gradient of a table split over its rows is made whole (DTensor)."""
    reduces_units: bool = False
    """ZeRO-2 reduces a unit's whole gradients from a buffer of their own."""
    overlap_buffers: int = 0
    """Activations of a layer registered for overlapped exchanges over tp. [1]"""
    repeats_kv: bool = False
    """Keys and values are copied for every query head before attention."""
    flat_parameters: bool = False
    """Sharding of ZeRO-2 and 3 is FSDP1's, by flat parameters. [-]"""
    keeps_outputs: bool = False
    """The loop keeps a forward's logits until the next forward is over. [-]"""
    lengths: Lengths = "cut"
    """Sequences have the job's length, or lengths spread evenly below it. [text]"""
    stops_early: bool = False
    """A recomputed layer leaves out its last product (PyTorch without reentrance)."""
    split_logits_bytes: float | None = None
    """Bytes per logit where tensor ranks share the vocabulary; none: as whole. [B]"""
    plain_logits_bytes: float | None = None
    """Bytes per logit of models without gates; none: as all others. [B]"""
    copies_inputs: bool = False
    """Over tensor ranks every linear keeps a copy of its input. [-]"""
    cp_repeats_kv: bool = False
    """Context ranks exchange keys and values copied for every query head."""
    keeps_dispatched: bool = False
    """A recomputed layer sends no token again: what came in and went back stays."""
    modules: dict[str, RecomputeModule] = field(default_factory=dict)
    """Modules of a layer that may be recomputed in any combination."""

    def kind(self, name: str) -> RecomputeKind:
        """Recompute kind of a name: one of ``kinds``, or a combination.

        Raises:
            KeyError: There is no such kind; see :meth:`has_kind`.
        """
        if name in self.kinds:
            kind = self.kinds[name]
            ends = self.stops_early and kind.rebuilds_layer
            return replace(kind, stops_early=True) if ends else kind
        chosen = combination(self.modules, name)
        if chosen is None:
            raise KeyError(name)
        return _combined(name, tuple(chosen.values()))

    def has_kind(self, name: str) -> bool:
        """Tell if a name is a kind, or a combination in its only spelling.

        Returns:
            True for every name that :meth:`kind` knows.
        """
        return name in self.kinds or combination(self.modules, name) is not None


def _combined(name: str, modules: tuple[RecomputeModule, ...]) -> RecomputeKind:
    """Kind of a combination: keeps all tensors but those dropped in every layer."""
    gone = {t for m in modules for t, where in m.drops.items() if where == "any"}
    return RecomputeKind(
        name=name,
        keeps=dict.fromkeys(gone, 0.0),
        keeps_others=1.0,
        gemms={gemm: 1.0 for module in modules for gemm in module.gemms},
        core=float(any(module.core for module in modules)),
        modules=modules,
    )


class RecipeOverrides(BaseModel):
    """The memory habits of a framework that a stack or a job may replace."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gradients_reduced_per_group: bool | None = None
    """Gradients are reduce-scattered after every p micro-batches, not once."""
    logits_bytes: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Bytes per logit alive in the loss. [B]"""
    accumulates_unsharded: bool | None = None
    """Whole fp32 gradients of one virtual stage wait for their reduce-scatter."""
    gradient_bytes: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Format that gradients are reduced in. [B]"""
    gather_bytes: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Format that parameters are gathered in. [B]"""
    stops_early: bool | None = None
    """The product at the end of a recomputed layer does not run again."""
    dummy_weight_gradients: bool | None = None
    """One bf16 gradient per distinct weight shape is cached (TransformerEngine)."""
    states: dict[int, StateBytes] | None = None
    """Bytes per parameter of some ZeRO stages; the others stay. [B]"""
    fp16_states: dict[int, StateBytes] | None = None
    """Bytes per parameter in fp16, where they differ. [B]"""
    gradients_freed: bool | None = None
    """Gradients are freed after every step, not kept in a buffer."""
    state_bits: Literal[8, 16, 32] | None = None
    """Width of the optimizer's moments where the job names none. [bit]"""
    gather_buffers: int | None = Field(default=None, ge=0)
    """Units whose parameters are whole at one time under ZeRO-3. [1]"""
    reduce_buffers: int | None = Field(default=None, ge=0)
    """Units of gradients waiting for their reduce-scatter under ZeRO-3. [1]"""
    keeps_fp8: bool | None = None
    """Linears keep quantised weights and inputs; false quantises again."""
    formats_kept: dict[str, float] | None = None
    """Bytes per element, by saved tensor with its own format beside fp8. [B]"""
    fp8_primary: bool | None = None
    """The quantised weights replace the bf16 ones (``fp8_param_gather``)."""
    live_parameters: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Parameters whole at one time under ZeRO-3, linear by linear. [1]"""
    reduced_parameters: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Parameters in one bucket of gradients, a buffer from ZeRO-1 on. [1]"""
    keeps_stage_outputs: bool | None = None
    """Outputs that a stage sent on stay until its backward. [-]"""
    head_stays_whole: bool | None = None
    """Under ZeRO-3 the head is gathered once, from its forward to the step's end."""
    dropout_bytes: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Mask kept per element by each of a layer's two dropouts. [B]"""
    embedding_stays_whole: bool | None = None
    """The embedding is gathered once too, as the head is."""
    flat_parameters: bool | None = None
    """Sharding of ZeRO-2 and 3 is FSDP1's, by flat parameters. [-]"""
    shards_freed: bool | None = None
    """Sharded gradients are freed after every step too, and count as freed."""
    accumulates_at: tuple[int, ...] | None = None
    """ZeRO stages at which ``accumulates_unsharded`` holds. [1]"""
    accumulator_bytes: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Format of the whole gradients that wait. [B]"""
    replay: ReplayPolicy | None = None
    """Precision policy whose eager operators are replayed for activations. [text]"""
    fp16_replay: ReplayPolicy | None = None
    """Policy in place of ``replay`` in fp16 where no part is frozen. [text]"""
    loss: LossForm | None = None
    """Form of the replayed loss. [text]"""
    keeps_outputs: bool | None = None
    """The loop keeps a forward's logits until the next forward is over."""
    lengths: Lengths | None = None
    """Sequences have the job's length, or lengths spread evenly below it. [text]"""
    vocab_multiple: int | None = Field(default=None, ge=1)
    """The vocabulary is padded to a multiple of this times tp. [1]"""
    offload_takes_gradients: bool | None = None
    """Reduced gradients go to the host where the optimizer is kept there."""
    offloads_to_nvme: bool | None = None
    """Optimizer states and parameters may lie on the host's local drives."""
    workspace_mib: dict[str, float] | None = None
    """Workspaces of the matrix libraries, by GPU architecture. [MiB]"""
    optimizer_kernel: OptimizerKernel | None = None
    """Kernels of Adam: one kernel, list operations over all tensors, or a loop."""
    step_gradient_bytes: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Copy of a rank's gradients that its optimizer step makes, per parameter. [B]"""
    gathers_in_place: bool | None = None
    """ZeRO-1 and 2 gather parameters into the room that they are used from."""
    resume_copies: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Copies of the optimizer's moments on the GPU while they are loaded. [1]"""
    checkpoint: CheckpointForm | None = None
    """Form that ZeRO-3 writes: shards, or units or the model made whole on the GPU."""
    whole_embedding_gradient: bool | None = None
    """The gradient of a table split over its rows is made whole (DTensor)."""
    reduces_units: bool | None = None
    """ZeRO-2 reduces a unit's whole gradients from a buffer of their own."""
    overlap_buffers: int | None = Field(default=None, ge=0)
    """Activations of a layer registered for overlapped exchanges over tp. [1]"""
    repeats_kv: bool | None = None
    """Keys and values are copied for every query head before attention."""
    split_logits_bytes: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Bytes per logit where tensor ranks share the vocabulary. [B]"""
    plain_logits_bytes: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Bytes per logit of models whose feed-forward layers have no gate. [B]"""
    copies_inputs: bool | None = None
    """Over tensor ranks every linear keeps a copy of its input."""
    cp_repeats_kv: bool | None = None
    """Context ranks exchange keys and values copied for every query head."""
    keeps_dispatched: bool | None = None
    """A recomputed layer sends no token again: what came in and went back stays."""

    def on(self, recipe: Recipe) -> Recipe:
        """A recipe with these overrides."""
        given = {
            name: value
            for name in type(self).model_fields
            if (value := getattr(self, name)) is not None
        }
        if self.states is not None:
            given["states"] = recipe.states | self.states
        return replace(recipe, **given)


class Option(BaseModel):
    """One word of a setting that a framework has, and what it changes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    profile: dict[str, object] = {}
    """Fields of the profile. [-]"""
    recipe: RecipeOverrides = RecipeOverrides()
    """Memory habits. [-]"""
    source: str
    """Facts about the word, with their source. [text]"""


@dataclass(frozen=True)
class Framework(Switched):
    """One training framework: its limits, its memory recipe, its time profile."""

    name: str
    title: str
    limits: Limits
    recipe: Recipe
    profile: Profile
    options: dict[str, dict[str, Option]] = field(default_factory=dict)
    """Settings of its own in the ``stack:`` block: name, word, what it changes."""
    formats: Formats = field(default_factory=Formats)
    """Formats that the user may send gradients and parameters in."""
    writers: tuple[Writer, ...] = ()
    """Targets that launch files are written for; none where the stack has none."""
    words: Mapping[str, object] = field(default_factory=dict)
    """The ``stack:`` block of the job. [-]"""
    nearest_target: str = ""
    """The target nearest to a stack that no files are written for. [text]"""
    switches: dict[str, Needs] = field(default_factory=dict)
    """Needs of the switches of the profile, which a layout must meet."""
    stack: str = ""
    """The named stack of the framework; empty on the default stack. [text]"""

    @property
    def on_stack(self) -> str:
        """Name of the framework, and of the stack if not the default. [text]."""
        return f"{self.name} with stack {self.stack}" if self.stack else self.name

    by_hand: tuple[str, ...] = ()
    """Fields of the stack that a job set, each with what it replaces. [text]"""

    @property
    def own_formats(self) -> CommDtype:
        """Formats that the recipe sends gradients and parameters in."""
        return CommDtype(
            gradients="fp32" if self.recipe.gradient_bytes == FP32 else "bf16",
            parameters="fp8" if self.recipe.gather_bytes == FP8 else "bf16",
        )

    def sending(self, wanted: CommDtype) -> Recipe:
        """The recipe where gradients and parameters travel in other formats."""
        recipe, own = self.recipe, self.own_formats
        gradients = self.formats.gradients.get(wanted.gradients)
        if gradients and wanted.gradients != own.gradients:
            recipe = _reducing(recipe, gradients, WIRE_BYTES[wanted.gradients])
        parameters = self.formats.parameters.get(wanted.parameters)
        if parameters and wanted.parameters != own.parameters:
            width = WIRE_BYTES[wanted.parameters]
            primary = parameters.primary
            recipe = replace(recipe, gather_bytes=width, fp8_primary=primary)
        return recipe


def _reducing(recipe: Recipe, form: WireFormat, width: float) -> Recipe:
    """A recipe whose gradients travel in another format, and are kept as it says."""
    step = recipe.step_gradient_bytes if form.step is None else form.step
    changed = replace(recipe, gradient_bytes=width, step_gradient_bytes=step)
    if form.held is None:
        return changed
    held = {
        stage: replace(
            states,
            gradients=form.held if states.gradients else 0.0,
            sharded_gradients=form.held if states.sharded_gradients else 0.0,
        )
        for stage, states in recipe.states.items()
    }
    return replace(changed, states=held)
