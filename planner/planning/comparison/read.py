"""From files to tasks: jobs on clusters of their own, or a purchase file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

from pydantic import ValidationError

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.hardware.reading.files import Catalog
from planner.hardware.reading.money import Price
from planner.job.calibration_file import CalibrationFile
from planner.job.objectives import refuse_objective
from planner.job.resolve import resolve, resolved_spec
from planner.planning.comparison.answer import Effort, Question
from planner.planning.comparison.candidates.counts import domain_nodes
from planner.planning.comparison.candidates.task import Task
from planner.planning.comparison.entries import (
    Entry,
    entry_of,
    entry_of_job,
    job_of,
    located,
    placed,
    refuse_twins,
    within,
)
from planner.planning.comparison.purchase import ChangeName, PurchaseSpec
from planner.planning.comparison.vocabulary import tokens_words
from planner.specs.job import JobSpec
from planner.specs.reading.invalid import explained
from planner.specs.reading.read import (
    Fields,
    assigned,
    read_mapping,
)

MOST_GPUS = 32_768
"""GPUs of the largest cluster that is searched, unless a candidate says. [1]"""
ASSUMED_TOKENS = 1e12
"""Tokens of a run whose job does not say. [token]"""


@dataclass(frozen=True)
class Asking:
    """Settings that the command line adds to the files.

    Attributes:
        catalog: Files of facts. [-]
        assignments: `a.b.c=value` each, for every job. [text]
        budget_usd: Budget in place of the file's. [USD]
        deadline_s: Deadline in place of the file's. [s]
        effort: Limits of the search. [-]
        calibration: The user's calibration. [-]
        until: End of the user's time limit. [s]
    """

    effort: Effort
    catalog: Catalog
    assignments: Sequence[str] = ()
    budget_usd: float | None = None
    deadline_s: float | None = None
    calibration: CalibrationFile | None = None
    until: float = inf


@dataclass(frozen=True)
class Sweep:
    """Candidates to plan, and the question that they answer.

    Attributes:
        tasks: One task for each candidate. [-]
        question: Question that all candidates answer. [-]
        effort: Limits of the search. [-]
        title: The job in a line. [text]
        changes: Prices of better hardware. [-]
        warnings: Warnings on input that is legal but rarely meant. [text]
    """

    tasks: tuple[Task, ...]
    question: Question
    effort: Effort
    title: str
    changes: Mapping[ChangeName, Price] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class PurchaseQuestion:
    """Budget, deadline and priced changes of a purchase file."""

    budget_usd: float | None = None
    deadline_s: float | None = None
    changes: Mapping[ChangeName, Price] = field(default_factory=dict)


@dataclass(frozen=True)
class Given:
    """A job or a purchase as the user gives it.

    Attributes:
        name: Name for messages. [text]
        file: File of the fields; relative paths start from its folder. [-]
        fields: Fields of a job or of a purchase. [-]
    """

    name: str
    file: Path
    fields: Fields


def given_by(path: Path) -> Given:
    """Read the fields of a job or of a purchase.

    Raises:
        BadInputError: There is no such file, or it cannot be read.
    """
    file = located(path)
    return Given(str(path), file, read_mapping(file, pipes=True))


def sweep_of(given: Sequence[Given], asking: Asking) -> Sweep:
    """Take the candidates and the question from what the user gives."""
    if not given:
        raise BadInputError("no job is given", field="SPEC", allowed="one or more")
    purchases = ["candidates" in one.fields for one in given]
    if not any(purchases):
        free = asking.budget_usd is not None or asking.deadline_s is not None
        entries = [
            entry_of_job(
                Path(one.name),
                one.file,
                one.fields,
                asking.assignments,
                asking.catalog,
                free=free,
            )
            for one in given
        ]
        return _sweep(entries, asking, PurchaseQuestion())
    if len(given) > 1:
        raise BadInputError(
            "a purchase file stands alone",
            file=given[purchases.index(True)].name,
            allowed="one purchase file, or job files",
        )
    (one,) = given
    return _of_purchase(one.name, one.file, one.fields, asking)


def _of_purchase(name: str, file: Path, fields: Fields, asking: Asking) -> Sweep:
    """A job on every candidate of a purchase file."""
    try:
        spec = PurchaseSpec.model_validate(fields)
    except ValidationError as error:
        raise explained(error, PurchaseSpec, file=name) from error
    job, base = job_of(spec.job, file, name)
    asks = PurchaseQuestion(spec.budget, spec.deadline, spec.changes)
    held = (asking.budget_usd, asking.deadline_s, spec.budget, spec.deadline)
    free = any(limit is not None for limit in held)
    entries = []
    for at, candidate in enumerate(spec.candidates):
        where = f"candidates.{at}"
        with within(name, where):
            entries.append(
                entry_of(candidate, job, base, file, asking.catalog, free=free)
            )
        entries[-1] = placed(entries[-1], name, where)
    refuse_twins(entries)
    return _sweep(entries, asking, asks)


def _sweep(entries: Sequence[Entry], asking: Asking, asks: PurchaseQuestion) -> Sweep:
    """Tasks of all candidates under one question."""
    budget = asks.budget_usd if asking.budget_usd is None else asking.budget_usd
    deadline = asks.deadline_s if asking.deadline_s is None else asking.deadline_s
    looked_up = [_looked_up(entry, asking) for entry in entries]
    tokens = [_tokens(*job) for job in looked_up]
    known = [count for count in tokens if count is not None]
    question = Question(
        tokens=known[0] if known else ASSUMED_TOKENS,
        budget_usd=budget,
        deadline_s=deadline,
    )
    tasks = tuple(
        _task(entry, spec, workload, question, asking)
        for entry, (spec, workload) in zip(entries, looked_up, strict=True)
    )
    workloads = [workload for _, workload in looked_up]
    return Sweep(
        tasks=_named_apart(tasks),
        question=question,
        effort=asking.effort,
        title=_title(workloads[0], question.tokens),
        changes=asks.changes,
        warnings=(*_assumed(known), *_differing(looked_up), *_unranked(entries)),
    )


def _looked_up(entry: Entry, asking: Asking) -> tuple[JobSpec, Workload]:
    """A candidate's job, checked and with its names looked up."""
    with within(entry.file, entry.field):
        spec = assigned(
            dict(entry.job),
            asking.assignments if entry.field else (),
            entry.base,
            entry.file,
            asking.catalog,
        )
        refuse_objective(spec, "planner compare compares the fastest plans")
        workloads = resolve(
            spec,
            file=entry.file,
            base=entry.base,
            catalog=asking.catalog,
            calibration=asking.calibration,
        )
    return spec, workloads[0]


