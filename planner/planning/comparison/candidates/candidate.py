"""The work of a sweep: one candidate goes in, its answer comes out."""

from planner.cost.workload import Workload
from planner.planning.comparison.answer import CandidateAnswer, PhasePlan
from planner.planning.comparison.candidates.known import Counts
from planner.planning.comparison.candidates.plan_cache import Planned
from planner.planning.comparison.candidates.task import Task
from planner.planning.comparison.choice.choice import choose
from planner.planning.comparison.choice.chosen import Choice
from planner.planning.economics.terms import NodeTerms
from planner.specs.answer.run import Run

FINAL = ("optimal", "feasible", "infeasible", "unknown")
"""Statuses that a search may end with. [-]"""
CORRECTIONS = {"attention_waves"}
"""Sections of a calibration that correct a level, and have no level. [-]"""


def plan_candidate(task: Task) -> CandidateAnswer:
    """Choose a candidate's node count, plan it, and tell what the run takes.

    Returns:
        The answer, equal on any machine and under any load, unless the user's time
        limit ends a search. [-]

    Raises:
        BadInputError: A name is unknown, or a limit leaves no meaning.
    """
    counts = Counts(task)
    return told(counts, choose(counts))


def told(counts: Counts, choice: Choice) -> CandidateAnswer:
    """Answer of a candidate at the chosen count, or the reason against a plan."""
    seen = counts.seen
    return _answer(counts.task, choice).model_copy(
        update={
            "points": tuple(seen[nodes].point for nodes in sorted(seen)),
            "ruled_out": counts.ruled_out,
            "open_counts": choice.open_counts,
            "out_of_time": counts.out_of_time,
        }
    )


def _answer(task: Task, choice: Choice) -> CandidateAnswer:
    planned = choice.planned
    workload = (planned and planned.workload) or task.smallest
    blank = CandidateAnswer(
        name=task.name,
        status=choice.status or "unknown",
        gpu=workload.gpu.name,
        price=_price(task, workload),
        quotes=_node(task, workload).quotes,
        why="" if choice.status is None else choice.words,
        unmeasured=unmeasured(workload),
        interval_from=workload.uncertainty.why,
    )
    if planned is None:
        open_ = {"settled": False, "unsettled": choice.words}
        return blank.model_copy(update=open_ if choice.open_counts else {})
    if planned.plan is None or planned.run is None:
        status = planned.status if planned.status in FINAL else "unknown"
        open_ = {"settled": planned.settled, "unsettled": _no_plan(planned)}
        return blank.model_copy(update={"status": status, "why": planned.why} | open_)
    chosen = "" if choice.status else choice.words
    update = _figures(task, planned, planned.run, choice) | {"chosen": chosen}
    return blank.model_copy(update=update | {"status": choice.status or planned.status})


def _no_plan(planned: Planned) -> str:
    return "" if planned.settled else "its search ended before a plan was found"


def _price(task: Task, workload: Workload) -> str:
    """The price in words, with where it is from."""
    told = _node(task, workload).told
    return f"{told}: {task.source}" if task.source else told


def _node(task: Task, workload: Workload) -> NodeTerms:
    """Price and power of the candidate's nodes."""
    return task.terms(workload).nodes[workload.topology.cluster.node.name]


def _cost_range(task: Task, planned: Planned) -> tuple[float, float] | None:
    """Cost of the run at the least and at the greatest quote. [USD]."""
    cost, run = planned.cost_usd, planned.run
    if cost is None or planned.workload is None or run is None or run.cost_usd is None:
        return None
    paid = run.cost_usd.rental or run.cost_usd.capital
    hardware = paid.value if paid else 0.0
    low, high = _node(task, planned.workload).spread
    return cost + (low - 1) * hardware, cost + (high - 1) * hardware


def _figures(
    task: Task, planned: Planned, run: Run, choice: Choice
) -> dict[str, object]:
    """Fields of an answer that has a plan."""
    question, cost = task.question, planned.cost_usd
    deadline, budget = question.deadline_s, question.budget_usd
    time_s, spent = run.time_to_train_s.value, planned.outlay_usd
    here = planned.least_s / time_s
    meets = _held(time_s, planned.least_s, deadline)
    within = _held(spent, _least_spent(task, planned, here), budget)
    unsettled = _unsettled(task, planned, choice, (meets, within))
    return {
        "settled": not unsettled,
        "unsettled": unsettled,
        "least_time_s": choice.least_s,
        "least_cost_usd": None if cost is None else cost * choice.least_s / time_s,
        "plan": planned.plan,
        "plans": tuple(PhasePlan(name=p.name, plan=p.plan) for p in planned.phases),
        "search": planned.search,
        "gap": planned.gap,
        "nodes": planned.nodes,
        "gpus": planned.gpus,
        "time_to_train_s": time_s,
        "cost_usd": cost,
        "cost_range_usd": _cost_range(task, planned),
        "energy_mwh": run.energy_mwh.value,
        "outlay_usd": spent,
        "tokens_per_usd": None if not cost else run.tokens / cost,
        "budget_tokens": _bought(task, planned, run),
        "run": run,
        "meets_deadline": meets,
        "within_budget": within,
    }


def _held(value: float | None, least: float | None, limit: float | None) -> bool | None:
    """True where a value is within a limit; None without a limit, or where open."""
    if value is None or limit is None:
        return None
    if value <= limit:
        return True
    return None if least is not None and least <= limit else False


def _least_spent(task: Task, planned: Planned, share: float) -> float | None:
    """Least that may be signed for on these nodes. [USD].

    A rent falls with the time; a purchase does not.
    """
    price = task.price()
    rented = price is not None and price.is_rate
    spent = planned.outlay_usd
    return spent * share if rented and spent is not None else spent


def _unsettled(
    task: Task,
    planned: Planned,
    choice: Choice,
    verdicts: tuple[bool | None, bool | None],
) -> str:
    """Words on what is open about a candidate; empty where nothing is."""
    question, (meets, within) = task.question, verdicts
    if choice.status == "unknown":
        return choice.words
    if not planned.settled:
        return f"its search ended at a gap of {planned.gap:.1%}"
    if question.deadline_s is not None and meets is None:
        return "a faster plan may meet the deadline"
    if question.budget_usd is not None and within is None:
        priced = planned.outlay_usd is not None
        return "a faster plan may be within the budget" if priced else ""
    return ""


def _bought(task: Task, planned: Planned, run: Run) -> float | None:
    """The most training that the budget buys on these nodes. [token].

    Rented nodes train until the budget is spent, or the deadline is there. Bought ones
    train until the deadline; without one nothing ends their training.
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
    if deadline is None:
        return None
    return rate * deadline if spent <= budget else 0.0


def unmeasured(workload: Workload) -> tuple[str, ...]:
    """Kernels and collectives that were never measured on the GPUs: a relative's.

    Returns:
        Kinds of kernels and collectives; products of experts only where the model has
        experts. [text]
    """
    routed = workload.model.expert_parameters > 0
    each = (workload.calibration, *(pool.calibration for pool in workload.pools))
    sections = {section for measured in each for section in measured.borrowed}
    sections -= CORRECTIONS if routed else CORRECTIONS | {"grouped_gemm"}
    return tuple(sorted(section.replace("_", " ") for section in sections))
