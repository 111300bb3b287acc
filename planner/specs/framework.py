"""What a training framework can express, keeps in memory, and costs in time.

A framework is a value of these types; cost and search receive it and never
learn its name.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

RecomputeScope = Literal["plan", "virtual-stage"]
GatheredInputs = Literal["saved", "regathered"]
CudaGraphs = Literal["none", "dense", "layer", "full"]
ExpertDispatch = Literal["all-to-all", "deduplicated"]
Fp8Recipe = Literal["delayed", "current", "blockwise"]

SAVED_TENSORS = frozenset(
    {
        "attention_norm_input",
        "attention_norm_output",
        "latents",
        "qkv",
        "attention_output",
        "logsumexp",
        "ffn_norm_input",
        "ffn_norm_output",
        "fc1_output",
        "activation",
        "router",
        "expert_input",
        "expert_fc1_output",
        "expert_activation",
        "shared_fc1_output",
        "shared_activation",
    }
)
"""Every tensor that a layer may keep for its backward pass."""


@dataclass(frozen=True)
class RecomputeKind:
    """What one kind of activation recompute keeps, and what it runs again.

    Fractions are of the forward pass of one layer.
    """

    name: str
    keeps: dict[str, float]
    """Share of every saved tensor that stays in memory; absent means none. [1]"""
    gemms: dict[str, float] = field(default_factory=dict)
    """Share of a GEMM's forward run again, by name; ``*`` for all others. [1]"""
    core: float = 0.0
    """Share of the attention core run again. [1]"""
    memory_ops: float = 0.0
    """Share of the memory-bound operators run again. [1]"""
    collectives: float = 0.0
    """Share of the forward collectives inside the layer run again. [1]"""
    rebuilds_layer: bool = False
    """The whole layer's activations exist again during its backward."""
    drops_key: bool = False
    """The key projection is neither kept nor free: it runs again."""
    keeps_output: bool = False
    """The output of the last GEMM stays, full width on every tensor rank."""


@dataclass(frozen=True)
class Limits:
    """What a framework can express; the search never leaves it."""

    zero_stages: tuple[int, ...]
    default_zero_stage: int
    """ZeRO stage that a layout without one gets, and the same with a pipeline."""
    default_zero_stage_pipelined: int
    schedules: tuple[str, ...]
    cp_kinds: tuple[str, ...]
    orders: tuple[str, ...]
    recompute: tuple[str, ...]
    recompute_scope: RecomputeScope
    hybrid_sharding: bool
    sequence_parallel: tuple[bool, ...]
    """Legal values of ``sp`` where tp > 1; tp = 1 always has it off."""
    expert_tensor: bool
    """Whether etp may differ from 1."""
    experts_need_sp: bool
    source: str
    offload: frozenset[str] = frozenset()
    """What may lie in host memory: categories, with + between those that only move
    together; any union of them can be chosen."""
    offload_least_zero: dict[str, int] = field(default_factory=dict)
    """ZeRO stage that a category needs beyond being sharded, to be offloaded. [1]"""
    offloads_activations_alone: bool = False
    """Activations are offloaded only without a pipeline and without recompute."""


