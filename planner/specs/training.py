"""The training block of a spec: what one optimizer step is made of."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from planner.hardware.reading.numbers import NO_SWITCH, Float
from planner.hardware.reading.quantities import Flops
from planner.specs.lengths import Draws, Lengths, Padding, draws_of, refuse_padding

Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4"]
Optimizer = Literal[
    "adamw",
    "adamw-8bit",
    "paged-adamw",
    "paged-adamw-8bit",
    "lamb",
    "lion",
    "sgd",
    "sgd-momentum",
    "adafactor",
    "muon",
    "galore-adamw",
    "apollo-adamw",
]
PROJECTED = ("galore-adamw", "apollo-adamw")
"""Optimizers with moments of a projected gradient, of matrices of layers. [text]"""
Method = Literal["full", "lora", "qlora"]
Quantization = Literal["nf4", "fp4", "int8"]
Target = Literal[
    "qkv",
    "proj",
    "fc1",
    "fc2",
    "q_proj",
    "k_proj",
    "v_proj",
    "o_proj",
    "out_proj",
    "qkv_proj",
    "query_key_value",
    "Wqkv",
    "c_attn",
    "c_proj",
    "c_fc",
    "dense",
    "dense_h_to_4h",
    "dense_4h_to_h",
    "gate_proj",
    "up_proj",
    "down_proj",
    "gate_up_proj",
    "q_a_proj",
    "q_b_proj",
    "kv_a_proj_with_mqa",
    "kv_b_proj",
]

TARGETS: dict[str, tuple[Target, ...]] = {
    "attention": ("qkv", "proj"),
    "all": ("qkv", "proj", "fc1", "fc2"),
}
"""Short names for sets of linear layers that carry adapters."""

Reference = Literal["copy", "adapters", "precomputed"]
ONLY_WITH = {
    "lora": ("lora", "qlora"),
    "quantization": ("qlora",),
    "quantized_experts": ("qlora",),
    "double_quantization": ("qlora",),
}
"""Blocks of a training block that only some methods read. [text]"""


MOST_SEQUENCES = 2**20
"""Most sequences of a batch. The largest published batches have tens of thousands; a
larger number is a count of tokens. [1]"""
MOST_LENGTH = 2**30
"""Tokens of the longest sequence that is looked at. [token]"""


Switch = Annotated[bool | None, AfterValidator(lambda on: on or None)]
"""True, or absent: off is written like a setting that nobody gave."""


class LoraSpec(BaseModel):
    """Low-rank adapters beside frozen linear layers.

    A layer ``(i x o)`` that carries one trains ``rank (i + o)`` parameters.
    Source: Hu et al. 2021, arXiv 2106.09685.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rank: int = Field(default=16, gt=0, strict=True)
    """Inner width of every adapter. [1]"""
    targets: Literal["attention", "all", "all-linear"] | tuple[Target, ...] = "all"
    """Linear layers that carry an adapter, under the names of Megatron (fc1 is gate
    and up together, experts included) or of transformers; all-linear is every one
    that the model's code has there."""
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Share of an adapter's input that is dropped; above 0 each adapter keeps the
    dropped input and a mask. [1]"""
    precision: Literal["bf16", "fp32"] = "bf16"
    """Format of the adapters; in fp32 each keeps an fp32 copy of its input."""
    modules_to_save: tuple[Literal["embed_tokens", "lm_head"], ...] = ()
    """Tables that train in full beside the adapters, each a copy of the frozen one."""
    rslora: Switch = None
    """The product is scaled by alpha over the root of the rank (rank-stabilised), in
    place of alpha over the rank. Source: Kalajdzievski 2023, arXiv 2312.03732."""
    dora: Switch = None
    """Every output has a magnitude that trains, and the sum of the frozen weight and
    the product gives the direction alone: ``rank (i + o) + o`` parameters. Source:
    Liu et al. 2024, arXiv 2402.09353; priced as PEFT runs it."""
    loraplus_lr_ratio: Float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Learning rate of the outer factors over that of the inner ones (LoRA+); absent:
    one rate. Source: Hayou et al. 2024, arXiv 2402.12354. [1]"""

    @property
    def modules(self) -> tuple[Target, ...]:
        """Linear layers that carry an adapter, by name; none for all-linear. [text]."""
        if isinstance(self.targets, str):
            return TARGETS.get(self.targets, ())
        return self.targets


class FreezeSpec(BaseModel):
    """Parts of the model whose weights stay as they are.

    A frozen part has weights alone: no gradient, no master copy, no moments. Blocks
    below the first part that trains have no backward and keep nothing for one.
    Leaves out that a trainer may ask for the input's gradient all the same, as
    transformers does with adapters and recomputation (enable_input_require_grads).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    embedding: bool = False
    """The embedding table, and the learned positions."""
    layers: int = Field(default=0, ge=0, strict=True)
    """Number of first blocks that are frozen. [1]"""
    head: bool = False
    """The output projection, and the norm before it."""


Tokens = Annotated[float, Field(gt=0, allow_inf_nan=False), NO_SWITCH]
"""A number of tokens. [token]"""


class RampStep(BaseModel):
    """The first part of a run, at a smaller batch."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    global_batch: int = Field(gt=0, le=MOST_SEQUENCES, strict=True)
    """Sequences in one optimizer step. [sequence]"""
    tokens: Tokens
    """Tokens trained at this batch. [token]"""


