"""Lower bound of a job's run on some nodes, in closed form: no plan is priced.

A count that the bound rules out needs no search. The bound falls as the count grows:
once a count of an ascending list is left, all later counts are left too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from planner.cost.kernels import gemm_rate
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.job.variants import variants
from planner.planning.comparison.candidates.task import Task, sized
from planner.planning.economics import RunTerms
from planner.planning.economics.goodput import effective_share, young_daly_interval
from planner.search.space.fleet import MOST_IDLE, may_idle

HOUR = 3600.0
FORWARD, TRAINED = 2.0, 6.0
"""FLOPs of a weight for each token: forward alone, and with both backward products."""


@dataclass(frozen=True)
class Least:
    """Lower bounds of every plan on some nodes.

    Attributes:
        time_s: Least time of the whole run. [s]
        per_steps: Least time of every phase, for each second of the phase's step. [1]
        usd_per_s: Least rent for each second of the run; 0 without a rent. [USD/s]
    """

    time_s: float
    per_steps: tuple[float, ...]
    usd_per_s: float

    @property
    def per_step(self) -> float:
        """Least time for each second of the step; 0 with several phases. [1]."""
        return self.per_steps[0] if len(self.per_steps) == 1 else 0.0


class Floor:
    """Lower bounds of every plan of a candidate, at any number of nodes."""

    def __init__(self, task: Task) -> None:
        phases = [task.resolved(job) for _, job in task.phases(task.counts[0])]
        self.task, self.phases = task, [variants(workloads) for workloads in phases]
        self.first = phases[0][0]

    def at(self, nodes: int) -> Least:
        """Lower bounds on some nodes."""
        phases = [
            [one if one.mixed else sized(one, nodes) for one in phase]
            for phase in self.phases
        ]
        return Least(
            sum(self._time(phase) for phase in phases),
            tuple(min(map(self._per_step, phase)) for phase in phases),
            self._rent(sized(self.first, nodes), nodes),
        )

    def _time(self, phase: Sequence[Pricing]) -> float:
        """Least time of one phase, under the fastest variant. [s]."""
        return min(self._steps(one) * least_step(one) for one in phase)

    def _per_step(self, pricing: Pricing) -> float:
        """Steps at the full batch over the best share of the time that trains. [1]."""
        ramp = pricing.training.batch_ramp or ()
        return self._steps(pricing, sum(part.tokens for part in ramp))

    def _steps(self, pricing: Pricing, left_out: float = 0.0) -> float:
        training = pricing.training
        tokens = (training.run_tokens or 0.0) - left_out
        steps = tokens / training.step_tokens
        return steps / most_share(pricing, self._terms)

    @cached_property
    def _terms(self) -> RunTerms:
        return self.task.terms(self.first)

    def _rent(self, workload: Workload, nodes: int) -> float:
        """Rent of the fewest nodes that a layout may use of some nodes. [USD/s]."""
        its = self._terms.nodes[workload.topology.cluster.node.name]
        if its.price is None or not its.price.is_rate:
            return 0.0
        used = float(nodes)
        if may_idle(workload):
            limited = workload.search.gpus is not None
            used = 1.0 if limited else nodes * (1 - 1 / MOST_IDLE)
        per_node = its.price.per_gpu(its.gpus) * its.gpus
        return per_node * (used + self._terms.spare_nodes) / HOUR


def least_step(pricing: Pricing) -> float:
    """Least step of a job: its matrix products at their best rate on all GPUs.

    ::

        step >= tokens * FLOPs of the weights / (GPUs * rate)

    Returns:
        Time; 0 on a fleet of several kinds. [s]

    Leaves out attention scores, traffic, launches, communication and bubbles, and the
    backward products of a job that does not train all its weights.
    """
    if pricing.mixed:
        return 0.0
    training, model = pricing.training, pricing.model
    whole = training.method == "full" and not training.frozen
    each = TRAINED if whole and _all_train(pricing) else FORWARD
    tokens = training.step_tokens
    rates = [gemm_rate(pricing, narrow=narrow).flops for narrow in (True, False)]
    if pricing.calibration.grouped_gemm:
        rates.append(gemm_rate(pricing, grouped=True).flops)
    return tokens * each * model.matmul_parameters / (max(rates) * pricing.gpus)


def _all_train(workload: Workload) -> bool:
    kinds = workload.model.runs
    return workload.training.trains_head and all(k.role == "trained" for k, _ in kinds)


def most_share(pricing: Pricing, terms: RunTerms) -> float:
    """Largest share of the wall time that a run on all its GPUs can train.

    A checkpoint takes at least its fixed wait, and a restart at least its fixed time.
    Copies, writes and reads come on top.

    Returns:
        The share; 1 where layouts may leave GPUs idle, which break less often. [1]
    """
    stall = terms.stall.value if terms.stall_given is None else terms.stall_given
    if pricing.mixed or may_idle(pricing) or stall <= 0:
        return 1.0
    between = terms.failures.value * HOUR / pricing.gpus
    interval = terms.interval or young_daly_interval(stall, between)
    return effective_share(
        stall, between, interval=interval, restart=terms.restart.value
    )
