"""Measured step times beside their predictions, as columns that a fit works on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class Tags:
    """Name of a row, and what the row shares with others.

    Attributes:
        id: Unique name of the row. [text]
        source: Stem of the file it is from. [text]
        group: Group that near-duplicates share. [text]
        arch: Architecture of the GPU. [text]
        stack: Named software stack. [text]
        moe: True where the model routes tokens to experts. [-]
        waits: True where the host decides the step. [-]
    """

    id: str
    source: str
    group: str
    arch: str
    stack: str
    moe: bool = False
    waits: bool = False


@dataclass(frozen=True)
class Observed:
    """Rows with the slopes of their predicted step in the six constants.

    Attributes:
        tags: Tags of each row, shape (rows,). [-]
        log_ratio: log(measured / predicted), shape (rows,). [1]
        jacobian: d log(predicted) over d log of each factor, and per second of step
            overhead, shape (rows, 6) in the order of CONSTANTS. [1] or [1/s]
    """

    tags: tuple[Tags, ...]
    log_ratio: Floats
    jacobian: Floats

    def __len__(self) -> int:
        return len(self.tags)

    def of(self, name: str) -> tuple[str, ...]:
        """One tag of every row.

        Returns:
            Values of the tag, shape (rows,). [text]
        """
        return tuple(str(getattr(tag, name)) for tag in self.tags)

    def where(self, name: str, value: str) -> Flags:
        """Rows that have a value of a tag.

        Returns:
            True for those rows, shape (rows,). [-]
        """
        return np.array([one == value for one in self.of(name)], dtype=np.bool_)

    def take(self, kept: Flags) -> "Observed":
        """Some of the rows.

        Args:
            kept: True for the rows to take, shape (rows,). [-]
        """
        tags = tuple(tag for tag, keep in zip(self.tags, kept, strict=True) if keep)
        return Observed(tags, self.log_ratio[kept], self.jacobian[kept])


def weights(tags: Sequence[Tags]) -> Floats:
    """Weight of each row: near-duplicates and rows of a large source weigh less.

    The n rows of a split group count as sqrt(n), and so do the groups of a source:
    rows of one campaign share whatever is peculiar to it.

    Args:
        tags: Tags of each row, shape (rows,). [-]

    Returns:
        Weights with mean 1, shape (rows,). [1]
    """
    by_group = _shared(
        [f"{tag.source}/{tag.group}" for tag in tags], np.ones(len(tags))
    )
    both = _shared([tag.source for tag in tags], by_group)
    return both / both.mean() if len(tags) else both


def source_weights(tags: Sequence[Tags]) -> Floats:
    """Weight of each row where near-duplicates tell as much as any row.

    The n rows of a source count as sqrt(n).

    Args:
        tags: Tags of each row, shape (rows,). [-]

    Returns:
        Weights, shape (rows,). [1]
    """
    return _shared([tag.source for tag in tags], np.ones(len(tags)))


def _shared(keys: Sequence[str], weight: Floats) -> Floats:
    """Weights, scaled: their sum in each class becomes the root of the former sum."""
    names, index = np.unique(np.array(keys), return_inverse=True)
    total = np.bincount(index, weights=weight, minlength=len(names))
    return weight / np.sqrt(total[index])