@dataclass(frozen=True)
class StateBytes:
    """Bytes per parameter: what every rank holds, and what is divided. [B]."""

    weights: float = 0.0
    gradients: float = 0.0
    optimizer: float = 0.0
    sharded_weights: float = 0.0
    sharded_gradients: float = 0.0
    sharded_optimizer: float = 0.0


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
    """The same as ``states`` in fp16, where it differs. [B]"""
    gradients_freed: bool = False
    """Gradients are freed after every step, not kept in a buffer."""
    state_bits: int = 32
    """Width of the optimizer's moments where the job names none. [bit]"""
    keeps_fp8: bool = False
    """Linears keep quantised weights and inputs; false quantises again."""
    fp8_primary: bool = False
    """The quantised weights replace the bf16 ones (``fp8_param_gather``)."""
    live_parameters: float | None = None
    """Parameters whole at one time under ZeRO-3 where linears are gathered one by
    one; none: whole layers are. [1]"""
    reduced_parameters: float | None = None
    """Parameters in one bucket of gradients, a buffer of its own from ZeRO-1 on;
    none: a layer under ZeRO-3, and no buffer below. [1]"""
    keeps_stage_outputs: bool = False
    """What a stage sent on stays until its backward. [-]"""
    head_stays_whole: bool = True
    """Under ZeRO-3 the head is gathered once, from its forward to the step's end."""
    dropout_bytes: float = 0.0
    """Mask kept per element by each of a layer's two dropouts. [B]"""
    vocab_multiple: int = 1
    """The vocabulary is padded to a multiple of this times tp. [1]"""
    offload_takes_gradients: bool = False
    """Reduced gradients go to the host where the optimizer is kept there."""
    offloads_to_nvme: bool = False
    """Optimizer states and parameters may lie on the host's local drives."""
    workspace_mib: dict[str, float] = field(default_factory=dict)
    """Workspaces of the matrix libraries, by GPU architecture. [MiB]"""


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
    dummy_weight_gradients: bool | None = None
    """One bf16 gradient per distinct weight shape is cached (TransformerEngine)."""
    states: dict[int, StateBytes] | None = None
    """Bytes per parameter of some ZeRO stages; the others stay. [B]"""
    fp16_states: dict[int, StateBytes] | None = None
    """The same in fp16, where it differs. [B]"""
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
    fp8_primary: bool | None = None
    """The quantised weights replace the bf16 ones (``fp8_param_gather``)."""
    live_parameters: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Parameters whole at one time under ZeRO-3, linear by linear. [1]"""
    reduced_parameters: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Parameters in one bucket of gradients, a buffer from ZeRO-1 on. [1]"""
    keeps_stage_outputs: bool | None = None
    """What a stage sent on stays until its backward. [-]"""
    head_stays_whole: bool | None = None
    """Under ZeRO-3 the head is gathered once, from its forward to the step's end."""
    dropout_bytes: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Mask kept per element by each of a layer's two dropouts. [B]"""
    vocab_multiple: int | None = Field(default=None, ge=1)
    """The vocabulary is padded to a multiple of this times tp. [1]"""
    offload_takes_gradients: bool | None = None
    """Reduced gradients go to the host where the optimizer is kept there."""
    offloads_to_nvme: bool | None = None
    """Optimizer states and parameters may lie on the host's local drives."""
    workspace_mib: dict[str, float] | None = None
    """Workspaces of the matrix libraries, by GPU architecture. [MiB]"""

    def on(self, recipe: Recipe) -> Recipe:
        """A recipe with these in place of its own.

        Args:
            recipe: Any recipe. [-]

        Returns:
            The same where nothing is given here. [-]
        """
        given = {
            name: value
            for name in type(self).model_fields
            if (value := getattr(self, name)) is not None
        }
        if self.states is not None:
            given["states"] = recipe.states | self.states
        return replace(recipe, **given)


