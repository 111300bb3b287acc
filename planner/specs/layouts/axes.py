"""The axes of a layout: one record each, and no other list of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from planner.specs.frameworks.limits import Limits
from planner.specs.layouts.context import FAMILIES
from planner.specs.layouts.layout import Layout, Order, Schedule

Group = Literal[
    "tensor", "context", "expert", "pipeline", "data", "batch", "ranks", "layers"
]
GROUPS: tuple[Group, ...] = get_args(Group)
"""Parts of a layout, in the order in which differences are read. [text]"""
ORDERS: tuple[Order, ...] = get_args(Order)
"""Rank orders, innermost axis first; the first goes with any expert group. [text]"""
Fill = Callable[[Limits, Mapping[str, Any]], object]
"""Value of an axis from the limits of a framework and the values of other axes."""


@dataclass(frozen=True)
class Axis:
    """One choice of a layout: name, legal values, default, and how it is told."""

    name: str
    group: Group
    """Part of the layout that the axis belongs to. [text]"""
    default: object = 1
    """Value that divides nothing and moves nothing. [-]"""
    values: tuple[Any, ...] = ()
    """Legal values; empty: whole numbers from 1. [-]"""
    word: str = ""
    """Name in a sentence; empty: the name itself. [text]"""
    under: str = ""
    """Degree above 1 without which the axis has no effect; empty: none. [text]"""
    filled: Fill | None = None
    """Value in a layout that leaves the axis open; None: the default."""
    limit: str = ""
    """Field of a framework's limits with the legal values, or with True where values
    above 1 are legal; empty: every framework has the axis. [text]"""
    feature: str = ""
    """Feature that a framework lacks whose limit is not True. [text]"""
    facts: tuple[str, ...] = ()
    """Numbers of the model that the axis divides, or is bounded by. [text]"""
    is_mesh: bool = False
    """True where the degree is a factor of the number of ranks."""
    is_degree: bool = False
    """True for a number of parts; a simple layout has few above 1."""
    is_free: bool = False
    """True where no other axis decides the value: explanations change it alone."""
    is_limited: bool = True
    """True for an axis of the search block."""
    is_lean: bool = False
    """True where no value needs less memory than the default."""
    names_rivals: bool = True
    """True where the sentence on the runner-up names the axis."""
    tells_one: bool = False
    """True where a layout in short tells even a degree of 1."""
    is_rare: bool = False
    """True where a layout in full leaves a default out."""

    @property
    def told(self) -> str:
        """Name of the axis in a sentence. [text]."""
        return self.word or self.name.replace("_", "-")

    @property
    def is_number(self) -> bool:
        """True for degrees, sizes and stages; False for switches and words."""
        return isinstance(self.default, int) and not isinstance(self.default, bool)

    @property
    def least(self) -> int:
        """Least legal number. [1]."""
        return self.values[0] if self.values else 1

    def of(self, layout: Layout) -> Any:
        """Value of the axis in a layout."""
        return getattr(layout, self.name)

    def matters(self, layout: Layout) -> bool:
        """Tell if the axis has an effect in a layout.

        Returns:
            True where the degree that the axis belongs to is above 1.
        """
        return not self.under or getattr(layout, self.under) > 1

    def is_told(self, layout: Layout) -> bool:
        """Tell if a layout in full names the axis.

        Returns:
            False for the default of an axis that few frameworks have.
        """
        return not self.is_rare or self.of(layout) != self.default


AXES = (
    Axis(
        "tp",
        "tensor",
        facts=("heads", "widths"),
        is_mesh=True,
        is_degree=True,
        is_free=True,
        tells_one=True,
    ),
    Axis(
        "sp",
        "tensor",
        default=False,
        values=(False, True),
        under="tp",
        filled=lambda limits, at: at["tp"] > 1 and limits.sequence_parallel[0],
        limit="sequence_parallel",
        feature="sequence parallelism",
    ),
    Axis(
        "pp",
        "pipeline",
        limit="pipeline",
        feature="pipeline",
        facts=("layers",),
        is_mesh=True,
        is_degree=True,
        is_free=True,
        tells_one=True,
    ),
    Axis(
        "vpp",
        "pipeline",
        limit="several_chunks",
        feature="schedule of several chunks",
        facts=("layers",),
        is_degree=True,
        is_free=True,
        is_lean=True,
    ),
    Axis(
        "cp",
        "context",
        limit="context_parallel",
        feature="context parallelism",
        facts=("heads",),
        is_mesh=True,
        is_degree=True,
        is_free=True,
    ),
    Axis(
        "cp_kind",
        "context",
        default="all-gather",
        values=FAMILIES,
        under="cp",
        filled=lambda limits, at: limits.cp_kinds[0] if at["cp"] > 1 else "all-gather",
        limit="cp_kinds",
        names_rivals=False,
    ),
    Axis(
        "ep",
        "expert",
        limit="expert_parallel",
        feature="expert parallelism",
        facts=("experts",),
        is_degree=True,
        is_free=True,
    ),
    Axis(
        "etp",
        "expert",
        limit="expert_tensor",
        feature="expert tensor axis",
        facts=("experts",),
        is_degree=True,
        is_free=True,
    ),
    Axis("dp", "data", is_mesh=True, is_degree=True, tells_one=True),
    Axis("dp_shard", "data", filled=lambda _, at: at["dp"] * at["cp"]),
    Axis(
        "zero_stage",
        "data",
        default=0,
        values=(0, 1, 2, 3),
        word="ZeRO",
        filled=lambda limits, at: limits.default_zero(
            pp=at["pp"], ranks=at["dp"] * at["cp"]
        ),
        limit="zero_stages",
        is_free=True,
    ),
    Axis(
        "hpz",
        "data",
        limit="hpz",
        feature="second copy of the weights in groups of ranks",
        is_degree=True,
        is_lean=True,
        is_rare=True,
    ),
    Axis("micro_batch", "batch", is_free=True, is_lean=True),
    Axis("grad_accum", "batch", is_limited=False, names_rivals=False),
    Axis(
        "schedule",
        "pipeline",
        default="1f1b",
        values=get_args(Schedule),
        filled=lambda _, at: "interleaved" if at["vpp"] > 1 else "1f1b",
        limit="schedules",
        names_rivals=False,
    ),
    Axis(
        "order",
        "ranks",
        default=ORDERS[0],
        values=ORDERS,
        limit="orders",
        is_free=True,
        is_lean=True,
    ),
    Axis("recompute", "layers", default="none", limit="recompute", is_free=True),
)
"""Every axis, in the order in which a layout lists its fields; recompute, which the
stages of a layout hold, is the last."""
AXIS = {axis.name: axis for axis in AXES}
"""Axes by name."""
FIELDS = tuple(axis for axis in AXES if axis.name in Layout.model_fields)
"""Axes that are fields of a layout themselves."""
READING = tuple(sorted(FIELDS, key=lambda axis: GROUPS.index(axis.group)))
"""Fields of a layout, each group together."""
DEGREES = tuple(axis for axis in AXES if axis.is_degree)
MESH = tuple(axis for axis in AXES if axis.is_mesh)
"""Degrees whose product is the number of ranks."""
FREE = tuple(axis for axis in AXES if axis.is_free)
"""Axes whose value no other axis decides."""
NUMBERS = tuple(axis for axis in AXES if axis.is_number and axis.is_limited)
"""Axes that the search block limits by numbers."""
WORDS = tuple(axis for axis in AXES if isinstance(axis.default, str))
"""Axes with words as values."""
