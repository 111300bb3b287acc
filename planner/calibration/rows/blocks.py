"""The blocks of a measured row, as its author wrote them.

A key that resembles one of these is misspelt; other further keys are kept.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Ranks = Annotated[int, Field(gt=0, le=10_000_000)]
"""GPUs, and what divides them. [1]"""
Layers = Annotated[int, Field(gt=0, le=10_000)]
Width = Annotated[int, Field(gt=0, le=10_000_000)]
"""Numbers of a vector, a vocabulary, or heads. [1]"""
Sequences = Annotated[int, Field(gt=0, le=1_000_000)]
"""Sequences of a batch. [1]"""
Tokens = Annotated[int, Field(gt=0, le=100_000_000)]
"""Tokens of a sequence. [token]"""
STEPS = (1e-4, 1e6)
"""Shortest and longest optimizer step: nothing but launches, and eleven days. [s]"""
RATES = (1e-6, 1e12)
"""Fewest and most tokens or sequences a second. [1/s]"""
Seconds = Annotated[float, Field(ge=STEPS[0], le=STEPS[1])]
Rate = Annotated[float, Field(ge=RATES[0], le=RATES[1])]
Teraflops = Annotated[float, Field(ge=1e-3, le=1e5, allow_inf_nan=False)]
"""Rate of one GPU. [TFLOP/s]"""
Amount = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
"""Positive amount of any other quantity. [-]"""
MOST_GB = 1e6
"""Peak memory of a GPU that no machine has. [GB]"""
PER_CENT = 10
"""Utilisations from here to 100 are per cent: none reaches 1, and few are below. [%]"""


def _share(value: Any) -> Any:
    """A utilisation that is printed in per cent as a share of one."""
    return value / 100 if _is_number(value) and PER_CENT <= value <= 100 else value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _amount(value: Any) -> Any:
    """A peak memory as given; anything but an amount in range is refused."""
    if value is not None and not (_is_number(value) and 0 < value <= MOST_GB):
        raise ValueError(f"no amount; more than 0, at most {MOST_GB:g}, is one")
    return value


Utilisation = Annotated[
    float,
    BeforeValidator(_share),
    Field(gt=0, le=1, allow_inf_nan=False),
]
"""Achieved over possible FLOP/s; 10 to 100 are read as per cent. [1]"""


class _Block(BaseModel):
    """Fields that planner reads, and those that it keeps beside them."""

    model_config = ConfigDict(frozen=True, extra="allow", coerce_numbers_to_str=True)

    def text(self, name: str) -> str:
        """A field as lower-case text, also one that no class declares.

        Returns:
            Text of the field, empty where the field is absent. [text]
        """
        value = getattr(self, name, None)
        return "" if value is None else str(value).lower()


class _Words(BaseModel):
    """Fields that say only what their vocabulary has."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)


class SourceBlock(_Block):
    """Source of a row."""

    title: str = ""
    url_or_repo_path: str = ""
    table_or_section: str | None = None
    retrieved: Any = None


class MoeBlock(_Block):
    """Experts of a mixture of experts."""

    experts: Annotated[int, Field(gt=0, le=100_000)]
    topk: Annotated[int, Field(gt=0, le=100_000)]
    expert_ffn: Width | None = None
    shared_experts: int = Field(default=0, ge=0, le=1000)
    dense_layers: int = Field(default=0, ge=0, le=10_000)
    layer_freq_spec: str | None = None
    """Layers that have experts, in Megatron's words: `([0]*3+[1]*5)`. [text]"""


class ModelBlock(_Block):
    """Shape of a model."""

    name: str = ""
    family: str | None = None
    """The ``model_type`` of its published config.json, where no preset stands in."""
    layers: Layers
    hidden: Width
    heads: Width
    kv_heads: Width | None = None
    ffn_hidden: Width | None = None
    vocab: Width | None = None
    head_dim: Width | None = None
    gated_mlp: bool | None = None
    tied_embeddings: bool | None = None
    biases: bool | None = None
    position: str | None = None
    attention: str | None = None
    sliding_window: Tokens | None = None
    parallel_blocks: bool | None = None
    mtp_layers: int | None = Field(default=None, ge=0, le=100)
    params_b: Amount | None = None
    moe: MoeBlock | None = None


class HardwareBlock(_Block):
    """The GPUs of a run and what joins them."""

    gpu: str
    gpus: Ranks
    gpus_per_node: Ranks | None = None
    gpu_memory_gb: Amount | None = None
    intra_node: str | None = None
    inter_node: str | None = None
    per_gpu_inter_gbps: Amount | None = None
    nvlink_domain: Ranks | None = None
    hbm_tb_s: Amount | None = None
    power_limit_w: Amount | None = None
    power_note: str | None = None
    held_rate: Annotated[float, Field(gt=0, le=1)] | None = None
    """Rate of the machine's own products over the chip's sustained rate. [1]"""
    held_note: str | None = None


class JobBlock(_Block):
    """Job of one optimizer step, and the software that ran it."""

    seq_len: Tokens
    global_batch: Sequences | None = None
    precision: str = "bf16"
    precision_detail: str | None = None
    optimizer: str | None = None
    framework: str = ""
    framework_version: str | None = None
    transformer_impl: str | None = None
    attention_backend: str | None = None
    flash_attention: bool | None = None
    loss_fusion: bool | None = None
    task: str | None = None
    lora: dict[str, Any] | None = None
    packed: bool | None = None


