"""The software stack of a training framework: what moves its time and memory."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.hardware.reading.names import Line

GatheredInputs = Literal["saved", "regathered"]
CudaGraphs = Literal["none", "router", "dense", "layer", "full"]
ExpertDispatch = Literal["all-to-all", "deduplicated"]
Fp8Recipe = Literal["delayed", "current", "blockwise"]
Allocator = Literal["ratio", "segments", "expandable"]


class Profile(BaseModel):
    """The software stack of a framework: physical constants, all overridable.

    Each field can be set in the ``stack:`` block of a spec, and every value in
    force is printed with the estimate.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    version: Line
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
    """Time in which the host launches the backward of one layer. [s]"""
    host_experts: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Time in which the host launches router, dispatch and combine, each way. [s]"""
    host_tensor: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Time in which the host launches a layer's exchanges among tensor ranks, each way.
    [s]"""
    host_ring: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Time in which the host launches the attention to one chunk of a ring, each way.
    [s]"""
    expert_wait: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Idle GPU in each pass of a routed layer whose token counts the host reads. [s]"""
    expert_launch: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Idle GPU per kernel that is launched for one expert alone. [s]"""
    expert_dispatch: ExpertDispatch = "all-to-all"
    """Every copy of a token sent, or one per rank and domain that holds its experts."""
    dispatch_bytes: float = Field(default=2.0, gt=0, le=4, allow_inf_nan=False)
    """Bytes sent per number to the experts, and of gradients back into them. [B]"""
    ep_overlap: bool = False
    """Expert all-to-alls run beside another micro-batch's passes."""
    clock: float = Field(gt=0, le=1.5)
    """Sustained rate of GEMMs over kernel measurements. [1]"""
    attention_rate: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Rate of the attention core over its measured curve. [1]"""
    score_forward: float = Field(default=13.0, gt=0, allow_inf_nan=False)
    """Bytes moved per explicit score in the forward. [B]

    QK^T writes 2, a fused softmax moves 4, dropout 4 and a mask of 1, PV reads 2."""
    score_backward: float = Field(default=20.0, gt=0, allow_inf_nan=False)
    """Bytes moved per explicit score in the backward. [B]

    PV reads 2 and writes 2, dropout 5, softmax 6, QK^T reads 4, rounding 1."""
    latency: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    """Factor on every latency of operators, of their launch and of the host. [1]"""
    network: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Factor on the bandwidth between scale-up domains. [1]"""
    step_overhead: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Host work of an optimizer step that hides behind nothing. [s]"""
    step_factor: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Factor on the whole step, that the user's own runs gave. [1]"""
    memory_factor: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Factor on allocated memory, that the user's own runs gave. [1]"""
    cuda_graphs: CudaGraphs = "none"
    """Part launched as a graph: nothing, all but experts, every layer, or the step."""
    fp8_recipe: Fp8Recipe = "current"
    """Scaling of fp8 inputs: by earlier steps, by a first pass, or by blocks."""
    hidden_tp: float = Field(ge=0, le=1)
    """Share of the tensor-parallel collectives hidden behind GEMMs. [1]"""
    tp_overlap: bool = False
    """Tensor-parallel exchanges run beside their GEMMs, piece by piece."""
    tp_contention: float = Field(default=0.05, ge=0, le=1)
    """Compute lost per second of a tensor-parallel exchange that runs beside it. [1]"""
    hidden_regather: float = Field(ge=0, le=1)
    """Share hidden of the gather that the backward repeats under sp. [1]"""
    narrow_gathers: bool = False
    """Tensor ranks under sp gather inputs that are already cast below 16 bits."""
    gradient_traffic: float = Field(default=8.0, ge=2, allow_inf_nan=False)
    """Bytes moved per element of a bf16 weight gradient: 2 written, 8 where the product
    adds to an fp32 one, more where a kernel of its own adds. [B]"""
    single_nic: bool = False
    """A collective leaves a node at one NIC, as broadcasts from owners in turn do."""
    whole_tensors: bool = False
    """ZeRO-1 divides states by tensors: one reduce and broadcast for each."""
    stage_scatter: bool = False
    """Without sp each tensor rank sends its share to the next stage, which gathers."""
    hidden_cp: float = Field(ge=0, le=1)
    """Share of the context-parallel exchange hidden behind attention. [1]"""
    cp_sum_bytes: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Bytes of ``memory_traffic`` per number that a ring adds to its sums. [B]"""
    hidden_ep: float = Field(ge=0, le=1)
    """Share of the expert all-to-all hidden. [1]"""
    gathered_inputs: GatheredInputs
    """Handling of inputs gathered under sp: saved, or gathered again."""
    norm_input_bytes: float = Field(gt=0)
    """Bytes kept per norm input element: 2 fused, 6 with eager fp32 copies. [B]"""
    activation_bytes: float = Field(ge=0)
    """Bytes kept per element of SwiGLU's result: 2 fused, 0 compiled, 4 eager. [B]"""
    overlap_grad_reduce: bool
    overlap_param_gather: bool
    overlap_contention: float = Field(ge=0, le=1)
    """Compute lost per second of collective that runs beside it. [1]"""
    collectives_per_unit: int = Field(default=1, ge=1)
    """Collectives that a ZeRO-3 unit's tensors travel in, one after the other. [1]"""
    gather_copy: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Bytes moved per parameter from a ZeRO-3 gather's buffer into place. [B]"""
    scatter_copy: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Bytes moved per parameter into the buffer of ZeRO-3's reduce-scatter. [B]"""
    straggler: float = Field(ge=0)
    """Relative spread of the step time between replicas. [1]"""
    expert_imbalance: float | None = Field(default=None, ge=1, allow_inf_nan=False)
    """Load of the busiest expert rank over the mean; null: by ``expert_spread``. [1]"""
    expert_spread: float = Field(default=0.3, ge=0, allow_inf_nan=False)
    """Standard deviation of the experts' loads over their mean. [1]"""
    fragmentation: float = Field(gt=0, le=1)
    """Allocated over reserved memory, with room to spare. [1]"""
    loads_masks: bool = False
    """The data loader makes a dense causal mask for every sequence and sends it to the
    GPUs of both ends."""
    allocator: Allocator = "ratio"
    """Reserved memory by that ratio, or by PyTorch's allocator, simulated where the
    steps are replayed: segments of its default, or expandable ones."""
    reserved_factor: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Factor on simulated reserved memory, that the user's own runs gave. [1]"""
    packing: float = Field(default=1.0, gt=0, le=1)
    """Allocated over reserved memory, with every cache given back that can be. [1]"""
    context_gb: float = Field(ge=0)
    """CUDA context, modules and workspaces. [GB]"""
    communicator_gb: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """NCCL buffers of every communicator; null: by its ranks and channels. [GB]"""
    bucket_parameters: float | None = Field(gt=0)
    """Fewest parameters that share one gradient collective; null: a layer. [1]"""
    bucket_parameters_per_rank: float = Field(ge=0)
    """Fewest parameters of a bucket per rank: large groups get larger buckets. [1]"""
    compile: bool = True
    """True where blocks are compiled; false takes the framework's eager stack."""
    source: str
