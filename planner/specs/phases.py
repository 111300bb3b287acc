"""The phases of a run: what each has in place of the training block's fields."""

from pydantic import BaseModel, ConfigDict, Field

from planner.specs.layouts.layout import PartialLayout
from planner.specs.training import (
    MOST_LENGTH,
    MOST_SEQUENCES,
    RampStep,
    Tokens,
    TrainingSpec,
)

LONGEST = 64
"""Characters of a phase's name; a file name around it has at most 255. [1]"""


class PhaseSpec(BaseModel):
    """One phase; what is absent is as in the training block."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=LONGEST)
    """Name of letters, digits, dots, dashes and underscores, as fits a file name."""
    tokens: Tokens
    """Tokens trained in this phase. [token]"""
    seq_len: int | None = Field(default=None, gt=0, le=MOST_LENGTH, strict=True)
    """Tokens in one sequence. [token]"""
    global_batch: int | None = Field(default=None, gt=0, le=MOST_SEQUENCES, strict=True)
    """Sequences in one step; absent: as many tokens as the training block's.
    [sequence]"""
    batch_ramp: tuple[RampStep, ...] | None = None
    """Smaller batches that the phase starts with."""
    layout: PartialLayout | None = None
    """Layout for `planner predict`, in place of the job's."""

    def of(self, training: TrainingSpec) -> TrainingSpec:
        """The training block of this phase.

        Raises:
            ValueError: The block's tokens are no whole number of its sequences.
        """
        length = self.seq_len or training.seq_len
        whole = training.sequences * training.seq_len
        if self.global_batch is None and whole % length:
            raise ValueError(
                f"phase {self.name}: {whole} tokens a step are no whole number of "
                f"sequences of {length}; give its global_batch"
            )
        fields = training.model_dump() | {
            "tokens": self.tokens,
            "seq_len": length,
            "global_batch": self.global_batch or whole // length,
            "global_batch_tokens": None,
            "batch_ramp": self.batch_ramp,
            "compute": None,
        }
        return TrainingSpec.model_validate(fields)
