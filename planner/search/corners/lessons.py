"""Boxes into which one candidate was cut, for the others of its shape and class."""

from dataclasses import dataclass, field
from typing import NamedTuple

from planner.cost.meshes import Ints
from planner.cost.pipeline.corners import CornerPaths
from planner.cost.reach import Mask
from planner.search.bounds.paths import ShapePaths, class_of
from planner.specs.table import StageCosts

MOST_LESSONS = 4
"""Sets of paths that are kept of one class, the latest, ours. [1]"""


class Cut(NamedTuple):
    """Boxes by the layers of every stage. [1], each of shape (boxes, stages)."""

    fewest: Ints
    most: Ints

    def take(self, at: Ints | Mask | int) -> "Cut":
        """Some of the boxes."""
        return Cut(self.fewest[at], self.most[at])


@dataclass
class _OfClass:
    """Boxes and paths that candidates of one shape and class have taught."""

    boxes: Cut | None = None
    paths: list[CornerPaths] = field(default_factory=list)
    taught: int = 0
    in_vain: bool = False


def corners_like(costs: StageCosts, shapes: ShapePaths) -> Cut | None:
    """Boxes of the last candidate of the shape and class.

    Returns:
        Boxes that hold every split, whatever the memory; None without any.
    """
    known: _OfClass | None = shapes.corners.get(class_of(costs))
    return None if known is None else known.boxes


def keep_corners(
    costs: StageCosts, shapes: ShapePaths, boxes: Cut, paths: CornerPaths
) -> None:
    """Remember the boxes of a candidate, and a path of each."""
    known = shapes.corners.setdefault(class_of(costs), _OfClass())
    known.boxes, known.taught = boxes, known.taught + 1
    known.paths = [paths, *known.paths][:MOST_LESSONS]


def note_in_vain(costs: StageCosts, shapes: ShapePaths) -> None:
    """Note that corners did not raise the bound of the first candidate of a class."""
    known = shapes.corners.setdefault(class_of(costs), _OfClass())
    known.in_vain = not known.taught


def were_in_vain(costs: StageCosts, shapes: ShapePaths) -> bool:
    """Tell if corners did not raise the bound of the first candidate of the class.

    Returns:
        True where other bounds are better.
    """
    known: _OfClass | None = shapes.corners.get(class_of(costs))
    return known is not None and known.in_vain


def fresh_corners(
    costs: StageCosts, shapes: ShapePaths, seen: int
) -> tuple[list[CornerPaths], int]:
    """Paths of boxes that were not seen yet, the latest first."""
    known: _OfClass | None = shapes.corners.get(class_of(costs))
    if known is None:
        return [], 0
    return known.paths[: known.taught - seen], known.taught
