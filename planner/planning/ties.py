"""Plans that the cost model cannot tell apart, and the choice among them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from planner.cost.pricing import Pricing
from planner.frameworks.sanity import compared
from planner.specs.answer.estimate import Estimate, TimeBreakdown
from planner.specs.answer.result import Tie, TiedPlan
from planner.specs.layouts.axes import DEGREES
from planner.specs.layouts.context import cp_family
from planner.specs.layouts.layout import Layout
from planner.specs.layouts.layout_text import recompute_kinds
from planner.specs.layouts.offload import offload_text

MOST_SLOWER = 0.05
"""Largest step over the fastest plan's, minus 1, of a plan that may be chosen. [1]

Of 29 measured sweeps, predicted without their sources, the choice up to 5 % loses 2.9 %
to the measured best on average, and 4.2 % up to 3 %: one of them differs.
"""
USUAL = 0.02
"""Share of a step that a usual layout is worth among plans of as many axes, our
choice. [1]"""
WORTH = 0.05
"""Share of a step that free memory is worth, all of a GPU's. [1]"""
CONTEXT_TOKENS = 4096
"""Tokens that a context rank holds, at the least, where experts split sequences: CP is
for 8k tokens and more, and the guide's layouts at 8,192 have CP 2 (Megatron-Core,
Parallelism Strategies Guide). [token]"""
ROBUST_RULE = (
    f"at most {MOST_SLOWER:.0%} slower than the fastest; fewest axes, data and expert "
    f"parallelism being none; for at most {USUAL:.0%} of the step {CONTEXT_TOKENS:,} "
    "tokens or more a context rank, and what the framework does by itself; then free "
    f"memory, a tenth of the GPU's being worth {WORTH / 10:.1%} of the step"
)
"""Rule by which a robust search chooses among tied plans. [text]"""
DATA = ("dp", "ep")
"""Degrees that are no axis of a layout: the GPUs that nothing else needs, and how they
share the experts, as in 165 of 178 measured layouts of models with experts. [text]"""


class Option(Protocol):
    """A layout among which a job chooses."""

    @property
    def step_s(self) -> float:
        """Predicted step. [s]."""
        ...

    @property
    def causes_s(self) -> TimeBreakdown:
        """The predicted step by cause. [s]."""
        ...

    @property
    def complexity(self) -> tuple[int, ...]:
        """Axes, then distances from the framework's defaults. [1]."""
        ...

    @property
    def free_share(self) -> float:
        """Free memory of the fullest GPU, over all of it. [1]."""
        ...


@dataclass(frozen=True)
class Contender:
    """One plan that a search found, priced.

    Attributes:
        workload: The job with the plan's settings. [-]
        layout: Complete layout of the plan. [-]
        estimate: Predicted time and memory of the plan. [-]
        key_s: What the search made least: the step, or an amount. [s]
    """

    pricing: Pricing
    layout: Layout
    estimate: Estimate
    key_s: float = 0.0

    @property
    def step_s(self) -> float:
        """Predicted step. [s]."""
        return self.estimate.step_time_s.value

    @property
    def causes_s(self) -> TimeBreakdown:
        """The predicted step by cause. [s]."""
        return self.estimate.time_breakdown_s

    @property
    def free_gib(self) -> float:
        """Free memory of the fullest GPU. [GiB]."""
        memory = self.estimate.memory
        return memory.capacity_gib - memory.peak_device_gib.value

    @property
    def free_share(self) -> float:
        """Free memory of the fullest GPU, over all of it. [1]."""
        return self.free_gib / self.estimate.memory.capacity_gib

    @property
    def axes(self) -> int:
        """Degrees above one that are an axis; recompute, and offload, are one. [1]."""
        again = {*recompute_kinds(self.layout)} - {"none"}
        others = [used for used in (again, offload_text(self.layout.offload)) if used]
        return len(split_axes(self.layout)) + len(others)

    @property
    def complexity(self) -> tuple[int, ...]:
        """Axes, then distances from the framework's defaults. [1]."""
        return self.axes, *_unusual(self)


def split_axes(layout: Layout) -> list[str]:
    """Axes beyond data and expert parallelism along which a layout divides the job."""
    return [a.name for a in DEGREES if a.name not in DATA and a.of(layout) > 1]


def tied(contenders: Sequence[Option]) -> list[int]:
    """Plans that are no slower than the error of comparing them with the best.

    A plan ties where ``T / T_best - 1 <= error(plan, best)``.

    Args:
        contenders: Plans, the fastest first, shape (plans,). [-]

    Returns:
        Indices of those plans, 0 for the best among them. [1]
    """
    if not contenders:
        return []
    return [at for at, one in enumerate(contenders) if _is_tied(one, contenders[0])]


