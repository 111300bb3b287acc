"""One step of more or better hardware for the next dollar, planned again."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from planner.cost.estimate.estimate import estimate
from planner.cost.workload import Workload
from planner.hardware.catalog import Cluster
from planner.hardware.reading.money import Price
from planner.job.variants import with_settings
from planner.planning.comparison.answer import CandidateAnswer, Extra
from planner.planning.comparison.candidates.counts import counts_up_to, domain_nodes
from planner.planning.comparison.candidates.known import PLAN_SHARE, Counts
from planner.planning.comparison.candidates.plan_cache import outlay, phase_of
from planner.planning.comparison.candidates.task import Task
from planner.planning.comparison.purchase import ChangeName
from planner.planning.comparison.vocabulary import money
from planner.planning.economics import run_of
from planner.planning.explanation.changes import on_cluster
from planner.planning.optimize import Enough, optimize
from planner.specs.answer.result import RankedPlan
from planner.specs.answer.run import Run

MORE_MEMORY = 16e9
"""[B]"""
FASTER_NIC = 2.0
WIDER_DOMAIN = 2
LESS_OVERSUBSCRIPTION = 2.0
MORE = 2
"""Nodes of the next sensible count over the candidate's nodes, at most. [1]"""
HOUR = 3600.0
SAME = 5e-5
"""Share of the hardware's price from which a step's worth is told. [1]"""

Edit = Callable[[Cluster], Cluster]


@dataclass(frozen=True)
class Step:
    """One step of better hardware.

    Attributes:
        name: Name under which a purchase file prices the step. [-]
        words: The step in words. [text]
        edit: From a cluster to the cluster with the step. [-]
    """

    name: ChangeName
    words: str
    edit: Edit


@dataclass(frozen=True)
class Asked:
    """A step to be planned, as it travels.

    Attributes:
        task: The best candidate, on its chosen nodes. [-]
        answer: Answer of the candidate without the step. [-]
        name: Name of the step; None for more nodes. [-]
        price: Price of the step, if it is known. [-]
        nodes: Nodes with the step. [1]
    """

    task: Task
    answer: CandidateAnswer
    name: ChangeName | None
    price: Price | None
    nodes: int

    def ended(self) -> "Asked":
        """The step after the end of the time for it."""
        return replace(self, task=self.task.ended())


def asked(
    task: Task, answer: CandidateAnswer, prices: Mapping[ChangeName, Price]
) -> list[Asked]:
    """The steps that make sense for a candidate.

    Returns:
        The steps; more nodes first, as far as the candidate may have them. [-]
    """
    assert answer.nodes is not None
    here = task.on_counts(answer.nodes)
    workload = here.workloads(answer.nodes)[0]
    there = counts_up_to(workload, MORE * answer.nodes + domain_nodes(workload))
    steps = [
        Asked(here, answer, step.name, prices.get(step.name), answer.nodes)
        for step in steps_of(workload)
    ]
    most = task.counts[-1] if len(task.counts) > 1 else there[-1]
    larger = [
        Asked(here, answer, None, None, n) for n in there if answer.nodes < n <= most
    ]
    return [*larger[:1], *steps]


def steps_of(workload: Workload) -> Iterator[Step]:
    """One step of each kind that can change anything.

    Yields:
        Memory; faster NICs and a wider domain where GPUs lie outside one domain; less
        oversubscription where there is some.
    """
    cluster = workload.topology.cluster
    label = cluster.gpu.memory_label or cluster.gpu.memory_capacity
    gigabytes = f"{label / 1e9:.0f} to {(label + MORE_MEMORY) / 1e9:.0f} GB"
    yield Step("memory", f"more HBM, {gigabytes} a GPU", _more_memory)
    if workload.gpus > cluster.node.scale_up_domain:
        wide = cluster.node.scale_up_domain
        yield Step("nic", "NICs of twice the rate", _faster_nic)
        yield Step("domain", f"NVLink domain of {wide} to {2 * wide} GPUs", _wider)
    worst = max((tier.oversubscription for tier in cluster.spec.tiers), default=1.0)
    if worst > 1:
        half = max(worst / LESS_OVERSUBSCRIPTION, 1.0)
        words = f"oversubscription of {worst:g}:1 to {half:g}:1"
        yield Step("oversubscription", words, _less_oversubscribed)


def _more_memory(cluster: Cluster) -> Cluster:
    more = {"memory_capacity": cluster.gpu.memory_capacity + MORE_MEMORY}
    return replace(cluster, gpu=cluster.gpu.model_copy(update=more))


def _faster_nic(cluster: Cluster) -> Cluster:
    faster = {"bandwidth": cluster.nic.bandwidth * FASTER_NIC}
    return replace(cluster, nic=cluster.nic.model_copy(update=faster))


def _wider(cluster: Cluster) -> Cluster:
    wide = {"scale_up_domain": cluster.node.scale_up_domain * WIDER_DOMAIN}
    return replace(cluster, node=cluster.node.model_copy(update=wide))