class TrainingSpec(BaseModel):
    """One optimizer step, as the user states it.

    The batch is given in sequences or in tokens, never both.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seq_len: int = Field(gt=0, le=MOST_LENGTH, strict=True)
    """Tokens in one sequence. [token]"""
    global_batch: int | None = Field(default=None, gt=0, strict=True)
    """Sequences in one optimizer step, at most ``MOST_SEQUENCES``. [sequence]"""
    global_batch_tokens: int | None = Field(default=None, gt=0, strict=True)
    """Tokens in one optimizer step, instead of ``global_batch``. [token]"""
    document: int | None = Field(default=None, gt=0, strict=True)
    """Mean length of documents packed into a sequence that attend to themselves
    alone; absent: attention spans the sequence. [token]"""
    lengths: Lengths | None = None
    """Lengths of the data set's texts, which seq_len cuts: {length, share} each, shares
    by length, {median, p90} of a lognormal, or {file} with a length in each line."""
    padding: Padding | None = None
    """Rows are as long as the longest text of their micro-batch (longest, which lengths
    mean unless told), as seq_len (max), or full of several texts (packed)."""
    tokens: Tokens | Literal["compute-optimal"] | None = None
    """Tokens of the whole run, for time to train; compute-optimal is 20 for each
    parameter. [token]"""
    compute: Flops | None = None
    """Work of the whole run in place of tokens: 6 for each parameter and token.
    [FLOP]"""
    inference_tokens: Tokens | None = None
    """Tokens to be served later; compute-optimal tokens then are those that make
    training and serving together cheapest. [token]"""
    batch_ramp: tuple[RampStep, ...] | None = None
    """Smaller batches that the run starts with, in their order."""
    precision: Precision = "bf16"
    optimizer: Optimizer = "adamw"
    state_bits: Literal[8, 16, 32] | None = None
    """Width of the optimizer's moments; absent: the framework's. [bit]"""
    projection_rank: int = Field(default=128, gt=0, strict=True)
    """Rows that galore-adamw and apollo-adamw project a gradient on to. [1]"""
    optimizer_in_backward: bool = False
    """Every parameter is updated as its gradient arrives, which is then freed."""
    method: Method = "full"
    lora: LoraSpec = LoraSpec()
    """Adapters of the methods lora and qlora."""
    quantization: Quantization | None = None
    """Format of the base weights under qlora; absent: nf4."""
    double_quantization: bool = True
    """The scales of nf4 and fp4 are kept in 8 bits themselves."""
    quantized_experts: bool = False
    """Routed experts are quantised too; where experts are one fused tensor, as in
    transformers, they are no linear layers and stay in 16 bits."""
    freeze: FreezeSpec = FreezeSpec()
    """Parts that do not train; with adapters, blocks that carry none."""
    reference: Reference | None = None
    """Frozen model of preference training (DPO): a copy beside the policy, the policy
    without its adapters, or log-probabilities worked out before. Two sequences,
    chosen and rejected, are a pair. Texts are given: none is generated."""

    @property
    def span(self) -> float:
        """Tokens that attend to each other: a document's, or the row's. [token].

        Of packed texts their mean square over their mean. Of rows of several lengths
        the longest: ``planner.cost.rows`` has the mean over micro-batches.

        Source: TransformerEngine, attention layout ``thd`` with ``cu_seqlens``.
        """
        if self.draws and self.rows == "packed":
            return self.draws.span
        return min(self.document or self.seq_len, self.seq_len)

    @property
    def rows(self) -> Padding:
        """Way in which texts fill rows; without lengths each fills one."""
        if self.document:
            return "packed"
        return self.padding or ("longest" if self.lengths else "max")

    @property
    def draws(self) -> Draws | None:
        """Lengths of the texts, none where all have the sequence length. [token]."""
        return draws_of(self.lengths, self.seq_len) if self.lengths else None

    @property
    def uneven(self) -> Draws | None:
        """Lengths of the texts where micro-batches differ in length. [token]."""
        return self.draws if self.rows == "longest" else None

    @property
    def longest_row(self) -> int:
        """Tokens of the longest row of a run, which its memory holds. [token]."""
        return self.uneven.longest if self.uneven else self.seq_len

    @property
    def counted_span(self) -> float:
        """Tokens that attend to each other in the count of a model's FLOPs. [token]."""
        return self.draws.span if self.draws else self.seq_len

    @property
    def step_tokens(self) -> float:
        """Tokens that one optimizer step trains on; padding is none. [token]."""
        if self.draws is None or self.rows == "packed":
            return self.sequences * self.seq_len
        return self.sequences * self.draws.mean

    @property
    def together(self) -> int:
        """Sequences that one micro-batch takes together: a pair, else one. [1]."""
        return 1 if self.reference is None else 2

    @property
    def frozen(self) -> bool:
        """True where all weights are frozen and only adapters train."""
        return self.method != "full"

    @property
    def trains_embedding(self) -> bool:
        """True where the embedding table has a gradient."""
        if self.frozen:
            return "embed_tokens" in self.lora.modules_to_save
        return not self.freeze.embedding

    @property
    def trains_head(self) -> bool:
        """True where the output projection has a gradient."""
        if self.frozen:
            return "lm_head" in self.lora.modules_to_save
        return not self.freeze.head

    @property
    def weight_format(self) -> Quantization | None:
        """Format that the base weights are quantised to; none but under qlora."""
        return (self.quantization or "nf4") if self.method == "qlora" else None

    @property
    def paged(self) -> bool:
        """True where the optimizer's moments may be paged out to the host."""
        return self.optimizer.startswith("paged-")

    @model_validator(mode="after")
    def _one_batch(self) -> Self:
        if (self.global_batch is None) == (self.global_batch_tokens is None):
            raise ValueError(
                "give exactly one of global_batch (sequences) and global_batch_tokens"
            )
        tokens = self.global_batch_tokens
        if tokens is not None and tokens % self.seq_len:
            raise ValueError(
                f"global_batch_tokens {tokens} is no whole number of sequences "
                f"of {self.seq_len} tokens"
            )
        return self

    @model_validator(mode="after")
    def _no_tokens_for_sequences(self) -> Self:
        if self.sequences > MOST_SEQUENCES:
            name = "global_batch" if self.global_batch else "global_batch_tokens"
            raise ValueError(
                f"{name} is {self.sequences:,} sequences of {self.seq_len:,} tokens; "
                f"allowed: at most {MOST_SEQUENCES:,} sequences (global_batch counts "
                "sequences, global_batch_tokens counts tokens)"
            )
        return self

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        """Check that the run's length is given once, and that the ramp is shorter."""
        if self.tokens is not None and self.compute is not None:
            raise ValueError("give tokens or compute, not both")
        if self.compute == 0.0:
            raise ValueError("compute is 0; it must be more than 0 FLOP")
        if self.inference_tokens is not None and self.tokens != "compute-optimal":
            raise ValueError("inference_tokens goes with tokens: compute-optimal")
        steps = self.batch_ramp or ()
        ramp = sum(step.tokens for step in steps)
        if isinstance(self.tokens, float) and ramp >= self.tokens:
            raise ValueError(
                f"batch_ramp takes {ramp:g} tokens, the whole run has {self.tokens:g}"
            )
        for step in steps:
            if step.global_batch >= self.sequences:
                raise ValueError(
                    f"batch_ramp has a batch of {step.global_batch} sequences; it "
                    f"starts below the global batch, {self.sequences}"
                )
        return self

    @property
    def run_tokens(self) -> float | None:
        """Tokens of the run where they are a number, as in every resolved job."""
        return self.tokens if isinstance(self.tokens, float) else None

    @model_validator(mode="after")
    def _blocks_of_the_method(self) -> Self:
        """Refuse fields that belong to another method."""
        if self.method == "full" and self.lora != LoraSpec():
            raise ValueError("lora is given, but method full has no adapters")
        if "lora" in self.model_fields_set and "method" not in self.model_fields_set:
            raise ValueError("lora without a method; give method: lora or qlora")
        quantised = (self.quantization, self.quantized_experts)
        if self.method != "qlora" and quantised != (None, False):
            raise ValueError(
                f"quantization goes with method qlora; method {self.method} keeps "
                "the weights in 16 bits"
            )
        return self

    @model_validator(mode="after")
    def _lengths_for_the_padding(self) -> Self:
        """Check that what fills the rows is given once, and is known."""
        refuse_padding(self.document, self.lengths, self.padding)
        return self

    @model_validator(mode="after")
    def _pairs_with_a_reference(self) -> Self:
        """Check that a reference can be had, and that sequences are whole pairs."""
        if self.reference is None:
            return self
        if (self.reference == "adapters") > self.frozen:
            raise ValueError(
                "reference adapters is the model without its adapters, and method full "
                "has none; allowed: copy, precomputed"
            )
        if self.reference == "copy" and self.frozen:
            raise ValueError(
                f"reference copy is held twice under method {self.method}, whose "
                "weights are frozen; allowed: adapters, precomputed"
            )
        if self.sequences % 2:
            raise ValueError(
                f"a pair is two sequences, and the global batch has {self.sequences}"
            )
        return self

    @property
    def sequences(self) -> int:
        """The global batch in sequences. [sequence]."""
        if self.global_batch is not None:
            return self.global_batch
        assert self.global_batch_tokens is not None
        return self.global_batch_tokens // self.seq_len
