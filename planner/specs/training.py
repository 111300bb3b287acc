"""The training block of a spec: what one optimizer step is made of."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Precision = Literal["fp32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4"]
Optimizer = Literal["adamw", "adamw-8bit", "sgd-momentum", "adafactor", "muon"]
Method = Literal["full", "lora", "qlora"]


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
    tokens: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Tokens of the whole run, for time to train. [token]"""
    precision: Precision = "bf16"
    optimizer: Optimizer = "adamw"
    method: Method = "full"

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
