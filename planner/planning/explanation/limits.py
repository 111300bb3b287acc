"""The limits that a job is under, in the user's words, and how each is lifted."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import lcm

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.frameworks import FRAMEWORKS
from planner.job.case import Case
from planner.planning.explanation.changes import (
    GIB,
    without_host_limit,
    without_memory_limit,
)
from planner.planning.reasons import gpus_words
from planner.specs.answer.explanation import Limit
from planner.specs.search import limit_words, listed

GPUS = "cluster.nodes"
MEMORY = "gpu.memory_capacity"
EVEN = 0.5
"""Risk at which a plan whose predicted memory just fits is admitted. [1]"""
NEAR = 8
"""Nodes more or fewer that are tried one by one for a legal layout. [1]"""
EIGHT_BIT = "adamw-8bit"
Lift = Callable[[Case], list[Case]]
"""Job to the cases without a limit; one feasible case is enough."""


@dataclass(frozen=True)
class InForce:
    """One limit with the way to lift it."""

    limit: Limit
    lift: Lift
    assignments: tuple[str, ...] = ()
    """Assignments for `--set` that lift the limit; empty where none can."""

    @property
    def field(self) -> str:
        """Dotted field in which the limit is written. [text]."""
        return self.limit.field


def limits_in_force(case: Case) -> list[InForce]:
    """Every limit of a job, in the order in which removal is tried.

    Returns:
        Limits: of the space, the framework, the training block, the cluster, the
        user's search block and the memory. [-], shape (limits,)
    """
    return [
        *_batch(case),
        *_space(case),
        *_framework(case),
        *_training(case),
        _gpus(case),
        *_offload(case),
        *_search(case),
        *_risk(case),
        _memory(case),
    ]


def lifted(case: Case, dropped: Sequence[InForce]) -> Iterator[Case]:
    """A job without some of its limits."""
    cases = [case]
    for limit in dropped:
        cases = [changed for each in cases for changed in limit.lift(each)]
    yield from cases


def _assigning(*choices: tuple[str, ...]) -> Lift:
    """Lifts a limit by assignments; those that are refused are left out."""

    def lift(case: Case) -> list[Case]:
        return [case, *(c for choice in choices for c in _assigned(case, choice))]

    return lift


def _assigned(case: Case, assignments: tuple[str, ...]) -> list[Case]:
    try:
        changed = case.assigned(assignments)
        _ = changed.workloads
    except BadInputError:
        return []
    return [changed]


def _limit(field: str, words: str, lift: Lift, *assignments: str) -> InForce:
    return InForce(Limit(field=field, limit=words), lift, assignments)


def widened(case: Case, assignments: tuple[str, ...]) -> Case | None:
    """The job with some assignments, where they are legal.

    Returns:
        The changed job; None where the spec or a name in the spec is refused. [-]
    """
    found = _assigned(case, assignments)
    return found[0] if found else None


def _only(*assignments: str) -> Lift:
    """Lifts a limit by assignments that widen the space, so one case is enough."""
    return lambda case: _assigned(case, assignments) or [case]


def _batch(case: Case) -> Iterator[InForce]:
    """Batch and sequence, which divide among ranks or leave no legal layout."""
    workload = case.workloads[0]
    gpus, training = workload.gpus, workload.training
    replicas = [*_listed(case, "dp"), *_listed(case, "dp_shard")]
    whole = lcm(gpus, *replicas, *_listed(case, "micro_batch"))
    batch = -(-training.sequences // whole) * whole
    words = f"a global batch of {training.sequences:,} sequences"
    more = f"training.global_batch={batch}"
    if batch != training.sequences:
        lift = _assigning((more,))
        yield _limit("training.global_batch", words, lift, more)
    parts = 2 * lcm(gpus, *_listed(case, "tp"), *_listed(case, "cp"))
    tokens = -(-training.seq_len // parts) * parts
    if tokens != training.seq_len:
        longer = f"training.seq_len={tokens}"
        words = f"sequences of {training.seq_len:,} tokens"
        yield _limit("training.seq_len", words, _assigning((longer,)), longer)


def _listed(case: Case, axis: str) -> tuple[int, ...]:
    """Degrees that a limit names one by one."""
    return listed(getattr(case.spec.search, axis))


def _space(case: Case) -> Iterator[InForce]:
    """Bounds of the default space: tp inside a scale-up domain, among others."""
    if case.spec.search.space == "full":
        return
    domain = case.workloads[0].topology.cluster.node.scale_up_domain
    words = f"the default space (tp <= {domain}, one scale-up domain)"
    full = "search.space=full"
    yield _limit("search.space", words, _only(full), full)


def _framework(case: Case) -> Iterator[InForce]:
    if case.spec.framework == "any" or len(FRAMEWORKS) < 2:
        return
    words = f"framework {case.spec.framework}"
    change = ("framework=any", "stack={}")
    yield _limit("framework", words, _only(*change), *change)


def _training(case: Case) -> Iterator[InForce]:
    """Method and optimizer, where another that holds less exists."""
    training, search = case.workloads[0].training, case.spec.search
    optimizers = search.choices("optimizer") or (training.optimizer,)
    if EIGHT_BIT not in optimizers:
        change = f"search.optimizer=[{', '.join((*optimizers, EIGHT_BIT))}]"
        words = f"optimizer {' or '.join(optimizers)}"
        yield _limit("training.optimizer", words, _only(change), change)
    methods = search.choices("method") or (training.method,)
    if "qlora" not in methods:
        words = f"method {' or '.join(methods)}"
        wider = [
            (f"search.method=[{', '.join(dict.fromkeys((*methods, *more)))}]",)
            for more in (("lora", "qlora"), ("lora",))
        ]
        yield _limit("training.method", words, _assigning(*wider), *wider[0])


def _gpus(case: Case) -> InForce:
    """The size of the cluster; asked about apart, since any size may do."""
    words = gpus_words(case.workloads[0].gpus)
    return _limit(GPUS, words, lambda same: [same])


def other_sizes(case: Case) -> Iterator[Case]:
    """The job on other numbers of nodes: near the job's number, and multiples of it."""
    own = case.workloads[0].topology.cluster.spec.nodes
    near = [n for step in range(1, NEAR + 1) for n in (own + step, own - step) if n > 0]
    for nodes in dict.fromkeys([*near, *(own * k for k in (2, 3, 4, 5, 7, 8, 16))]):
        yield from _assigned(case, (f"cluster.nodes={nodes}",))


