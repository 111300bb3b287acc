"""The training block of a spec: what one optimizer step is made of."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4"]
Optimizer = Literal["adamw", "adamw-8bit", "lamb", "sgd-momentum", "adafactor", "muon"]
Method = Literal["full", "lora", "qlora"]
Target = Literal["qkv", "proj", "fc1", "fc2"]

TARGETS: dict[str, tuple[Target, ...]] = {
    "attention": ("qkv", "proj"),
    "all": ("qkv", "proj", "fc1", "fc2"),
}
"""Short names for sets of linear layers that carry adapters."""


class LoraSpec(BaseModel):
    """Low-rank adapters beside frozen linear layers.

    A layer ``(i x o)`` that carries one trains ``rank (i + o)`` parameters.
    Source: Hu et al. 2021, arXiv 2106.09685.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rank: int = Field(default=16, gt=0, strict=True)
    """Inner width of every adapter. [1]"""
    targets: Literal["attention", "all"] | tuple[Target, ...] = "all"
    """Linear layers that carry an adapter; fc1 is gate and up together."""

    @property
    def modules(self) -> tuple[Target, ...]:
        """Linear layers that carry an adapter, by name. [text]."""
        if isinstance(self.targets, str):
            return TARGETS[self.targets]
        return self.targets


class TrainingSpec(BaseModel):
    """One optimizer step, as the user states it.

    The batch is given in sequences or in tokens, never both.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seq_len: int = Field(gt=0, strict=True)
    """Tokens in one sequence. [token]"""
    global_batch: int | None = Field(default=None, gt=0, strict=True)
    """Sequences in one optimizer step. [sequence]"""
    global_batch_tokens: int | None = Field(default=None, gt=0, strict=True)
    """Tokens in one optimizer step, instead of ``global_batch``. [token]"""
    document: int | None = Field(default=None, gt=0, strict=True)
    """Mean length of documents packed into a sequence that attend to themselves
    alone; absent: attention spans the sequence. [token]"""
    tokens: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Tokens of the whole run, for time to train. [token]"""
    precision: Precision = "bf16"
    optimizer: Optimizer = "adamw"
    state_bits: Literal[8, 16, 32] | None = None
    """Width of the optimizer's moments; absent: the framework's. [bit]"""
    optimizer_in_backward: bool = False
    """Every parameter is updated as its gradient arrives, which is then freed."""
    method: Method = "full"
    lora: LoraSpec = LoraSpec()
    """Adapters of the methods lora and qlora."""

    @property
    def span(self) -> int:
        """Tokens that attend to each other: a document's, or the sequence's. [token].

        Source: TransformerEngine, attention layout ``thd`` with ``cu_seqlens``.
        """
        return min(self.document or self.seq_len, self.seq_len)

    @property
    def frozen(self) -> bool:
        """Whether only adapters train."""
        return self.method != "full"

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

    @property
    def sequences(self) -> int:
        """The global batch in sequences. [sequence]."""
        if self.global_batch is not None:
            return self.global_batch
        assert self.global_batch_tokens is not None
        return self.global_batch_tokens // self.seq_len