class LayoutBlock(_Block):
    """Layout of the model on the GPUs."""

    tp: Ranks = 1
    sp: bool | None = None
    pp: Ranks = 1
    vpp: Layers | None = None
    cp: Ranks = 1
    cp_comm: str | None = None
    ep: Ranks | None = None
    etp: Ranks | None = None
    dp: Ranks | None = None
    micro_batch: Sequences | None = None
    grad_accum: Sequences | None = None
    zero_stage: int | None = Field(default=None, ge=0, le=3)
    sharding: str | None = None
    recompute: str | None = None
    offload: str | None = None
    schedule: str | None = None
    pipeline_layout: str | None = None
    pp_partition: list[int] | str | None = None
    overlap_grad_reduce: bool | None = None
    overlap_param_gather: bool | None = None
    tp_comm_overlap: bool | None = None
    cuda_graph: str | None = None
    bucket: str | None = None
    rank_order: str | None = None
    moe_dispatcher: str | None = None


class MeasuredBlock(_Block):
    """Measured quantities, each in the unit of the field's name."""

    step_time_s: Seconds | None = None
    tokens_per_s_per_gpu: Rate | None = None
    tokens_per_s_total: Rate | None = None
    samples_per_s: Rate | None = None
    sequences_per_s: Rate | None = None
    model_tflops_per_gpu: Teraflops | None = None
    hardware_tflops_per_gpu: Teraflops | None = None
    flops_convention: str | None = None
    mfu: Utilisation | None = None
    hfu: Utilisation | None = None
    mfu_convention: str | None = None
    mfu_peak_tflops: Teraflops | None = None
    days_for_300b_tokens: Amount | None = None
    peak_memory_gb: Annotated[float | None, BeforeValidator(_amount)] = None
    memory_kind: str | None = None
    oom: Annotated[bool, BeforeValidator(lambda value: value or False)] = False
    peak_memory_reserved_gb: Amount | None = None
    allocated_steady_gb: Amount | None = None
    peak_allocated_first_rank_mib: Amount | None = None
    peak_allocated_last_rank_mib: Amount | None = None
    aggregate_pflops: Amount | None = None
    block_wall_step_s: Seconds | None = None
    run_seconds: Amount | None = None
    run_step_range_s: Any = None
    runs: Any = None
    throughput_as_printed: Any = None
    best_tflops_without_cp: Any = None
    model_or_hardware_tflops_per_gpu: Teraflops | None = None


class GradientFormats(_Words):
    """Number formats of gradients."""

    accumulate: Literal["fp32", "bf16", "fp16"] | None = None
    reduce: Literal["fp32", "bf16", "fp16"] | None = None


class Fp8Words(_Words):
    """Parts of a run in eight bits, and their scaling."""

    recipe: (
        Literal[
            "delayed", "current", "block", "rowwise", "tensorwise", "mxfp8", "nvfp4"
        ]
        | None
    ) = None
    attention: bool | None = None
    activations: bool | None = None
    primary_weights: bool | None = None


class SoftwareBlock(_Words):
    """Software of a run, in fixed words; an absent key is unknown."""

    version: str | None = None
    attention: (
        Literal[
            "cudnn", "fa2", "fa3", "sdpa", "triton", "aiter", "ck", "eager", "unfused"
        ]
        | None
    ) = None
    compile: bool | None = None
    allocator: Literal["segments", "expandable"] | None = None
    deterministic: bool | None = None
    vboost: bool | None = None
    loss: (
        Literal["eager", "compiled", "chunked", "fused", "fused-te", "half"] | None
    ) = None
    """Kernels of the loss; ``fused-te`` are those of TransformerEngine, ``half`` takes
    16-bit logits in eager PyTorch."""
    outputs: Literal["freed", "kept"] | None = None
    lengths: Literal["cut", "below"] | None = None
    """Sequences have ``seq_len`` tokens, or lengths below, padded to the longest."""
    gradients: GradientFormats | None = None
    master_weights: Literal["fp32", "bf16-remainder", "none"] | None = None
    moments: Literal["fp32", "bf16", "8-bit"] | None = None
    tp_overlap: Literal["none", "userbuffers", "async"] | None = None
    ep_overlap: bool | None = None
    grad_reduce_overlap: bool | None = None
    param_gather_overlap: bool | None = None
    dispatcher: (
        Literal["alltoall", "allgather", "deepep", "hybridep", "flex"] | None
    ) = None
    routing: Literal["forced", "padded", "balanced", "free"] | None = None
    """Loads of the experts; ``padded``: tokens are dropped and padded to one load."""
    cuda_graphs: (
        Literal["none", "router", "attention", "layer", "full-iteration"] | None
    ) = None
    """Part that is launched as a graph; ``router`` with what it does before tokens are
    sent, ``attention`` with that, too."""
    bucket_parameters: Annotated[float, Field(gt=0, le=1e13)] | None = None
    power_limit_w: Amount | None = None
    fp8: Fp8Words | None = None
    campaign: str | None = None