def _is_tied(one: Option, best: Option) -> bool:
    return _slower(one, best) <= _error(one, best)


def _slower(one: Option, best: Option) -> float:
    return one.step_s / best.step_s - 1


def _error(one: Option, best: Option) -> float:
    return compared().error(best.causes_s, one.causes_s)


def robust_choice(contenders: Sequence[Option], among: Sequence[int]) -> int:
    """The simplest of the tied plans that are not much slower.

    Fewest axes win. Among those no slower than a usual layout is worth, usual ones win:
    enough tokens a context rank, whole replicas or the framework's ZeRO stage, its
    schedule, rank order and kind of cp in order of listing. Then free memory counts
    against step time.

    Args:
        contenders: Plans, the fastest first, shape (plans,). [-]
        among: Indices of the tied plans, at least one. [1]
    """
    best = contenders[0]
    near = [at for at in among if _slower(contenders[at], best) <= MOST_SLOWER]
    least = min(contenders[at].complexity[:1] for at in near)
    plain = [at for at in near if contenders[at].complexity[:1] == least]
    first = min((contenders[at] for at in plain), key=lambda one: one.step_s)
    alike = [at for at in plain if _slower(contenders[at], first) <= USUAL]
    return min(alike, key=lambda at: (_simplicity(contenders[at], best), at))


def _simplicity(one: Option, best: Option) -> tuple[tuple[int, ...], float]:
    return one.complexity, _slower(one, best) - WORTH * one.free_share


def _unusual(one: Contender) -> tuple[int, ...]:
    """Distance of a layout from what is usual, by axis. [1]."""
    limits, layout = one.pricing.framework.limits, one.layout
    tokens = one.pricing.training.seq_len / layout.cp
    ranks = layout.dp * layout.cp
    usual = limits.default_zero(pp=layout.pp, ranks=ranks)
    orders, kinds, kind = limits.orders, limits.cp_kinds, cp_family(layout.cp_kind)
    schedule = "interleaved" if layout.vpp > 1 else "1f1b"
    return (
        int(layout.cp > 1 and tokens < CONTEXT_TOKENS),
        int(layout.zero_stage not in (0, usual)),
        int(layout.pp > 1 and layout.schedule != schedule),
        orders.index(layout.order) if layout.order in orders else len(orders),
        kinds.index(kind) if kind in kinds else len(kinds),
    )


def why_robust(
    contenders: Sequence[Contender], among: Sequence[int], chosen: int
) -> str:
    """Say why a plan stands before the fastest.

    Args:
        contenders: Plans, the fastest first, shape (plans,). [-]
        among: Indices of the tied plans. [1]
        chosen: Index of the chosen plan, not 0. [1]
    """
    one, best = contenders[chosen], contenders[0]
    experts = " and expert" if one.pricing.model.expert_parameters else ""
    return (
        f"Chosen among {len(among)} tied plans: it uses {_axes(one)} beside data"
        f"{experts} parallelism (the fastest {best.axes}) and leaves "
        f"{one.free_gib:.1f} GiB free (the fastest {best.free_gib:.1f}); it is "
        f"predicted {_slower(one, best):.2%} slower, and such comparisons are off by "
        f"{_error(one, best):.2%}."
    )


def _axes(one: Contender) -> str:
    return f"{one.axes} {'axis' if one.axes == 1 else 'axes'}"


def needed_words(axes: Sequence[str]) -> str:
    """Tell that no plan without one of some axes, and no other added, is as fast.

    Returns:
        One sentence; empty without axes. [text]
    """
    if not axes:
        return ""
    *others, last = (axis.upper() for axis in axes)
    names = f"{', '.join(others)} or {last}" if others else last
    return (
        f"Without {names}, and with no other axis in its place, no plan is at most "
        f"{MOST_SLOWER:.0%} slower than the fastest."
    )


def tie(
    contenders: Sequence[Contender], among: Sequence[int], shown: dict[int, int]
) -> Tie:
    """The tie beside the best plan, as it is reported.

    Args:
        contenders: Plans, the fastest first, shape (plans,). [-]
        among: Indices of the tied plans, two or more. [1]
        shown: Rank of every listed plan, by index. [1]
    """
    best = contenders[0]
    plans = tuple(_member(contenders[at], best, shown.get(at)) for at in among)
    return Tie(
        plans=plans,
        within=max(plan.slower for plan in plans),
        rule=ROBUST_RULE,
        spread=compared().spread,
        source=compared().source,
    )


def _member(one: Contender, best: Contender, rank: int | None) -> TiedPlan:
    return TiedPlan(
        rank=rank,
        layout=one.layout,
        settings=one.pricing.chosen,
        framework=one.pricing.framework.name,
        slower=_slower(one, best),
        error=_error(one, best),
        free_gib=one.free_gib,
        axes=one.axes,
    )
