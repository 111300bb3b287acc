"""The work of a sweep: one candidate goes in, its answer comes out."""

import time

from planner.comparison.answer import CandidateAnswer, PhasePlan
from planner.comparison.choice import Choice, choose
from planner.comparison.planned import Counts, Planned
from planner.comparison.task import Task
from planner.cost.workload import Workload
from planner.specs.run import Run

FINAL = ("optimal", "feasible", "infeasible", "unknown")
"""What a search may end with. [-]"""
CORRECTIONS = {"attention_waves"}
"""Sections of a calibration that correct a level, and have none. [-]"""


def plan_candidate(task: Task) -> CandidateAnswer:
    """Choose a candidate's node count, plan it, and tell what the run takes.

    Args:
        task: The candidate. [-]

    Returns:
        Its answer; the same on any machine, but for the time that it took, unless the
        time limit ends a search. [-]

    Raises:
        BadInputError: A name is unknown, or a limit leaves no meaning.
    """
    started = time.monotonic()
    task.lay_over()
    counts = Counts(task)
    choice = choose(counts)
    points = tuple(counts.seen[nodes].point for nodes in sorted(counts.seen))
    answer = _told(task, choice).model_copy(update={"points": points})
    seconds = time.monotonic() - started
    return answer.model_copy(update={"seconds": seconds})


def _told(task: Task, choice: Choice) -> CandidateAnswer:
    """The answer at the chosen count, or what stands against one."""
    planned = choice.planned
    workload = (planned and planned.workload) or task.smallest
    blank = CandidateAnswer(
        name=task.name,
        status=choice.status or "unknown",
        gpu=workload.gpu.name,
        price=_price(task, workload),
        why="" if choice.status is None else choice.words,
        unmeasured=unmeasured(workload),
        interval_from=workload.uncertainty.why,
    )
    if planned is None:
        return blank
    if planned.plan is None or planned.run is None:
        status = planned.status if planned.status in FINAL else "unknown"
        return blank.model_copy(update={"status": status, "why": planned.why})
    chosen = "" if choice.status else choice.words
    update = _figures(task, planned, planned.run) | {"chosen": chosen}
    return blank.model_copy(update=update | {"status": choice.status or planned.status})


def _price(task: Task, workload: Workload) -> str:
    """The price in words, with where it is from."""
    told = task.terms(workload).nodes[workload.topology.cluster.node.name].told
    return f"{told}: {task.source}" if task.source else told


def _figures(task: Task, planned: Planned, run: Run) -> dict[str, object]:
    """Fields of an answer that has a plan."""
    question, cost = task.question, planned.cost_usd
    deadline, budget = question.deadline_s, question.budget_usd
    time_s, spent = run.time_to_train_s.value, planned.outlay_usd
    return {
        "plan": planned.plan,
        "plans": tuple(PhasePlan(name=p.name, plan=p.plan) for p in planned.phases),
        "search": planned.search,
        "gap": planned.gap,
        "nodes": planned.nodes,
        "gpus": planned.gpus,
        "time_to_train_s": time_s,
        "cost_usd": cost,
        "energy_mwh": run.energy_mwh.value,
        "outlay_usd": spent,
        "tokens_per_usd": None if not cost else run.tokens / cost,
        "budget_tokens": _bought(task, planned, run),
        "run": run,
        "meets_deadline": None if deadline is None else time_s <= deadline,
        "within_budget": _within(spent, budget),
    }


def _within(spent: float | None, budget: float | None) -> bool | None:
    return None if spent is None or budget is None else spent <= budget


def _bought(task: Task, planned: Planned, run: Run) -> float | None:
    """The most training that the budget buys on these nodes. [token].

    Rented nodes train until the budget is spent, or the deadline is there. Bought
    ones, where the budget buys them, train until the deadline, or until they are
    written off.
    """
    budget, deadline = task.question.budget_usd, task.question.deadline_s
    spent = planned.outlay_usd
    if budget is None or not spent or planned.workload is None:
        return None
    rate = run.tokens / run.time_to_train_s.value
    terms = task.terms(planned.workload)
    price = terms.nodes[planned.workload.topology.cluster.node.name].price
    if price is not None and price.is_rate:
        seconds = run.time_to_train_s.value * budget / spent
        return rate * min(seconds, deadline or seconds)
    if spent > budget:
        return 0.0
    return rate * (deadline or terms.depreciation.value)


def unmeasured(workload: Workload) -> tuple[str, ...]:
    """What of the GPUs was never measured, and comes from a relative.

    Args:
        workload: The job there. [-]

    Returns:
        Kinds of kernels and collectives; those of experts only where the model has
        any. [text]
    """
    routed = workload.model.expert_parameters > 0
    sections = {
        section for part in workload.parts for section in part.calibration.borrowed
    }
    sections -= CORRECTIONS if routed else CORRECTIONS | {"grouped_gemm"}
    return tuple(sorted(section.replace("_", " ") for section in sections))