class Profile(BaseModel):
    """The software stack of a framework: physical constants, all overridable.

    Each field can be set in the ``stack:`` block of a spec, and every value in
    force is printed with the estimate.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    version: str
    attention_kernel: dict[str, str] | str
    """Attention kernel by GPU architecture, or one for all."""
    memory_traffic: float = Field(gt=0)
    """Bytes moved by memory-bound operators over those of fused kernels. [1]"""
    loss_traffic: float = Field(default=10.0, gt=0, allow_inf_nan=False)
    """Bytes of ``memory_traffic`` per logit in the loss, both ways: 10 fused. [B]"""
    forward_operators: int = Field(ge=0)
    """Memory-bound kernels in the forward of one layer. [1]"""
    backward_operators: int = Field(ge=0)
    """Memory-bound kernels in the backward of one layer. [1]"""
    host_forward: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Time in which the host launches the forward of one layer. [s]"""
    host_backward: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """The same of its backward. [s]"""
    host_experts: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """The same each way for router, dispatch and combine. [s]"""
    expert_wait: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Idle GPU in each pass of a routed layer whose token counts the host reads. [s]"""
    expert_launch: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """The same per kernel that is launched for one expert alone. [s]"""
    expert_dispatch: ExpertDispatch = "all-to-all"
    """Every copy of a token sent, or one per rank and domain that holds its experts."""
    ep_overlap: bool = False
    """All-to-alls that leave a domain run beside another micro-batch's passes."""
    clock: float = Field(gt=0, le=1.5)
    """Sustained rate of GEMMs and attention over kernel measurements. [1]"""
    attention_rate: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Rate of the attention core over its measured curve. [1]"""
    latency: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    """Factor on every latency of operators, of their launch and of the host. [1]"""
    network: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Factor on the bandwidth between scale-up domains. [1]"""
    step_overhead: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Host work of an optimizer step that hides behind nothing. [s]"""
    cuda_graphs: CudaGraphs = "none"
    """Launched as a graph: nothing, all but experts, every layer, or the step."""
    fp8_recipe: Fp8Recipe = "current"
    """How fp8 inputs are scaled: by earlier steps, by a first pass, or by blocks."""
    hidden_tp: float = Field(ge=0, le=1)
    """Share of the tensor-parallel collectives hidden behind GEMMs. [1]"""
    tp_overlap: bool = False
    """Tensor-parallel exchanges run beside their GEMMs, piece by piece."""
    tp_contention: float = Field(default=0.05, ge=0, le=1)
    """Compute lost per second of an exchange that runs beside it so. [1]"""
    hidden_regather: float = Field(ge=0, le=1)
    """Share hidden of the gather that the backward repeats under sp. [1]"""
    gradient_traffic: float = Field(default=8.0, ge=2, allow_inf_nan=False)
    """Bytes moved per element of a bf16 product that adds to an fp32 gradient. [B]"""
    single_nic: bool = False
    """A collective leaves a node at one NIC, as broadcasts from owners in turn do."""
    whole_tensors: bool = False
    """ZeRO-1 divides states by tensors: one reduce and broadcast for each."""
    stage_scatter: bool = False
    """Without sp each tensor rank sends its share to the next stage, which gathers."""
    hidden_cp: float = Field(ge=0, le=1)
    """Share of the context-parallel exchange hidden behind attention. [1]"""
    hidden_ep: float = Field(ge=0, le=1)
    """Share of the expert all-to-all hidden. [1]"""
    gathered_inputs: GatheredInputs
    """Whether inputs gathered under sp are kept, or gathered again."""
    norm_input_bytes: float = Field(gt=0)
    """Kept per element of a norm's input: 2 fused, 6 with eager fp32 copies. [B]"""
    activation_bytes: float = Field(ge=0)
    """Kept per element of SwiGLU's result: 2 fused, 0 compiled, 4 eager. [B]"""
    overlap_grad_reduce: bool
    overlap_param_gather: bool
    overlap_contention: float = Field(ge=0, le=1)
    """Compute lost per second of collective that runs beside it. [1]"""
    collectives_per_unit: int = Field(default=1, ge=1)
    """Collectives that a ZeRO-3 unit's tensors travel in, one after the other. [1]"""
    gather_copy: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Moved per parameter from a ZeRO-3 gather's buffer into place. [B]"""
    scatter_copy: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Moved per parameter into the buffer of ZeRO-3's reduce-scatter. [B]"""
    straggler: float = Field(ge=0)
    """Relative spread of the step time between replicas. [1]"""
    expert_imbalance: float = Field(ge=1)
    """Load of the busiest expert rank over the mean. [1]"""
    fragmentation: float = Field(gt=0, le=1)
    """Allocated over reserved memory, with room to spare. [1]"""
    packing: float = Field(default=1.0, gt=0, le=1)
    """The same where the allocator has given back every cache it can. [1]"""
    context_gb: float = Field(ge=0)
    """CUDA context, modules and workspaces. [GB]"""
    communicator_gb: float = Field(ge=0)
    """NCCL buffers of one communicator. [GB]"""
    bucket_parameters: float | None = Field(gt=0)
    """Fewest parameters that share one gradient collective; null: a layer. [1]"""
    bucket_parameters_per_rank: float = Field(ge=0)
    """The same, per rank of the group: large groups get larger buckets. [1]"""
    compile: bool = True
    """Whether blocks are compiled; false takes the room's eager stack."""
    source: str


@dataclass(frozen=True)
class Framework:
    """One training framework: its limits, its memory recipe, its time profile."""

    name: str
    title: str
    limits: Limits
    recipe: Recipe
    profile: Profile