def _less_oversubscribed(cluster: Cluster) -> Cluster:
    tiers = tuple(
        tier.model_copy(
            update={
                "oversubscription": max(
                    tier.oversubscription / LESS_OVERSUBSCRIPTION, 1.0
                )
            }
        )
        for tier in cluster.spec.tiers
    )
    return replace(cluster, spec=cluster.spec.model_copy(update={"tiers": tiers}))


def price_step(ask: Asked) -> Extra | None:
    """Time that one step saves, and the price that the step may have.

    Returns:
        Effect of the step; None without a plan or the time for a plan. [-]
    """
    if time.time() >= ask.task.until:
        return None
    return _more_nodes(ask) if ask.name is None else _better(ask)


def _more_nodes(ask: Asked) -> Extra | None:
    """Effect of the next larger number of nodes."""
    counts = Counts(ask.task.on_counts(ask.nodes))
    planned = counts.at(ask.nodes)
    if planned.run is None or planned.time_s is None:
        return None
    old = ask.answer
    assert old.time_to_train_s is not None
    extra = None
    if planned.outlay_usd is not None and old.outlay_usd is not None:
        extra = planned.outlay_usd - old.outlay_usd
    saved = old.time_to_train_s - planned.time_s
    return Extra(
        change=f"more GPUs, {old.gpus:,} to {planned.gpus:,}",
        time_s=planned.time_s,
        saved_s=saved,
        cost_usd=planned.cost_usd,
        extra_usd=extra,
        saved_s_per_usd=_rate(saved, extra),
        note="" if planned.settled else f"not settled, at a gap of {planned.gap:.1%}",
        out_of_time=counts.out_of_time,
    )


def _rate(saved_s: float, extra_usd: float | None) -> float | None:
    """Time saved for each dollar more; None where no dollar is added."""
    return saved_s / extra_usd if extra_usd is not None and extra_usd > 0 else None


def _better(ask: Asked) -> Extra | None:
    """Effect of better hardware on the candidate's nodes."""
    task, old = ask.task, ask.answer
    phases, words = [], ""
    for at, (name, job) in enumerate(task.phases(ask.nodes)):
        workloads = task.resolved(job)
        step = next(s for s in steps_of(workloads[0]) if s.name == ask.name)
        there = tuple(on_cluster(workload, step.edit) for workload in workloads)
        words = words or step.words
        assert job.training is not None
        plan = _best_there(ask, there, old.plans[at].plan)
        phases.append(phase_of(name, there, plan, job.training))
    run = run_of(phases, task.spec.economics)
    assert run is not None
    assert old.time_to_train_s is not None
    time_s = run.time_to_train_s.value
    extra = Extra(
        change=words,
        time_s=time_s,
        saved_s=old.time_to_train_s - time_s,
        out_of_time=time.time() >= task.until,
    )
    return _worth(extra, ask, phases[0].workload, run)


def _worth(extra: Extra, ask: Asked, there: Workload, run: Run) -> Extra:
    """Highest price worth paying for a step, and the cost where the price is known."""
    old = ask.answer
    here = ask.task.terms(there).nodes[there.topology.cluster.node.name]
    spent = outlay(ask.task, there, run)
    if here.price is None or spent is None or old.outlay_usd is None:
        return extra.model_copy(update={"note": "no price of the cluster is known"})
    own = here.price.per_gpu(here.gpus)
    worth = own * extra.saved_s / extra.time_s
    hourly = f"{worth:.3g} USD/GPU-h"
    shown = hourly if here.price.is_rate else f"{money(worth)}/GPU"
    priced = extra.model_copy(update={"worth": shown if worth > own * SAME else ""})
    return priced if ask.price is None else _with_price(priced, ask, spent)


def _with_price(extra: Extra, ask: Asked, spent_usd: float) -> Extra:
    """Effect of a step with the step's own price put in."""
    assert ask.price is not None
    assert ask.answer.gpus is not None
    assert ask.answer.outlay_usd is not None
    node = ask.task.workloads(ask.nodes)[0].topology.cluster.node
    each = ask.price.per_gpu(node.gpus_per_node) * ask.answer.gpus
    added = each * extra.time_s / HOUR if ask.price.is_rate else each
    more = spent_usd + added - ask.answer.outlay_usd
    cost = ask.answer.cost_usd
    total = None if cost is None or not ask.price.is_rate else spent_usd + added
    return extra.model_copy(
        update={
            "extra_usd": more,
            "cost_usd": total,
            "saved_s_per_usd": _rate(extra.saved_s, more),
        }
    )


def _best_there(ask: Asked, there: tuple[Workload, ...], old: RankedPlan) -> RankedPlan:
    """The best plan on the better hardware: the old one, or a faster one."""
    chosen = str(old.estimate.stack.get("framework"))
    own = next((w for w in there if w.framework.name == chosen), there[0])
    own = with_settings(own, old.settings)
    same = old.model_copy(update={"estimate": estimate(own, old.layout)})
    effort = ask.task.effort
    found = optimize(
        [each.at_risk_of_most(robust=True) for each in there],
        top=1,
        time_limit=ask.task.until - time.time(),
        enough=Enough(work=effort.work / PLAN_SHARE),
        known_s=same.estimate.step_time_s.value,
        tolerance=effort.tolerance,
    )
    return found.plans[0] if found.plans else same