def _tokens(spec: JobSpec, workload: Workload) -> float | None:
    """Tokens of the whole run, of all phases together."""
    if spec.phases:
        return sum(phase.tokens for phase in spec.phases)
    return workload.training.run_tokens


def _task(
    entry: Entry, spec: JobSpec, workload: Workload, question: Question, asking: Asking
) -> Task:
    whole = resolved_spec(spec, workload, base=entry.base)
    if _tokens(spec, workload) is None:
        training = dict(whole["training"])  # type: ignore[call-overload]
        whole["training"] = {**training, "tokens": question.tokens}
    if spec.phases:
        assert spec.training is not None
        read = spec.training.model_copy(update={"lengths": workload.training.lengths})
        shared = read.model_dump(mode="json", by_alias=True, exclude_none=True)
        whole["training"] = shared
    return Task(
        name=entry.name,
        # A search may choose the framework, so it stays as the user named it.
        job={**whole, "framework": spec.framework},
        counts=_counts(entry, workload),
        question=question,
        effort=asking.effort,
        file=entry.file,
        source=entry.source,
        calibration=asking.calibration,
        catalog=asking.catalog,
        until=asking.until,
    )


def _counts(entry: Entry, workload: Workload) -> tuple[int, ...]:
    """Node counts that a candidate may have."""
    if entry.fixed is not None:
        return (entry.fixed,)
    node = workload.topology.cluster.node
    unit = domain_nodes(workload)
    most = entry.most or MOST_GPUS // node.gpus_per_node
    counts = tuple(range(unit, most + 1, unit))
    if not counts:
        raise BadInputError(
            f"one scale-up domain of {node.name} is {unit} nodes",
            file=entry.file,
            field=f"{entry.field}.most_nodes",
            value=most,
            allowed=f"{unit} or more",
        )
    return counts


def _named_apart(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Jobs of one stem in several folders get a number."""
    seen: dict[str, int] = {}
    apart = []
    for task in tasks:
        seen[task.name] = seen.get(task.name, 0) + 1
        times = seen[task.name]
        name = task.name if times == 1 else f"{task.name} ({times})"
        apart.append(replace(task, name=name))
    return tuple(apart)


def _title(workload: Workload, tokens: float) -> str:
    training = workload.training
    return (
        f"{workload.model.name}, {tokens_words(tokens)}, "
        f"{training.sequences:,} sequences of {training.seq_len:,} tokens a step, "
        f"{training.precision}, {training.optimizer}"
    )


def _assumed(known: Sequence[float]) -> tuple[str, ...]:
    if known:
        return ()
    return (
        "training.tokens is not given: time, cost and energy are those of 1 T tokens",
    )


def _unranked(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Words on the layouts of jobs, which their best plans stand for."""
    names = [entry.name for entry in entries if entry.has_layout]
    if not names:
        return ()
    return (
        f"the layout of {', '.join(names)} is not compared: each candidate has the "
        "best plan of its own; planner plan ranks a job's layout",
    )


_SAME: tuple[tuple[str, Callable[[JobSpec, Workload], object]], ...] = (
    ("model", lambda _, workload: workload.model.name),
    ("sequences a step", lambda _, workload: workload.training.sequences),
    ("seq_len", lambda _, workload: workload.training.seq_len),
    ("precision", lambda _, workload: workload.training.precision),
    ("tokens", _tokens),
)
"""Fields in which the compared jobs should agree. [-]"""


def _differing(jobs: Sequence[tuple[JobSpec, Workload]]) -> tuple[str, ...]:
    """Words on the fields in which the jobs differ."""
    said = []
    for name, of in _SAME:
        values = dict.fromkeys(str(of(*job)) for job in jobs)
        if len(values) > 1:
            said.append(f"the jobs differ in {name}: {', '.join(values)}")
    return tuple(said)
