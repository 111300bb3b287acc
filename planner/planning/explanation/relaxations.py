"""Changes that make a job feasible, each with what the job then takes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from planner.errors import BadInputError
from planner.hardware.catalog import gpu, larger_machines, node
from planner.job.case import Case
from planner.planning.explanation.ask import Answer, fewest_nodes, fits
from planner.planning.explanation.changes import Clock
from planner.planning.explanation.limits import (
    GPUS,
    MEMORY,
    limits_in_force,
    other_sizes,
    widened,
)
from planner.planning.optimize import optimize
from planner.planning.reasons import gpus_words
from planner.specs.answer.explanation import Limit, Relaxation
from planner.specs.answer.result import Result

SAME_JOB, OTHER_TRAINING, OTHER_JOB, BOUGHT = range(4)
"""Classes of changes by cost beside time, the cheapest first."""
PAIRS = 24
"""Pairs of changes that are tried where no single change is enough. [1]"""
LARGER = 4
"""Larger GPUs of the catalog that are tried. [1]"""
_QUESTION = 5.0
"""Longest time to find out if a pair or a larger GPU fits. [s]"""
_LEAST = 2.0
"""Shortest time limit of the search after a change, whatever is left. [s]"""
_CLASS = {
    "training.optimizer": OTHER_TRAINING,
    "training.method": OTHER_TRAINING,
    "training.global_batch": OTHER_JOB,
    "training.seq_len": OTHER_JOB,
}


@dataclass(frozen=True)
class Option:
    """One change that a user may make."""

    change: str
    assignments: tuple[str, ...]
    cost: int


def relaxations(
    case: Case, conflict: Sequence[Limit], clock: Clock
) -> tuple[Relaxation, ...]:
    """Changes that make a job feasible, the cheapest first.

    Cheapest: what changes neither training nor machines, then another method or
    optimizer, then another batch or length, then machines to buy; of equals the
    fewest GPU-seconds a step.

    Args:
        case: A job without a plan. [-]
        conflict: Limits that cannot hold together; no single change that keeps all of
            them makes the job feasible. [-]
        clock: Time for all changes; each takes a share of the time left. [s]
    """
    named = {limit.field for limit in conflict}
    found = _best_after_each(case, list(_options(case, named, clock)), clock)
    if not found:
        fields = {limit.field for limit in limits_in_force(case)}
        every = list(_options(case, fields, clock))
        pairs = [_both(*pair) for pair in combinations(every, 2)]
        pairs.sort(key=lambda option: option.cost)
        found = _best_after_each(case, _fitting(case, pairs, clock), clock)
    found.sort(key=lambda pair: (pair[0], pair[1].gpus * pair[1].step_time_s))
    return tuple(relaxation for _, relaxation in found)


def _options(case: Case, named: set[str], clock: Clock) -> Iterator[Option]:
    """Single changes: a limit less, another setting, more or larger GPUs."""
    for limit in limits_in_force(case):
        if limit.field not in named:
            continue
        change, assignments = limit.limit.limit, limit.assignments
        if limit.field == GPUS:
            yield from _more_gpus(case)
        elif limit.field in ("training.optimizer", "training.method"):
            yield from _settings(limit.field, assignments[0])
        elif limit.field in _CLASS:
            field, _, value = assignments[0].partition("=")
            cost = _CLASS[limit.field]
            yield Option(f"{field} {value} in place of {change}", assignments, cost)
        elif assignments:
            yield Option(_lifting(limit.field, change), assignments, SAME_JOB)
    if MEMORY in named:
        yield from _larger_gpu(case, clock)


def _lifting(field: str, words: str) -> str:
    known = {
        "search.offload": "allow offload to host memory",
        "search.space": "search the full space",
        "framework": "any framework",
    }
    return known.get(field, f"drop the limit {words}")


def _settings(field: str, choices: str) -> Iterator[Option]:
    """Each further value that a setting may have."""
    name, listed = field.split(".")[1], choices.partition("[")[2].rstrip("]")
    for value in listed.split(", ")[1:]:
        fixed = (f"{field}={value}", f"search.{name}=null")
        yield Option(f"{name} {value}", fixed, OTHER_TRAINING)


def _more_gpus(case: Case) -> Iterator[Option]:
    """A larger machine of the same GPU, else the fewest nodes that hold the job.

    Nodes are whole ones of the GPU's usual size, where that is larger than the job's
    cluster. Where no number of them is known to hold the job, the nearest that does.
    """
    whole: tuple[str, ...] = ()
    for machine in larger_machines(case.workloads[0].topology.cluster):
        whole = (f"cluster.node={machine.name}", "cluster.gpus_per_node=null")
        one = (*whole, "cluster.nodes=1")
        held = widened(case, one)
        if held is not None and fits(held, _QUESTION) is Answer.FITS:
            yield _bought(case, held, one)
            return
    there = widened(case, (*whole, "cluster.nodes=1")) if whole else case
    wanted = _nodes(there or case)
    if wanted is not None:
        assignments = (*whole, f"cluster.nodes={wanted}")
        more = widened(case, assignments)
        if more is not None:
            yield _bought(case, more, assignments)


def _nodes(case: Case) -> int | None:
    """Nodes that hold a job, more than its own: the fewest, or the nearest number."""
    nodes = fewest_nodes(case)
    if nodes is not None and nodes > case.workloads[0].topology.cluster.spec.nodes:
        return nodes
    nearest = (
        other.workloads[0].topology.cluster.spec.nodes
        for other in other_sizes(case)
        if fits(other, 0.0) is Answer.FITS
    )
    return next(nearest, None)


def _bought(case: Case, there: Case, assignments: tuple[str, ...]) -> Option:
    """The change to more GPUs."""
    own, its = (one.workloads[0].topology.cluster for one in (case, there))
    words = gpus_words(its.gpus, its.node.gpus_per_node)
    return Option(f"{words} in place of {own.gpus:,}", assignments, BOUGHT)


def _larger_gpu(case: Case, clock: Clock) -> Iterator[Option]:
    """The smallest larger GPU of the catalog, in nodes as large, that holds the job."""
    own = case.workloads[0]
    cluster = own.topology.cluster
    wanted, catalog = cluster.node.gpus_per_node, cluster.catalog
    memory: dict[str, tuple[float, str]] = {}
    for name in catalog.names("nodes"):
        machine = node(name, catalog)
        its = gpu(machine.gpu, catalog).memory_capacity
        if machine.gpus_per_node == wanted and its > own.gpu.memory_capacity:
            memory.setdefault(machine.gpu, (its, name))
    for larger, (_, name) in sorted(memory.items(), key=lambda item: item[1])[:LARGER]:
        assignment = (f"cluster.node={name}",)
        there = widened(case, assignment)
        seconds = min(_QUESTION, clock.share(LARGER))
        if there is not None and fits(there, seconds) is Answer.FITS:
            yield Option(f"{larger} in place of {own.gpu.name}", assignment, BOUGHT)
            return


def _both(one: Option, other: Option) -> Option:
    return Option(
        f"{one.change}, and {other.change}",
        (*one.assignments, *other.assignments),
        max(one.cost, other.cost),
    )


def _fitting(case: Case, options: Sequence[Option], clock: Clock) -> list[Option]:
    """The cheapest pairs that make a job fit, of the first few."""
    found: list[Option] = []
    for option in options[:PAIRS]:
        there = widened(case, option.assignments)
        seconds = min(_QUESTION, clock.share(4))
        if there is not None and fits(there, seconds) is Answer.FITS:
            found.append(option)
        if len(found) == LARGER:
            break
    return found


def _best_after_each(
    case: Case, options: Sequence[Option], clock: Clock
) -> list[tuple[int, Relaxation]]:
    """The best plan after each change, where there is one."""
    found: list[tuple[int, Relaxation]] = []
    for left, option in zip(range(len(options), 0, -1), options, strict=True):
        there = widened(case, option.assignments)
        seconds = max(_LEAST, clock.share(left))
        result = None if there is None else best_of(there, seconds)
        if result is not None and result.plans:
            found.append((option.cost, _relaxation(option, result)))
    return found


def best_of(
    case: Case, seconds: float, *, known_s: float = float("inf")
) -> Result | None:
    """The best plan of a job.

    Args:
        case: The job. [-]
        seconds: Time to search. [s]
        known_s: A step that is reachable already; only plans as fast are sought. [s]

    Returns:
        The answer of the search; None where no layout is legal, none fits, or there
        is no time. [-]
    """
    if seconds <= 0:
        return None
    try:
        none_known = known_s == float("inf")
        if none_known and fits(case, seconds) in (Answer.NO_FIT, Answer.ILLEGAL):
            return None
        return optimize(case.workloads, top=1, time_limit=seconds, known_s=known_s)
    except BadInputError:
        return None


def _relaxation(option: Option, result: Result) -> Relaxation:
    best = result.plans[0]
    step, gpus, memory = (
        best.estimate.step_time_s.value,
        best.layout.gpus,
        best.estimate.memory,
    )
    chosen = f" with {best.chosen}" if best.chosen else ""
    freed = any(a.startswith("framework=") for a in option.assignments)
    under = f" under {best.estimate.stack['framework']}" if freed else ""
    proof = "" if result.status == "optimal" else ", not proven best"
    return Relaxation(
        change=option.change,
        effect=f"a step of {step:.3f} s on {gpus_words(gpus)}, "
        f"{memory.peak_device_gib.value:.1f} of {memory.capacity_gib:.1f} GiB"
        f"{under}{chosen}{proof}",
        assignments=option.assignments,
        step_time_s=step,
        gpus=gpus,
        status=result.status,
    )