def _offload(case: Case) -> Iterator[InForce]:
    """Limit on offload, or on the host's memory where offload is on."""
    search, allow = case.spec.search, "search.offload=true"
    if search.offload is True:
        node = case.workloads[0].topology.cluster.node
        if node.host_memory is not None:
            words = f"{node.host_memory / 1e9:,.0f} GB of host memory a node"
            free: Lift = lambda same: [same.edited(without_host_limit)]  # noqa: E731
            yield _limit("node.host_memory", words, free)
        return
    if not any(w.framework.limits.offload for w in case.workloads):
        return
    listed = " or ".join(search.choices("offload"))
    words = f"offload {listed} alone" if listed not in ("", "none") else "no offload"
    yield _limit("search.offload", words, _only(allow), allow)


def _search(case: Case) -> Iterator[InForce]:
    """The user's own limits on axes."""
    for axis, value in case.spec.search.limits().items():
        free = f"search.{axis}=null"
        yield _limit(f"search.{axis}", limit_words(axis, value), _only(free), free)


def _memory(case: Case) -> InForce:
    workload: Workload = case.workloads[0]
    words = f"{workload.gpu.memory_capacity / GIB:.1f} GiB a GPU"
    return _limit(MEMORY, words, lambda same: [same.edited(without_memory_limit)])


def _risk(case: Case) -> Iterator[InForce]:
    """Limit on the risk of running out of memory; without it the prediction decides."""
    risk = case.workloads[0].risk
    if risk is None or risk >= EVEN:
        return
    words = f"a risk of at most {risk:.2g} of running out of memory"
    free: Lift = lambda same: [  # noqa: E731
        same.edited(lambda job: job.at_risk_of_most(robust=False))
    ]
    yield _limit("search.memory_risk", words, free, f"search.memory_risk={EVEN}")
