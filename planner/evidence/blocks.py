"""The blocks of a measured row, as its author wrote them; further keys are kept."""

from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
)


class _Block(BaseModel):
    """Fields that planner reads; all others stay beside them."""

    model_config = ConfigDict(frozen=True, extra="allow", coerce_numbers_to_str=True)

    def text(self, name: str) -> str:
        """A field as lower-case text, also one that no class declares.

        Args:
            name: Name of the field. [text]

        Returns:
            Its text, empty where it is absent. [text]
        """
        value = getattr(self, name, None)
        return "" if value is None else str(value).lower()


class SourceBlock(_Block):
    """Where a row is from."""

    title: str = ""
    url_or_repo_path: str = ""


class MoeBlock(_Block):
    """Experts of a mixture of experts."""

    experts: PositiveInt
    topk: PositiveInt
    expert_ffn: PositiveInt | None = None
    shared_experts: int = Field(default=0, ge=0)
    dense_layers: int = Field(default=0, ge=0)
    layer_freq_spec: str | None = None
    """Which layers have experts, as Megatron writes it: `([0]*3+[1]*5)`. [text]"""


class ModelBlock(_Block):
    """Shape of a model."""

    name: str = ""
    layers: PositiveInt
    hidden: PositiveInt
    heads: PositiveInt
    kv_heads: PositiveInt | None = None
    ffn_hidden: PositiveInt | None = None
    vocab: PositiveInt | None = None
    head_dim: PositiveInt | None = None
    gated_mlp: bool | None = None
    tied_embeddings: bool | None = None
    biases: bool | None = None
    position: str | None = None
    attention: str | None = None
    sliding_window: PositiveInt | None = None
    parallel_blocks: bool | None = None
    mtp_layers: int | None = Field(default=None, ge=0)
    params_b: PositiveFloat | None = None
    moe: MoeBlock | None = None


class HardwareBlock(_Block):
    """The GPUs of a run and what joins them."""

    gpu: str
    gpus: PositiveInt
    gpus_per_node: PositiveInt | None = None
    gpu_memory_gb: PositiveFloat | None = None
    intra_node: str | None = None
    inter_node: str | None = None
    per_gpu_inter_gbps: PositiveFloat | None = None
    nvlink_domain: PositiveInt | None = None
    hbm_tb_s: PositiveFloat | None = None
    power_limit_w: PositiveFloat | None = None


class JobBlock(_Block):
    """What one step computes, and in which software."""

    seq_len: PositiveInt
    global_batch: PositiveInt | None = None
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


class LayoutBlock(_Block):
    """How the model lay on the GPUs."""

    tp: PositiveInt = 1
    sp: bool | None = None
    pp: PositiveInt = 1
    vpp: PositiveInt | None = None
    cp: PositiveInt = 1
    cp_comm: str | None = None
    ep: PositiveInt | None = None
    etp: PositiveInt | None = None
    dp: PositiveInt | None = None
    micro_batch: PositiveInt | None = None
    grad_accum: PositiveInt | None = None
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


class MeasuredBlock(_Block):
    """What was measured, in the units of its names."""

    step_time_s: PositiveFloat | None = None
    tokens_per_s_per_gpu: PositiveFloat | None = None
    tokens_per_s_total: PositiveFloat | None = None
    samples_per_s: PositiveFloat | None = None
    sequences_per_s: PositiveFloat | None = None
    model_tflops_per_gpu: PositiveFloat | None = None
    hardware_tflops_per_gpu: PositiveFloat | None = None
    flops_convention: str | None = None
    mfu: PositiveFloat | None = None
    hfu: PositiveFloat | None = None
    mfu_convention: str | None = None
    mfu_peak_tflops: PositiveFloat | None = None
    days_for_300b_tokens: PositiveFloat | None = None
    peak_memory_gb: PositiveFloat | None = None
    memory_kind: str | None = None
    oom: Annotated[bool, BeforeValidator(lambda value: value or False)] = False
